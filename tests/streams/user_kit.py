"""An ensemble for tests of what users do: its settings in a folder, its topics, and a worker."""

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from agents.worker_process import command
from settings.loading import load_settings
from settings.model import Settings
from streams.kafka.connection import admin_client
from streams.kafka.topic_admin import create
from streams.kafka.topics import declared

TOML = """\
version = 1
name = "{name}"
labels = ["benign", "malignant"]
positive = "malignant"

[columns]
id = "patient"
label = "truth"

[defaults]
horizon = 2000
cuts = 2
exploration = 0.01
feedback = "full"

[defaults.rules.benign]
kind = "constant"
label = "benign"

[defaults.rules.malignant]
kind = "constant"
label = "malignant"

[learners.imaging]
features = [
    {{name = "radius", low = 0.0, high = 30.0}},
    {{name = "texture", low = 0.0, high = 40.0}},
]

[learners.history]
features = [
    {{name = "age", low = 0.0, high = 100.0}},
    {{name = "site", categories = ["left", "right"]}},
]

[ensemble]
mode = "{mode}"
fusion_timeout = "60s"

{context}

[topics]
partitions = {partitions}

[broker]
bootstrap = "{address}"

[worker]
state = "state"
web_port = 0
"""

CONTEXT = """\
[ensemble.context]
features = [{name = "age", low = 0.0, high = 100.0}]
"""

_HEEDING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
HB = [sys.executable, "-c", f"{_HEEDING}; from cli.main import main; main()"]
"""Runs `hb` so that it handles SIGINT as on a terminal, even if tests run in the background."""

PATIENT = {"radius": 14.2, "texture": 20.1, "age": 61.0, "site": "left"}


def write_settings(
    folder: Path, address: str, name: str, *, partitions: int = 2, context: bool = False
) -> Path:
    file = folder / "ensemble.toml"
    mode, section = ("ch-vote", CONTEXT) if context else ("wm", "")
    text = TOML.format(
        name=name, address=address, partitions=partitions, mode=mode, context=section
    )
    file.write_text(text)
    return file


def make_topics(settings: Settings) -> None:
    async def make() -> None:
        async with admin_client(settings.broker) as admin:
            await create(admin, declared(settings))

    asyncio.run(make())


def ensemble(folder: Path, address: str, name: str, **options) -> Path:
    """Write the settings, create the topics, and return the file."""
    file = write_settings(folder, address, name, **options)
    make_topics(load_settings(file, environ={}))
    return file


def place_settings(file: Path, was: str, name: str, address: str) -> None:
    """Give an ensemble that `hb init` proposed a name, a broker and topics on it."""
    text = file.read_text()
    for old, new in (
        (f'name = "{was}"', f'name = "{name}"'),
        ('bootstrap = ""', f'bootstrap = "{address}"'),
        ("web_port = 6066", f'web_port = 0\nstate = "state-{name}"'),
    ):
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    make_topics(load_settings(file, environ={}))


@contextlib.contextmanager
def worker_process(file: Path) -> Iterator[subprocess.Popen]:
    """Run `hb worker` with all roles until the block ends."""
    process = subprocess.Popen(
        command(file), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=file.parent
    )
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if "worker runs" in line:
            break
    else:
        process.wait()
        process.stdout.close()
        raise AssertionError("".join(lines))
    drain = threading.Thread(target=lines.extend, args=(process.stdout,))
    drain.start()
    try:
        yield process
    finally:
        process.terminate()
        code = process.wait(30)
        drain.join()
        process.stdout.close()
        sys.stderr.write("".join(lines))
        assert code == 0
