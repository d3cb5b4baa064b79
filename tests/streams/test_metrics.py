"""`/metrics` on a real broker: after kill -9, the same on two workers, and as the audit has it."""

import asyncio
import contextlib
import http.server
import re
import signal
import subprocess
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from engine_kit import PATIENCE
from pipeline_kit import (
    arrive,
    await_state,
    create_topics,
    label,
    learned,
    patients,
    publish,
    settings,
)
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from agents.monitor.metrics_page import ALL
from agents.monitor.state_metrics import state_metrics
from agents.monitor.watch import Watch
from agents.worker_process import command
from audit import audit
from audit.metric_values import read_page, samples
from settings.loading import load_settings
from streams.engine.meters import of_ensemble
from streams.kafka.topics import Topics
from tests.cli_runs import Hb
from tests.conftest import need_tool

N = 120


@pytest.fixture
def hb(monkeypatch, capsys):
    return Hb(monkeypatch, capsys)


class Worker:
    """`hb worker` with all roles and a state folder of its own."""

    def __init__(self, file, name):
        self._process = subprocess.Popen(
            command(file, [f"worker.state={file.parent / name}"]),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines = []
        for line in self._process.stdout:
            self._lines.append(line)
            if match := re.search(r"worker runs .* (?:pages|console) at (http://\S+)", line):
                self.page = f"{match[1]}/metrics"
                break
        else:
            raise AssertionError("".join(self._lines))
        self._drain = threading.Thread(
            target=self._lines.extend, args=(self._process.stdout,), daemon=True
        )
        self._drain.start()

    def end(self, number=signal.SIGTERM):
        self._process.send_signal(number)
        code = self._process.wait(30)
        self._drain.join()
        self._process.stdout.close()
        if number == signal.SIGTERM:
            assert code == 0, "".join(self._lines)


@contextlib.contextmanager
def workers(file, *names):
    """Start workers; those still running at the end are stopped."""
    running = {}
    try:
        with ThreadPoolExecutor() as pool:
            starts = [pool.submit(Worker, file, name) for name in names]
        running |= {name: start.result() for name, start in zip(names, starts, strict=True)}
        yield running
    finally:
        for worker in running.values():
            worker.end()


def test_two_workers_a_kill_and_the_audit_agree(broker_address, prefix, tmp_path, hb):
    changes = ("topics.partitions=2", "worker.session_timeout=6s", "ensemble.mode=ah",
               "ensemble.per_target=0.2", "ensemble.fnr_target=0.1",
               "ensemble.miss_target=0.1")  # fmt: skip
    settings(tmp_path, broker_address, prefix.strip(".-_"))
    file = tmp_path / "ensemble.toml"
    file.write_text(_with(file.read_text(), changes))
    config = load_settings(file)
    asyncio.run(create_topics(config))
    with workers(file, "one", "two") as running:
        first = asyncio.run(a_stream(config, running, file))
        pages = [running[name].page for name in ("one", "two")]
        for page in pages:
            await_figures(page, first)
        assert value(first, "hb_labelled_total", scope="ensemble", learner="") == N - 10
        assert value(first, "hb_fusions_total", complete="true") == N
        assert value(first, "hb_labels_total", outcome="duplicate") == 3
        assert value(first, "hb_labels_total", outcome="conflict") == 2
        assert value(first, "hb_pending") == 11
        assert value(first, "hb_parked_labels") == 1
        report = asyncio.run(audit(config, workers=pages))
        assert report.findings.clean, report.findings.list()
        for page in pages:
            check = report.findings.tables[f"metrics at {page}"]
            assert (check.differing, check.note) == (0, "")
            assert check.values == len(first) > 60
        assert report.findings.tables["metrics of the state"].values == len(first)
        text = fetched(pages[0])
        open_metrics(pages[0])
    lint(text)
    complete(text, config.name)
    planted(hb, file, text)


def complete(text, ensemble):
    """Every metric is served, and each of its samples says whose it is."""
    families = list(text_string_to_metric_families(text))
    assert {family.name for family in families} == {
        spec.name.removesuffix("_total") for spec in ALL
    }
    owners = {sample.labels.get("ensemble") for family in families for sample in family.samples}
    assert owners == {ensemble}


def open_metrics(page):
    """Whoever asks for OpenMetrics gets it, with the same metrics as everybody else."""
    wanted = "application/openmetrics-text; version=1.0.0"
    request = urllib.request.Request(page, headers={"Accept": wanted})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith(wanted)
        families = openmetrics.text_string_to_metric_families(answer.read().decode())
    assert {metric.name for metric in families} == {s.name.removesuffix("_total") for s in ALL}


def await_figures(page, wanted):
    """Wait until a page serves these figures; each may be seconds behind."""
    deadline = time.monotonic() + PATIENCE
    while (figures := read_page(page).samples) != wanted:
        assert time.monotonic() < deadline, dict(figures.items() ^ wanted.items())
        time.sleep(0.1)


def _with(text, changes):
    """Write changes into the settings file, as the workers read it."""
    sections = {}
    for change in changes:
        key, value = change.split("=")
        section, name = key.split(".")
        value = value if re.fullmatch(r"true|[\d.]+", value) else f'"{value}"'
        sections.setdefault(section, {})[name] = value
    for section, keys in sections.items():
        for name in keys:
            text = re.sub(rf"(?m)^{name} = .*\n", "", text)
        lines = "\n".join(f"{name} = {value}" for name, value in keys.items())
        text = text if f"[{section}]" in text else f"{text}\n[{section}]\n"
        text = text.replace(f"[{section}]\n", f"[{section}]\n{lines}\n", 1)
    return text


async def a_stream(config, running, file):
    """Let patients come and labels, and kill a worker in between; return the figures at last."""
    ids, features, truth = patients(N)
    half = {name: column[: N // 2] for name, column in features.items()}
    second_half = {name: column[N // 2 :] for name, column in features.items()}
    async with Watch(config) as watch:
        await arrive(config, ids[: N // 2], half)
        await label(config, ids[:30], truth[:30])
        await settled(watch, 10)
        running.pop("two").end(signal.SIGKILL)
        await arrive(config, ids[N // 2 :], second_half)
        await label(config, ids[30 : N - 10], truth[30 : N - 10])
        running["two"] = await asyncio.to_thread(Worker, file, "two")
        await settled(watch, N - 10)
        # The same labels again, two others, one for somebody unknown, and a bad record.
        await label(config, ids[:3], truth[:3])
        contrary = ["benign" if word == "malignant" else "malignant" for word in truth[3:5]]
        await label(config, ids[3:5], contrary)
        await label(config, ["nobody"], ["benign"])
        await publish(config.broker.bootstrap, Topics.of(config).labels, [("bad", b"{")])
    metrics = state_metrics(await await_state(config, over))
    return samples(of_ensemble(config.name, metrics))


async def settled(watch, n):
    async with asyncio.timeout(PATIENCE):
        while (await watch.refresh(0)).counts["settled"] < n:  # noqa: ASYNC110 - on the broker
            await asyncio.sleep(0.1)


def over(state):
    """Tell whether everything that was sent has become part of the state."""
    wanted = {
        "prediction_taken": 3 * N,
        "diagnosed_complete": N,
        "settled": N - 10,
        "label_duplicate": 3,
        "label_conflict": 2,
    }
    counts = {name: state.counts[name] for name in wanted}
    return counts == wanted and state.parked == 1 and learned(state, N - 10)


def value(metrics, name, **labels):
    (ensemble,) = {dict(named)["ensemble"] for _, named in metrics}
    return metrics[name, frozenset({"ensemble": ensemble, **labels}.items())]


def fetched(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()


def lint(text):
    """Hold a scrape against promtool's linter."""
    command = [need_tool("promtool", "prometheus"), "check", "metrics"]
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def planted(hb, file, text):
    """A worker whose figures are wrong is found, and the metric is named."""
    text = re.sub(r"(?m)^(hb_state_age_seconds\S*) .*", r"\1 0", text)
    wrong = re.sub(rf'(?m)^(hb_fusions_total.*complete="true".*) {N:.1f}$', r"\1 119.0", text)
    assert wrong != text
    with serving(wrong) as page:
        run = hb("audit", "--settings", file, "--metrics", page, "--json")
    assert run.code == 1, run.err
    findings = run.json["findings"]
    assert [(finding["kind"], finding["times"]) for finding in findings] == [("differing", 1)]
    assert "(hb_fusions_total)" in findings[0]["where"]


@contextlib.contextmanager
def serving(text):
    """Serve a text at every address of a port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
