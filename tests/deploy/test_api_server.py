"""What the chart makes is accepted by a real Kubernetes API server, in a dry run.

It runs where `kube-apiserver` and `etcd` are on the PATH, or named by HB_KUBE_APISERVER and
HB_ETCD. `tests/deploy/kubernetes/build` makes both; where there is Go, CI calls it and runs this
file last.
"""

import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.deploy.files import read_yaml
from tests.deploy.test_helm import EVERYTHING, objects

TOKEN = "the-test"
DEFINED = {"ServiceMonitor", "PrometheusRule", "ScaledObject"}
"""What is not Kubernetes' own: operators define it."""


def program(name):
    variable = f"HB_{name.replace('-', '_').upper()}"
    path = os.environ.get(variable) or shutil.which(name)
    if not path:
        where = f"on the PATH or named by {variable}"
        pytest.skip(f"needs {name}, {where}: tests/deploy/kubernetes/build makes it")
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(command, log):
    with log.open("wb") as file:
        process = subprocess.Popen(list(map(str, command)), stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of an API server with an empty store, which only this test talks to."""
    apiserver, etcd = program("kube-apiserver"), program("etcd")
    folder = tmp_path_factory.mktemp("kubernetes")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    (folder / "key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    (folder / "tokens").write_text(f"{TOKEN},test,1,system:masters\n")
    client, peer, port = (free_port() for _ in range(3))
    store, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    with (
        running(
            [etcd, f"--data-dir={folder / 'etcd'}", f"--listen-client-urls={store}",
             f"--advertise-client-urls={store}", f"--listen-peer-urls={peers}",
             f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}"],
            folder / "etcd.log",
        ),
        running(
            [apiserver, f"--etcd-servers={store}", "--bind-address=127.0.0.1",
             f"--secure-port={port}", f"--cert-dir={folder}", f"--token-auth-file={folder}/tokens",
             "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
             "--service-account-issuer=https://kubernetes.default.svc",
             f"--service-account-signing-key-file={folder}/key",
             f"--service-account-key-file={folder}/key"],
            folder / "apiserver.log",
        ) as process,
    ):  # fmt: skip
        address = f"https://127.0.0.1:{port}"
        while process.poll() is None and not ready(address):
            time.sleep(0.2)
        assert process.poll() is None, (folder / "apiserver.log").read_text()[-2000:]
        define(address, Path(apiserver).with_name("crds"))
        yield address


def define(address, folder):
    """Make the operators' kinds of objects known to the server."""
    definitions = [read_yaml(file) for file in folder.glob("*.yaml")]
    assert {one["spec"]["names"]["kind"] for one in definitions} == DEFINED, f"not in {folder}"
    for definition in definitions:
        path, spec = place(address, definition), definition["spec"]
        ask(address, f"{path}?fieldManager=hb", json.dumps(definition).encode())
        while not established(json.loads(ask(address, path))):
            time.sleep(0.2)
        versions = {version["name"] for version in spec["versions"] if version["served"]}
        while not versions <= served(address, spec["group"]):
            time.sleep(0.2)


def established(definition):
    conditions = definition.get("status", {}).get("conditions") or []  # at first it is null
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def served(address, group):
    """Return the versions of a group that the server serves."""
    groups = json.loads(ask(address, "/apis"))["groups"]
    return {
        version["version"] for one in groups if one["name"] == group for version in one["versions"]
    }


def ready(address):
    try:
        return ask(address, "/readyz") == b"ok"
    except OSError:
        return False


def ask(address, path, body=None):
    """Ask the server; its certificate is one that it has made for itself."""
    unchecked = ssl._create_unverified_context()
    request = urllib.request.Request(address + path, data=body, method="PATCH" if body else "GET")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    if body:
        request.add_header("Content-Type", "application/apply-patch+yaml")
    with urllib.request.urlopen(request, context=unchecked, timeout=30) as answer:
        return answer.read()


def place(address, manifest):
    """Return the path of an object, by what the server says about its kind."""
    version = manifest["apiVersion"]
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    kinds = json.loads(ask(address, group))["resources"]
    kind = next(k for k in kinds if k["kind"] == manifest["kind"] and "/" not in k["name"])
    inside = "/namespaces/default" if kind["namespaced"] else ""
    return f"{group}{inside}/{kind['name']}/{manifest['metadata']['name']}"


def refusal(address, manifest):
    """Apply an object in a dry run; return why it was refused, None if it was not."""
    options = "?dryRun=All&fieldManager=hb&fieldValidation=Strict"
    try:
        ask(address, place(address, manifest) + options, json.dumps(manifest).encode())
    except urllib.error.HTTPError as error:
        return json.loads(error.read())["message"]
    return None


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["plain", "everything"])
def test_the_chart_is_accepted(server, values):
    manifests = objects(*values)
    kinds = {"StatefulSet", "NetworkPolicy", "PodDisruptionBudget", "Job"}
    assert kinds | (DEFINED if values else set()) <= {kind for kind, _ in manifests}
    refused = {key: refusal(server, manifest) for key, manifest in manifests.items()}
    assert not {key: why for key, why in refused.items() if why}


@pytest.mark.parametrize("kind", ["StatefulSet", *sorted(DEFINED)])
def test_a_misspelt_field_is_refused(server, kind):
    manifests = objects(*EVERYTHING).values()
    correct = next(manifest for manifest in manifests if manifest["kind"] == kind)
    wrong = {**correct, "spec": {**correct["spec"], "replicaz": 1}}
    assert "replicaz" in refusal(server, wrong)
