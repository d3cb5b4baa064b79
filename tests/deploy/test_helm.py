"""The chart: valid for Kubernetes, in step with the settings, closed to what need not reach it."""

import functools
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from agents.roles import roles
from settings.loading import load_settings
from tests.deploy.files import DEPLOY, ROOT, RULES, dashboards, read_yaml, records
from tests.deploy.test_prometheus import promtool

CHART = DEPLOY / "helm"
SETTINGS = DEPLOY / "ensemble.toml"
ENSEMBLE = load_settings(SETTINGS, environ={})
VERSIONS = ("1.29", "1.37")
"""The oldest Kubernetes that the chart promises, and the newest that the validator knows."""
EVERYTHING = (
    "monitoring.scrape=true",
    "monitoring.rules=true",
    "monitoring.dashboards=true",
    "autoscaling.enabled=true",
    "setup.acls=true",
    "secrets.env=in-the-environment",
    "secrets.files=in-files",
    "web.tokenSecret=pages",
    "broker.bootstrap=kafka:9092",
    "antiAffinity=required",
    "state.storageClass=fast",
    "roles.ll2.replicas=2",
    "roles.ll2.secrets.files=of-ll2",
    "roles.ll2.env.HB_SET__BROKER__SECURITY__USER=ll2",
)
OPERATORS = ("monitoring.coreos.com/", "keda.sh/")


def helm(*arguments, settings=SETTINGS, values=()):
    options = [f"--set-file=settings={settings}"] if settings else []
    return subprocess.run(
        [
            Path(sys.executable).parent / "helm",
            *arguments,
            *options,
            *(f"--set={v}" for v in values),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


@functools.cache
def rendered(*values, settings=SETTINGS, release="wdbc"):
    """Return what the chart makes, as text."""
    process = helm("template", release, CHART, settings=settings, values=values)
    assert process.returncode == 0, process.stderr
    return process.stdout


def objects(*values, settings=SETTINGS):
    """Return what the chart makes, by kind and name."""
    manifests = YAML(typ="safe").load_all(rendered(*values, settings=settings))
    return {
        (manifest["kind"], manifest["metadata"]["name"]): manifest
        for manifest in manifests
        if manifest
    }


def of_kind(kind, *values):
    return {name: manifest for (k, name), manifest in objects(*values).items() if k == kind}


def worker(stateful_set):
    (container,) = stateful_set["spec"]["template"]["spec"]["containers"]
    return container


def refused(*values, settings=SETTINGS, release="wdbc"):
    process = helm("template", release, CHART, settings=settings, values=values)
    assert process.returncode == 1
    return process.stderr


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["default", "everything"])
def test_helm_finds_nothing_to_complain_about(values):
    process = helm("lint", "--strict", CHART, values=values)
    assert process.returncode == 0, process.stdout
    assert "[WARNING]" not in process.stdout


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["default", "everything"])
def test_kubernetes_takes_it(version, values, tmp_path):
    manifests = [o for o in objects(*values).values() if not o["apiVersion"].startswith(OPERATORS)]
    assert len(manifests) >= 15
    assert validated(manifests, version, tmp_path) == ""
    manifests[0]["spec"]["made_up"] = 1
    assert "made_up" in validated(manifests, version, tmp_path), "it can say no"


def validated(manifests, version, folder):
    file = folder / "objects.yaml"
    YAML(typ="safe").dump_all(manifests, file)
    command = [Path(sys.executable).parent / "kubernetes-validate", "--strict", "--quiet"]
    process = subprocess.run(
        [*command, "-k", version, file], capture_output=True, text=True, check=False
    )
    return "" if process.returncode == 0 else process.stdout + process.stderr


def test_every_role_has_a_set_of_its_own():
    sets = of_kind("StatefulSet")
    assert [worker(manifest)["args"] for manifest in sets.values()] == [
        ["worker", "--role", role] for role in roles(ENSEMBLE)
    ]
    budgets, policies = of_kind("PodDisruptionBudget"), of_kind("NetworkPolicy")
    assert set(budgets) == set(sets) == set(policies) - {"wdbc-setup"}
    for name, manifest in sets.items():
        selector = manifest["spec"]["selector"]["matchLabels"]
        labels = manifest["spec"]["template"]["metadata"]["labels"]
        assert selector.items() <= labels.items()
        assert budgets[name]["spec"]["selector"]["matchLabels"] == selector
        assert policies[name]["spec"]["podSelector"]["matchLabels"] == selector
        spread = manifest["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
        (term,) = spread["preferredDuringSchedulingIgnoredDuringExecution"]
        assert term["podAffinityTerm"]["labelSelector"]["matchLabels"] == selector
    selectors = [tuple(p["spec"]["podSelector"]["matchLabels"].values()) for p in policies.values()]
    assert len(set(selectors)) == len(selectors)


def test_workers_read_the_same_settings_with_their_own_places():
    manifests = objects("broker.bootstrap=kafka:9092")
    for name in ("wdbc-settings", "wdbc-setup"):
        data = manifests["ConfigMap", name]["data"]["ensemble.toml"]
        assert tomllib.loads(data) == tomllib.loads(SETTINGS.read_text())
    for manifest in of_kind("StatefulSet", "broker.bootstrap=kafka:9092").values():
        container = worker(manifest)
        inside = load_settings(SETTINGS, environ={e["name"]: e["value"] for e in container["env"]})
        assert (inside.worker.web_host, inside.broker.bootstrap) == ("0.0.0.0", "kafka:9092")
        mounts = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}
        assert mounts["/etc/hb/ensemble.toml"] == "settings"
        assert mounts["/var/lib/hb"] == "state"
        # A folder below the volume's root: that one belongs to the cluster, and cannot be closed.
        assert inside.worker.state == Path("/var/lib/hb/state")
        (claim,) = manifest["spec"]["volumeClaimTemplates"]
        assert claim["metadata"]["name"] == "state"


@pytest.mark.parametrize("key", ["settings", "image.tag"])
def test_a_change_restarts_workers_one_by_one(key, tmp_path):
    file = tmp_path / "ensemble.toml"
    file.write_text(SETTINGS.read_text().replace('mode = "odds"', 'mode = "wm"'))
    before = of_kind("StatefulSet")
    changed = objects(settings=file) if key == "settings" else objects("image.tag=9.9.9")
    for name, manifest in before.items():
        now = changed["StatefulSet", name]
        assert now["spec"]["template"] != manifest["spec"]["template"]
        assert manifest["spec"]["updateStrategy"] == {"type": "RollingUpdate"}
        assert manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= 30


def test_an_image_can_be_pinned_by_its_digest():
    digest = "sha256:" + "0123456789abcdef" * 4
    pinned = objects(f"image.digest={digest}", "image.tag=9.9.9")
    images = {
        container["image"]
        for (kind, _), manifest in pinned.items()
        if kind in ("StatefulSet", "Job")
        for container in manifest["spec"]["template"]["spec"]["containers"]
    }
    assert images == {f"hedged-bandits@{digest}"}


def test_probes_ask_what_the_worker_answers():
    for manifest in of_kind("StatefulSet").values():
        container = worker(manifest)
        asked = {p: container[f"{p}Probe"]["httpGet"] for p in ("startup", "liveness", "readiness")}
        assert {p: get["path"] for p, get in asked.items()} == {
            "startup": "/healthz",
            "liveness": "/healthz",
            "readiness": "/readyz",
        }
        (port,) = container["ports"]
        assert {get["port"] for get in asked.values()} == {port["name"]}
        assert port["containerPort"] == ENSEMBLE.worker.web_port


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["default", "everything"])
def test_a_pod_may_do_little(values):
    manifests = objects(*values)
    pods = [
        o["spec"]["template"]["spec"]
        for (k, _), o in manifests.items()
        if k in {"StatefulSet", "Job"}
    ]
    assert len(pods) == 5
    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in (*pod["containers"], *pod.get("initContainers", [])):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert container["resources"]["limits"].keys() == {"memory"}


def test_a_role_may_have_secrets_of_its_own():
    manifests = of_kind("StatefulSet", *EVERYTHING)
    files = {
        name: volume["secret"]["secretName"]
        for name, manifest in manifests.items()
        for volume in manifest["spec"]["template"]["spec"]["volumes"]
        if volume["name"] == "secrets"
    }
    assert files.pop("wdbc-local-ll2") == "of-ll2"
    assert set(files.values()) == {"in-files"}
    environment = {e["name"]: e for e in worker(manifests["wdbc-local-ll2"])["env"]}
    assert environment["HB_SET__BROKER__SECURITY__USER"]["value"] == "ll2"
    assert environment["HB_WEB_TOKEN"]["valueFrom"]["secretKeyRef"]["name"] == "pages"
    assert "HB_SET__WORKER__INSECURE" not in environment


def test_topics_and_access_rules_come_first():
    job = of_kind("Job", *EVERYTHING)["wdbc-setup"]
    for manifest in (job, objects(*EVERYTHING)["ConfigMap", "wdbc-setup"]):
        assert manifest["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    pod = job["spec"]["template"]["spec"]
    steps = [c["args"] for c in (*pod["initContainers"], *pod["containers"])]
    assert steps == [["topics", "create"], ["acls", "apply"]]
    (alone,) = of_kind("Job")["wdbc-setup"]["spec"]["template"]["spec"]["containers"]
    assert alone["args"] == ["topics", "create"]


def test_rules_and_dashboards_are_the_projects_own(tmp_path):
    manifests = objects(*EVERYTHING)
    rules = manifests["PrometheusRule", "wdbc"]["spec"]
    wanted = [
        g for name in ("records", "alerts") for g in read_yaml(RULES / f"{name}.yml")["groups"]
    ]
    assert rules == {"groups": wanted}
    YAML(typ="safe").dump(rules, tmp_path / "rules.yml")
    promtool("check", "rules", tmp_path / "rules.yml")
    for file in dashboards():
        data = manifests["ConfigMap", f"wdbc-dashboard-{file.stem}"]["data"][file.name]
        assert data.strip() == file.read_text().strip()
        assert len(data) < 900_000, "a ConfigMap holds one megabyte"


def test_a_release_without_settings_has_rules_and_dashboards_alone():
    values = ("monitoring.rules=true", "monitoring.dashboards=true")
    kinds = {kind for kind, _ in objects(*values, settings=None)}
    assert kinds == {"PrometheusRule", "ConfigMap"}


def test_prometheus_learns_whose_worker_it_is():
    (monitor,) = of_kind("ServiceMonitor", *EVERYTHING).values()
    (endpoint,) = monitor["spec"]["endpoints"]
    fixed = {r["targetLabel"]: r.get("replacement") for r in endpoint["relabelings"]}
    assert fixed == {"job": "hb", "ensemble": ENSEMBLE.name, "instance": None}
    assert endpoint["authorization"]["credentials"]["name"] == "pages"
    (service,) = of_kind("Service").values()
    assert (
        monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    )
    labels = [s["spec"]["template"]["metadata"]["labels"] for s in of_kind("StatefulSet").values()]
    assert all(service["spec"]["selector"].items() <= pod_labels.items() for pod_labels in labels)
    setup = of_kind("Job")["wdbc-setup"]["spec"]["template"]["metadata"]["labels"]
    assert not service["spec"]["selector"].items() <= setup.items()


def test_an_ensemble_may_be_called_by_a_number(tmp_path):
    file = tmp_path / "ensemble.toml"
    file.write_text(SETTINGS.read_text().replace('name = "wdbc"', 'name = "123"'))
    monitor = objects(*EVERYTHING, settings=file)["ServiceMonitor", "wdbc"]
    (endpoint,) = monitor["spec"]["endpoints"]
    (name,) = [r for r in endpoint["relabelings"] if r["targetLabel"] == "ensemble"]
    assert name["replacement"] == "123"


def test_scaling_follows_lag_up_to_the_partitions(tmp_path):
    file = tmp_path / "ensemble.toml"
    file.write_text(SETTINGS.read_text().replace("partitions = 1", "partitions = 6"))
    manifests = objects("autoscaling.enabled=true", settings=file)
    for role in roles(ENSEMBLE):
        name = "wdbc-" + role.replace(":", "-")
        scaled = manifests["ScaledObject", name]["spec"]
        assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (1, 6)
        (trigger,) = scaled["triggers"]
        agent = role.replace(":", ".")
        assert trigger["metadata"]["query"] == (
            f'agent:hb_lag_records:sum{{ensemble="wdbc", agent="{agent}"}}'
        )
        assert "replicas" not in manifests["StatefulSet", name]["spec"], "KEDA decides"
    assert "agent:hb_lag_records:sum" in records()


def test_what_cannot_be_is_refused_with_a_sentence(tmp_path):
    assert "settings are missing: --set-file settings=ensemble.toml" in refused(settings=None)
    assert "roles.ll9: the settings have no such role" in refused("roles.ll9.replicas=2")
    assert "52 letters" in refused(release="x" * 48)
    assert "imag" in refused("imag.tag=1")
    broken = tmp_path / "broken.toml"
    broken.write_text("name = ")
    assert "this is no TOML" in refused(settings=broken)
    alike = tmp_path / "alike.toml"
    alike.write_text('name = "n"\n[learners.a-b]\n[learners.a_b]\n')
    assert "two learners would both be called wdbc-local-a-b" in refused(settings=alike)


def test_the_chart_has_the_projects_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = read_yaml(CHART / "Chart.yaml")
    assert chart["appVersion"] == chart["version"] == project["version"]
