"""The chart's pods as containers: what a kubelet would do with the rendered manifests.

Command, environment, mounts, user, probes and grace period are the manifests' own. A volume belongs
to root and the pod's `fsGroup`, as one of Kubernetes does. There is no scheduler, no service and no
network policy.
"""

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.containers.engine import Engine
from tests.containers.system import until
from tests.deploy.files import DEPLOY

Manifest = dict[str, Any]


@dataclass
class Pod:
    """A running container, and the manifest it came from."""

    name: str
    spec: Manifest
    address: str

    def answers(self, probe: str) -> bool:
        """Ask what a probe asks, from outside and by the pod's address, as a kubelet does."""
        (container,) = self.spec["containers"]
        get = container[f"{probe}Probe"]["httpGet"]
        (port,) = [p["containerPort"] for p in container["ports"] if p["name"] == get["port"]]
        url = f"http://{self.address}:{port}{get['path']}"
        timeout = container[f"{probe}Probe"]["timeoutSeconds"]
        try:
            with urllib.request.urlopen(url, timeout=timeout) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


class Release:
    """One release of the chart on a container engine, in a network where its broker is."""

    def __init__(self, engine: Engine, folder: Path, name: str, network: str) -> None:
        self.engine, self.folder, self.name, self.network = engine, folder, name, network
        self.pods: dict[str, Pod] = {}
        self.sets: dict[str, Manifest] = {}
        self.settings = folder / "ensemble.toml"

    def install(self, *values: str) -> None:
        """Render the chart and run its hooks to their end."""
        manifests = self._rendered(*values)
        self.sets = {o["metadata"]["name"]: o for o in manifests if o["kind"] == "StatefulSet"}
        for manifest in manifests:
            if manifest["kind"] == "ConfigMap":
                folder = self.folder / "configmaps" / manifest["metadata"]["name"]
                folder.mkdir(parents=True, exist_ok=True)
                for key, text in manifest["data"].items():
                    (folder / key).write_text(text)
        for job in (o for o in manifests if o["kind"] == "Job"):
            pod = job["spec"]["template"]["spec"]
            for container in (*pod.get("initContainers", []), *pod["containers"]):
                name = f"{job['metadata']['name']}-{container['name']}"
                self.engine.docker("run", "--rm", *self._options(name, pod, container))

    def _rendered(self, *values: str) -> list[Manifest]:
        command = [Path(sys.executable).parent / "helm", "template", self.name, DEPLOY / "helm"]
        command += [f"--set-file=settings={self.settings}", *(f"--set={v}" for v in values)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr
        return [manifest for manifest in YAML(typ="safe").load_all(process.stdout) if manifest]

    def scale(self, replicas: int) -> None:
        """Start what is missing and stop what is too much, the last first, all sets at once."""
        wanted = {
            f"{name}-{n}": manifest for name, manifest in self.sets.items() for n in range(replicas)
        }
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.stop, [name for name in self.pods if name not in wanted]))
            new = [item for item in wanted.items() if item[0] not in self.pods]
            self.pods |= {pod.name: pod for pod in pool.map(lambda item: self._start(*item), new)}
        self.await_ready()

    def roll(self) -> None:
        """Replace the pods of every set by those of the manifests as they are now, one by one."""
        for name, manifest in self.sets.items():
            for pod in sorted((p for p in self.pods if p.rpartition("-")[0] == name), reverse=True):
                self.stop(pod)
                self.pods[pod] = self._start(pod, manifest)
                self.await_ready()

    def await_ready(self) -> None:
        """Wait until every pod says that it is alive and ready."""
        for probe in ("startup", "readiness", "liveness"):
            until(
                lambda probe=probe: all(pod.answers(probe) for pod in self.pods.values()),
                lambda probe=probe: "\n".join(
                    self.engine.docker("logs", "--tail=20", pod.name, merge=True, check=False)
                    for pod in self.pods.values()
                    if not pod.answers(probe)
                ),
            )

    def _start(self, name: str, stateful_set: Manifest) -> Pod:
        spec = stateful_set["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        self.engine.docker("run", "--detach", *self._options(name, spec, container))
        template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        address = self.engine.docker("inspect", f"--format={template}", name).strip()
        return Pod(name, spec, address)

    def stop(self, name: str) -> None:
        """End a pod as a kubelet does; it must have ended by itself, and well."""
        grace = self.pods[name].spec["terminationGracePeriodSeconds"]
        began = time.monotonic()
        self.engine.docker("stop", f"--time={grace}", name)
        code = self.engine.docker("inspect", "--format={{.State.ExitCode}}", name).strip()
        assert (code, time.monotonic() - began < grace) == ("0", True), (
            name, code, self.engine.docker("logs", "--tail=20", name, merge=True),
        )  # fmt: skip
        self.engine.docker("rm", name)
        del self.pods[name]

    def remove(self) -> None:
        """Remove every pod and volume."""
        for name in self.pods:
            self.engine.docker("rm", "--force", name, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _options(self, name: str, pod: Manifest, container: Manifest) -> list[str]:
        """Return the arguments of `docker run` that mean what the manifest says."""
        user, closed = pod["securityContext"], container["securityContext"]
        options = [f"--name={name}", f"--hostname={name}", f"--network={self.network}"]
        options += [f"--user={user['runAsUser']}:{user['runAsGroup']}"]
        options += [f"--group-add={user['fsGroup']}", "--no-healthcheck"]
        options += ["--read-only"] if closed["readOnlyRootFilesystem"] else []
        options += [f"--cap-drop={cap}" for cap in closed["capabilities"]["drop"]]
        options += ["--security-opt=no-new-privileges"]
        options += [f"--memory={container['resources']['limits']['memory'].rstrip('i').lower()}"]
        options += [
            f"--env={variable['name']}={variable['value']}" for variable in container["env"]
        ]
        for mount in container["volumeMounts"]:
            options += self._mount(name, pod, mount)
        return [*options, container["image"], *container["args"]]

    def _mount(self, pod_name: str, pod: Manifest, mount: Manifest) -> list[str]:
        volume = next((v for v in pod["volumes"] if v["name"] == mount["name"]), None)
        if volume is not None and "emptyDir" in volume:
            return [f"--tmpfs={mount['mountPath']}"]
        mode = ":ro" if mount.get("readOnly") else ""
        if volume is not None:
            source = self.folder / "configmaps" / volume["configMap"]["name"] / mount["subPath"]
        else:  # it is claimed
            source = self.folder / "volumes" / f"{mount['name']}-{pod_name}"
            if not source.exists():
                source.mkdir(parents=True)
                os.chown(source, 0, pod["securityContext"]["fsGroup"])
                source.chmod(0o2770)
        return [f"--volume={source}:{mount['mountPath']}{mode}"]
