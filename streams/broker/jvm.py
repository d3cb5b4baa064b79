"""How Java is called: small, quick to start, and from a class archive where possible.

Measured with Kafka 4.3 on two cores: with only the first compiler and the serial collector the
broker starts in two thirds of the time, takes half the memory, and handles as many records.
"""

import hashlib
import os
from pathlib import Path

from streams.broker.jars import cache_folder, class_path, lock
from streams.broker.java import find_java

_LOG = "org.slf4j.simpleLogger"
# The first of Java's two compilers is enough to move records, and takes less time and memory. Only
# the second uses the processor's instructions for AES; without them TLS takes far longer.
_ONE_COMPILER = "-XX:TieredStopAtLevel=1"
OPTIONS = (
    "-Xms64m",
    "-Xmx384m",
    "-XX:+UseSerialGC",
    _ONE_COMPILER,
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    f"-D{_LOG}.logFile=System.out",
    f"-D{_LOG}.showDateTime=true",
    f"-D{_LOG}.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ",
    f"-D{_LOG}.showThreadName=false",
    # Hundreds of lines with every setting, at each start.
    f"-D{_LOG}.log.org.apache.kafka.common.config.AbstractConfig=warn",
)
# Kafka's libraries still use features that Java now warns about.
_WARNING_JAVA = 24
_QUIET = ("--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED")
# The first Java that writes and reads such an archive in one step (JEP 514).
ARCHIVING_JAVA = 25


def archive_file(kafka: str) -> Path | None:
    """Return the path of the class archive, existing or not.

    None if Java is too old, and for an earlier Kafka, which is not started often enough.
    """
    java = find_java()
    if java.major < ARCHIVING_JAVA or kafka != lock().kafka:
        return None
    # Java refuses an archive written by another build, with other options or other jars.
    key = hashlib.sha256("\n".join([java.build, lock().digest, *_options()]).encode()).hexdigest()
    return cache_folder() / f"classes-{key[:16]}.aot"


def java_command(
    main: str,
    *arguments: str,
    kafka: str,
    folder: Path,
    record: Path | None = None,
    encrypts: bool = False,
) -> list[str]:
    """Return the command that runs class `main`, which may encrypt much of what it sends.

    `folder` gets a report if Java itself crashes, `record` an archive when the program ends.
    """
    archive = archive_file(kafka)
    base = [option for option in _options() if not (encrypts and option == _ONE_COMPILER)]
    options = [*base, f"-XX:ErrorFile={folder / 'crash.txt'}"]
    if record is not None:
        options += [f"-XX:AOTCacheOutput={record}"]
    elif archive is not None and archive.is_file() and archive.stat().st_size:
        # An unusable archive is harmlessly ignored: only errors are worth a line.
        options += [f"-XX:AOTCache={archive}", "-Xlog:disable", "-Xlog:all=error"]
    jars = class_path(kafka=kafka)
    return [str(find_java().program), *options, "-cp", jars, main, *arguments]


def java_environment() -> dict[str, str]:
    """Return the environment of such a program: none of our secrets, no stray Java options."""
    names = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")
    return {name: os.environ[name] for name in names if name in os.environ}


def _options() -> list[str]:
    return [*OPTIONS, *(_QUIET if find_java().major >= _WARNING_JAVA else ())]
