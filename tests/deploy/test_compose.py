"""compose.yaml: valid, pinned, closed to the outside, and in step with settings and Prometheus."""

import re
import shutil
import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import orjson
import pytest

from agents.monitor.console.access import objection
from agents.roles import roles
from settings.loading import load_settings
from tests.deploy.files import DEPLOY, ROOT, read_yaml

FILE = DEPLOY / "compose.yaml"
COMPOSE = read_yaml(FILE)
SERVICES = COMPOSE["services"]
WORKERS = {name: service for name, service in SERVICES.items() if name.startswith("worker-")}
SETTINGS = load_settings(DEPLOY / "ensemble.toml", environ={})


def test_it_follows_the_compose_specification():
    package = Path(find_spec("check_jsonschema").submodule_search_locations[0])
    schema = orjson.loads((package / "builtin_schemas/vendor/compose-spec.json").read_bytes())
    validator = jsonschema.Draft7Validator(schema)
    assert [error.message for error in validator.iter_errors(COMPOSE)] == []
    assert not validator.is_valid({"services": {"a": {"imag": "b"}}}), "it can say no"


def test_compose_itself_takes_it_where_there_is_one():
    docker = shutil.which("docker") or "true"
    version = subprocess.run([docker, "compose", "version"], capture_output=True, check=False)
    if b"Compose" in version.stdout:  # elsewhere the schema has spoken
        command = [docker, "compose", "-f", FILE, "config", "--quiet"]
        process = subprocess.run(command, capture_output=True, check=False)
        assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_to_a_release(name):
    assert re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+", SERVICES[name]["image"])


def test_kafka_is_the_version_that_the_tests_run_on():
    lock = orjson.loads((ROOT / "streams" / "broker" / "jars.lock").read_bytes())
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{lock['kafka']}"


def test_the_workers_image_has_the_projects_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    image = f"hedged-bandits:{project['version']}"
    assert {service["image"] for service in (*WORKERS.values(), SERVICES["topics"])} == {image}
    assert image in (DEPLOY / "Dockerfile").read_text()


@pytest.mark.parametrize("name", SERVICES)
def test_everything_that_stays_is_watched_and_restarted(name):
    service = SERVICES[name]
    if name == "topics":
        assert service["restart"] == "on-failure"
        assert service["healthcheck"] == {"disable": True}
    else:
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"][0] == "CMD"
        assert {"timeout", "retries", "start_period"} <= set(service["healthcheck"])
        assert service["healthcheck"]["interval"] in ("3s", "4s", "5s")


def test_there_is_one_worker_per_role():
    played = {
        service["command"][service["command"].index("--role") + 1] for service in WORKERS.values()
    }
    assert played == set(roles(SETTINGS))
    assert len(WORKERS) == len(played)


def test_workers_wait_for_topics_and_topics_for_kafka():
    for worker in WORKERS.values():
        assert worker["depends_on"]["topics"]["condition"] == "service_completed_successfully"
    assert SERVICES["topics"]["depends_on"]["kafka"]["condition"] == "service_healthy"
    assert SERVICES["topics"]["command"] == ["topics", "create"]


def test_prometheus_scrapes_every_worker():
    jobs = read_yaml(DEPLOY / "prometheus" / "prometheus.yml")["scrape_configs"]
    (group,) = next(job for job in jobs if job["job_name"] == "hb")["static_configs"]
    assert group["targets"] == [f"{name}:{SETTINGS.worker.web_port}" for name in WORKERS]
    assert group["labels"] == {"ensemble": SETTINGS.name}


def test_volumes_are_named_and_each_has_one_owner():
    named = [
        volume.split(":")[0]
        for service in SERVICES.values()
        for volume in service["volumes"]
        if not volume.startswith(".")
    ]
    assert sorted(named) == sorted(COMPOSE["volumes"])


@pytest.mark.parametrize("name", SERVICES)
def test_files_that_are_mounted_exist_and_cannot_be_changed(name):
    for volume in SERVICES[name]["volumes"]:
        source, _, target = volume.partition(":")
        if source.startswith("."):
            assert (DEPLOY / source).exists()
            assert target.endswith(":ro")


def test_ports_are_open_on_this_machine_only():
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == 4
    assert all(re.fullmatch(r"127\.0\.0\.1:\$\{HB_\w*PORT:-(\d+)\}:\1", port) for port in ports)


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_may_do_little(name):
    service = SERVICES[name]
    assert service.get("read_only") is (None if name == "grafana" else True)
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_takes_only_so_much_memory_and_disk(name):
    service = SERVICES[name]
    assert service["mem_limit"] in ("1g", "2g")
    assert service["logging"]["options"] == {"max-size": "10m", "max-file": "3"}


def test_the_image_is_built_once():
    assert [name for name, service in SERVICES.items() if "build" in service] == ["topics"]


def test_workers_listen_to_others_in_containers_only(monkeypatch):
    assert SETTINGS.worker.web_host == "127.0.0.1"
    image = dict(re.findall(r"(HB_SET__\w+)=(\S+)", (DEPLOY / "Dockerfile").read_text()))
    for worker in WORKERS.values():
        inside = load_settings(DEPLOY / "ensemble.toml", environ={**image, **worker["environment"]})
        assert inside.worker.web_host == "0.0.0.0"
        assert str(inside.worker.state) == "/var/lib/hb"
        assert inside.broker.bootstrap == "kafka:9092"
        scraped = read_yaml(DEPLOY / "prometheus/prometheus.yml")["scrape_configs"][0]
        for target in scraped["static_configs"][0]["targets"]:
            assert objection({"Host": target}, "0.0.0.0", inside.worker.web_names) is None


def test_grafana_finds_what_it_is_provisioned_with():
    grafana = SERVICES["grafana"]
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    mounts = dict(reversed(volume.removesuffix(":ro").split(":")) for volume in grafana["volumes"])
    assert (DEPLOY / mounts["/etc/grafana/dashboards"] / "diagnosis/quality.json").is_file()
    assert home == "/etc/grafana/dashboards/diagnosis/quality.json"
    source = read_yaml(DEPLOY / "grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    assert source[0]["url"] == "http://prometheus:9090"
    assert grafana["environment"]["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
