"""`hb doctor`: what an ensemble needs from this machine and its broker, checked one by one.

Each check returns a finding: ok, a warning or trouble, with what was found and what to do. A check
that cannot be made (no broker, no rights) says so. None of them changes anything except the one
that asks for the broker's time, which creates a topic and deletes it.
"""

import os
import platform
import resource
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from aiokafka.errors import KafkaError
from packaging.requirements import Requirement

from agents.extras import DISTRIBUTION, requirements
from agents.stored_state import check_stored
from agents.worker_pages import worker_pages
from settings.errors import BrokerError, HbError
from settings.model import Settings
from streams.broker import EmbeddedBroker
from streams.kafka.abilities import abilities
from streams.kafka.broker_clock import clock_offset
from streams.kafka.client.broker_release import broker_release
from streams.kafka.connection import admin_client, explained
from streams.kafka.rights import roles
from streams.kafka.security import located
from streams.kafka.topic_admin import compare, find
from streams.kafka.topics import declared

Verdict = Literal["ok", "warning", "trouble"]
_CLOCKS_DIFFER = 1_000.0
"""Milliseconds between two clocks that are worth mentioning."""
_CLOCKS_WRONG = 300_000.0
"""Beyond this, records' times are corrected (docs/times.md)."""
_ROOM, _LEAST_ROOM = 5 * 2**30, 2**30
_FILES = 1024
_ASK_AGAIN = "ask again when the broker has less to do; hb broker check asks the same"
_AS_ADMINISTRATOR = "ask as a user who may create a topic, such as the broker's administrator"


@dataclass(frozen=True)
class Finding:
    """One line of the report; `remedy` is what to do, empty if all is well."""

    what: str
    verdict: Verdict
    found: str
    remedy: str = ""


def examine_machine() -> Iterator[Finding]:
    """Look at what is here without any settings."""
    yield Finding("python", "ok", f"{platform.python_version()} on {platform.platform(terse=True)}")
    yield _packages()
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield Finding(
        "open files",
        "ok" if files >= _FILES else "warning",
        f"a process may open {files}",
        "" if files >= _FILES else f"raise the limit (ulimit -n) to {_FILES} or more",
    )


async def examine_ensemble(settings: Settings) -> AsyncIterator[Finding]:
    """Look at what these settings need: room, ports, a broker, topics, clocks, matching state."""
    yield _room("disk", settings.worker.state)
    if not settings.broker.bootstrap:
        yield _embedded()
    yield _port(settings)
    try:
        async with admin_client(settings.broker) as admin:
            async for finding in _examine_broker(settings, admin):
                yield finding
    except BrokerError as error:
        remedy = "start it, or correct [broker]; docs/broker.md explains the messages"
        if not settings.broker.bootstrap:
            remedy = "start it with: hb broker up"
        yield Finding("broker", "trouble", str(error), remedy)


async def _examine_broker(settings: Settings, admin: Any) -> AsyncIterator[Finding]:
    yield await _broker(settings, admin)
    yield await _rights(settings, admin)
    yield await _clocks(settings, admin)
    topics = declared(settings)
    differences = compare(topics, await find(admin, [topic.name for topic in topics]))
    if differences:
        different = {difference.topic for difference in differences}
        summary = f"{len(different)} of {len(topics)} not as declared"
        missing = any(difference.what == "topic" for difference in differences)
        remedy = f"hb topics {'create' if missing else 'check'}"
        yield Finding("topics", "trouble", summary, remedy)
    else:
        yield Finding("topics", "ok", f"{len(topics)}, as the settings declare them")
    yield await _state(settings)


async def _broker(settings: Settings, admin: Any) -> Finding:
    """Say which broker answers."""
    nodes = len((await admin.describe_cluster())["brokers"])
    try:
        release = await broker_release(admin)
    except (KafkaError, NotImplementedError):  # older than the question
        release = None
    kafka = f"Kafka {release}" if release else "of a version that it does not tell"
    where, noun = ", ".join(located(settings.broker).addresses), "node" if nodes == 1 else "nodes"
    return Finding("broker", "ok", f"{where} answers, {kafka}, {nodes} {noun}")


def _packages() -> Finding:
    """Look at the versions of what is installed, and at which extras are complete."""
    wrong: list[str] = []
    complete: list[str] = []
    incomplete: list[str] = []
    for extra, texts in requirements().items():
        needed = [
            requirement for requirement in map(Requirement, texts) if _applies(requirement, extra)
        ]
        installed = {requirement.name: _installed(requirement.name) for requirement in needed}
        wrong += [
            f"{requirement.name} {present} is not {requirement.specifier}"
            for requirement in needed
            if (present := installed[requirement.name]) and present not in requirement.specifier
        ]
        missing = [name for name, present in installed.items() if present is None]
        (incomplete if missing else complete).append(extra)
    text = f"hb {version(DISTRIBUTION)} with {', '.join(filter(None, complete)) or 'no extras'}"
    if wrong:
        return Finding(
            "packages", "warning", "; ".join(dict.fromkeys(wrong)), "install from the lock file"
        )
    if incomplete:
        text += f"; without {', '.join(incomplete)}"
    return Finding("packages", "ok", text)


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _room(subject: str, folder: Path) -> Finding:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        problem = f"{existing} cannot be written to"
        return Finding(
            subject, "trouble", problem, "let this user write there, or set worker.state"
        )
    free = shutil.disk_usage(existing).free
    room = f"{free / 2**30:.1f} GiB free for {folder}"
    if free >= _ROOM:
        return Finding(subject, "ok", room)
    verdict: Verdict = "warning" if free >= _LEAST_ROOM else "trouble"
    return Finding(subject, verdict, room, "free some space: workers stop when the disk is full")


def _embedded() -> Finding:
    broker = EmbeddedBroker()
    if not broker.exists:
        return Finding("embedded broker", "warning", "not created yet", "hb broker up")
    return _room("embedded broker", broker.data)


def _port(settings: Settings) -> Finding:
    worker = settings.worker
    if pages := worker_pages(worker.state):
        addresses = ", ".join(page.address for page in pages)
        return Finding("pages", "ok", f"served by running workers: {addresses}")
    family = socket.AF_INET6 if ":" in worker.web_host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((worker.web_host, worker.web_port))
        except OSError as error:
            reason = f"{worker.web_host}:{worker.web_port} cannot be used: {error.strerror}"
            remedy = "a worker takes the next free port; or set worker.web_port"
            return Finding("pages", "warning", reason, remedy)
    return Finding("pages", "ok", f"{worker.web_host}:{worker.web_port} is free")


async def _rights(settings: Settings, admin: Any) -> Finding:
    """Look at which roles the user of these settings can play."""
    try:
        able = (await abilities(admin, settings)).roles
    except HbError as refusal:
        return Finding("rights", "warning", f"not looked up: {refusal}", _ASK_AGAIN)
    except (KafkaError, TimeoutError) as refusal:
        why = explained(refusal, settings.broker)
        return Finding("rights", "warning", f"not looked up: {why}", _ASK_AGAIN)
    if not able:
        return Finding("rights", "trouble", "not enough for any role", "hb broker check, hb acls")
    everything = len(able) == len(roles(settings))
    return Finding("rights", "ok", f"enough for {'all roles' if everything else ', '.join(able)}")


async def _clocks(settings: Settings, admin: Any) -> Finding:
    try:
        ahead, error = await clock_offset(admin, settings.broker)
    except HbError as refusal:
        return Finding("clocks", "warning", f"not compared: {refusal}", _AS_ADMINISTRATOR)
    except (KafkaError, TimeoutError) as refusal:
        why = explained(refusal, settings.broker)
        return Finding("clocks", "warning", f"not compared: {why}", _AS_ADMINISTRATOR)
    side = "ahead of" if ahead > 0 else "behind"
    offset = f"the broker's is {abs(ahead):.0f} ms {side} ours (give or take {error:.0f})"
    apart = abs(ahead) - error
    if apart <= _CLOCKS_DIFFER:
        return Finding("clocks", "ok", offset)
    verdict: Verdict = "warning" if apart <= _CLOCKS_WRONG else "trouble"
    return Finding("clocks", verdict, offset, "synchronise both by NTP; see docs/times.md")


async def _state(settings: Settings) -> Finding:
    try:
        await check_stored(settings)
    except HbError as error:
        return Finding("state", "trouble", str(error), "docs/settings.md, What may change")
    return Finding("state", "ok", "the state fits these settings")
