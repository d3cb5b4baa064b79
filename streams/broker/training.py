"""Done once per machine: fetch the jars, and train Java for fast starts.

While a broker runs, Java can record which classes it loads and how they are linked, and start the
next one from that archive in a third of the time (Java 25 and later; JEP 483 and 514).
"""

import os
import shutil
from pathlib import Path
from tempfile import mkdtemp

from settings.errors import BrokerError
from streams.broker.certificates import SecretFiles
from streams.broker.cluster_layout import new_plan
from streams.broker.jars import Progress, alone, cache_folder, class_path
from streams.broker.jvm import archive_file
from streams.broker.node import Node

# Writing the archive takes about eight seconds on two cores; allow more on a busy machine.
_WRITE_SECONDS = 120.0


def prepare(kafka: str, progress: Progress) -> None:
    """Fetch a Kafka's jars and create its archive, unless this machine has them."""
    try:
        class_path(progress, kafka)
    except OSError as error:
        raise BrokerError(f"{cache_folder()} cannot be used: {error.strerror}") from error
    archive = archive_file(kafka)
    if archive is None or archive.exists():
        return
    with alone(cache_folder()):
        if not archive.exists():
            progress.say("making the broker quick to start (once, about ten seconds)")
            _train(archive, kafka, progress)


def _train(archive: Path, kafka: str, progress: Progress) -> None:
    folder = Path(mkdtemp(prefix="training-", dir=cache_folder()))
    # Secure, so that the classes for that are in the archive too.
    plan = new_plan(kafka, 1, ("trainer",))
    SecretFiles(folder / "secrets").make(plan.users)
    node = Node(folder, plan, 1, record=folder / "archive")
    try:
        node.start()
        node.stop(_WRITE_SECONDS)
        os.replace(folder / "archive", archive)  # noqa: PTH105 - atomic, and may overwrite
    except (BrokerError, OSError) as error:
        # Starts are merely slower without it. The empty file prevents a retry at every start.
        progress.say(f"going on without quick starts ({error})")
        archive.touch()
    finally:
        node.kill()
        shutil.rmtree(folder)
