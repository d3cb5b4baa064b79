"""`hb doctor` finds what is wrong, says what to do, and leaves nothing behind."""

import asyncio
import re
import socket
from types import SimpleNamespace

import pytest
from aiokafka.errors import KafkaTimeoutError
from pipeline_kit import publish

import agents.doctor
from settings.loading import load_settings
from streams.broker import EmbeddedBroker
from streams.engine.changelogs.changelog import META_KEY
from streams.kafka import broker_clock
from streams.kafka.connection import NotAllowedError, admin_client
from streams.kafka.topic_admin import create
from streams.kafka.topics import ENSEMBLE, Topics, declared
from tests.cli_runs import Hb
from tests.settings_files import GOOD
from tests.streams.engine_kit import PATIENCE


@pytest.fixture
def overrides(tmp_path, prefix, broker_address):
    (tmp_path / "ensemble.toml").write_text(GOOD)
    values = {
        "topics.prefix": prefix,
        "broker.bootstrap": broker_address,
        "worker.state": tmp_path / "state",
        "worker.web_port": 0,
    }
    return [f"{key}={value}" for key, value in values.items()]


@pytest.fixture
def doctor(monkeypatch, capsys, tmp_path, overrides):
    """Return a function that asks the doctor, and returns its findings by what they are about."""
    hb = Hb(monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)

    def ask(*changes, code=0, options=()):
        given = [part for value in [*overrides, *changes] for part in ("--set", value)]
        run = hb("doctor", "--json", *given, *options)
        assert run.code == code, run.err
        findings = run.json["findings"]
        for finding in findings:
            assert bool(finding["remedy"]) == (finding["verdict"] != "ok"), finding
        return {finding["what"]: finding for finding in findings}

    return ask


async def topics(settings, wanted=()):
    async with admin_client(settings.broker) as admin:
        await create(admin, wanted)
        return await admin.list_topics()


async def nothing_left(settings):
    async with asyncio.timeout(PATIENCE):  # a broker hears of a deletion after its controller
        while any(name.startswith("hb-doctor") for name in await topics(settings)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def test_a_machine_and_a_broker_in_order(doctor, overrides, tmp_path):
    findings = doctor(code=1)
    assert findings["topics"]["verdict"] == "trouble"
    assert findings["topics"]["remedy"] == "hb topics create"
    settings = load_settings(tmp_path / "ensemble.toml", overrides, environ={})
    asyncio.run(topics(settings, declared(settings)))
    findings = doctor()
    assert {finding["verdict"] for finding in findings.values()} <= {"ok", "warning"}
    assert findings["topics"]["verdict"] == findings["state"]["verdict"] == "ok"
    assert "give or take" in findings["clocks"]["found"]
    assert findings["rights"]["found"] == "enough for all roles"
    address = settings.broker.bootstrap
    assert re.fullmatch(rf"{address} answers, Kafka \d\.\d, 1 node", findings["broker"]["found"])
    asyncio.run(nothing_left(settings))


def test_everything_that_is_wrong_is_reported(doctor, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        findings = doctor(
            f"worker.web_port={port}",
            f"broker.bootstrap=127.0.0.1:{port}",
            "broker.patience=1s",
            code=1,
        )
    assert findings["pages"]["verdict"] == "warning"
    assert findings["broker"]["verdict"] == "trouble"
    assert "clocks" not in findings
    (tmp_path / "ensemble.toml").write_text("version = 2")
    assert doctor(code=1)["settings"]["remedy"] == "hb settings check"
    (tmp_path / "ensemble.toml").unlink()
    assert doctor()["settings"]["verdict"] == "warning"
    named = doctor(options=("--settings", "other.toml"), code=1)["settings"]
    assert (named["verdict"], named["found"]) == ("trouble", "there is no other.toml")
    assert named["remedy"] == "create one with: hb init"


def test_a_disk_without_room_is_trouble(monkeypatch, tmp_path):
    usage = agents.doctor.shutil.disk_usage(tmp_path)
    for free, verdict in [(2**40, "ok"), (2**31, "warning"), (2**20, "trouble")]:
        fixed = usage._replace(free=free)
        monkeypatch.setattr(agents.doctor.shutil, "disk_usage", lambda _, fixed=fixed: fixed)
        assert agents.doctor._room("state", tmp_path / "not" / "there").verdict == verdict


def test_a_folder_that_cannot_be_written_to_is_trouble(monkeypatch, tmp_path):
    # Root may write anywhere but on a file system that is mounted to be read only.
    monkeypatch.setattr(agents.doctor.os, "access", lambda path, _: path != tmp_path)
    finding = agents.doctor._room("disk", tmp_path / "state")
    assert (finding.verdict, finding.found) == ("trouble", f"{tmp_path} cannot be written to")


async def test_a_clock_that_is_off_is_measured(monkeypatch, broker):
    ahead = 3_600_000
    monkeypatch.setattr(broker_clock, "wall", lambda real=broker_clock.wall: real() - ahead)
    async with admin_client(broker) as admin:
        offset, error = await broker_clock.clock_offset(admin, broker)
    assert abs(offset - ahead) <= error + 1000


def test_state_of_others_is_trouble(doctor, overrides, tmp_path):
    settings = load_settings(tmp_path / "ensemble.toml", overrides, environ={})
    changelog = Topics.of(settings).changelog(ENSEMBLE)
    origin = {"owner": "somebody-else", "topics": {}, "meaning": {}}
    meta = {"version": 1, "layout": {}, "positions": {}, "origin": origin}
    asyncio.run(topics(settings, declared(settings)))
    asyncio.run(publish(settings.broker.bootstrap, changelog, [(META_KEY.decode(), meta)]))
    state = doctor(code=1)["state"]
    assert (state["verdict"], "somebody-else" in state["found"]) == ("trouble", True)


@pytest.mark.parametrize(
    ("ahead", "verdict"), [(900, "ok"), (-2_000, "warning"), (400_000, "trouble")]
)
async def test_clocks_apart_are_told(monkeypatch, broker, ahead, verdict):
    async def offset(*_):
        return ahead, 5.0

    monkeypatch.setattr(agents.doctor, "clock_offset", offset)
    finding = await agents.doctor._clocks(SimpleNamespace(broker=broker), None)
    assert (finding.verdict, bool(finding.remedy)) == (verdict, verdict != "ok")
    assert f"{abs(ahead)} ms {'ahead of' if ahead > 0 else 'behind'}" in finding.found


@pytest.mark.parametrize("refusal", [NotAllowedError("no"), KafkaTimeoutError(), TimeoutError()])
async def test_what_cannot_be_asked_is_said_with_a_remedy(monkeypatch, broker, refusal):
    async def refused(*_):
        raise refusal

    monkeypatch.setattr(agents.doctor, "clock_offset", refused)
    monkeypatch.setattr(agents.doctor, "abilities", refused)
    settings = SimpleNamespace(broker=broker)
    for check in (agents.doctor._clocks, agents.doctor._rights):
        finding = await check(settings, None)
        assert finding.verdict == "warning"
        assert finding.found.startswith("not ")
        assert finding.remedy


@pytest.mark.parametrize(
    ("able", "verdict", "found"),
    [
        ((), "trouble", "not enough for any role"),
        (("labels", "reader"), "ok", "enough for labels, reader"),
    ],
)
async def test_a_user_with_few_rights_is_told(
    monkeypatch, overrides, tmp_path, able, verdict, found
):
    async def few(*_):
        return SimpleNamespace(roles=able)

    monkeypatch.setattr(agents.doctor, "abilities", few)
    settings = load_settings(tmp_path / "ensemble.toml", overrides, environ={})
    finding = await agents.doctor._rights(settings, None)
    assert (finding.verdict, finding.found) == (verdict, found)
    assert bool(finding.remedy) == (verdict != "ok")


def test_a_machine_that_is_not_in_order(monkeypatch, tmp_path):
    monkeypatch.setattr(agents.doctor.resource, "getrlimit", lambda _: (256, 256))
    monkeypatch.setattr(agents.doctor, "_installed", lambda _: "0.0.1")
    monkeypatch.setattr(agents.doctor, "EmbeddedBroker", lambda: EmbeddedBroker(tmp_path / "none"))
    findings = {finding.what: finding for finding in agents.doctor.examine_machine()}
    findings["embedded broker"] = agents.doctor._embedded()
    for what, words in [
        ("open files", "may open 256"),
        ("packages", "aiokafka 0.0.1 is not"),
        ("embedded broker", "not created yet"),
    ]:
        assert findings[what].verdict == "warning"
        assert words in findings[what].found
        assert findings[what].remedy
