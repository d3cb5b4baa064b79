"""Encrypted and authenticated connections, against a broker that demands them."""

import asyncio
import ssl
import tomllib
from pathlib import Path

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import TopicAuthorizationFailedError
from cryptography import x509
from cryptography.hazmat.primitives import serialization as s

from settings.errors import BrokerError, SettingsError
from settings.sections.base import Secret
from settings.sections.broker import BrokerSettings, SecuritySettings
from streams.broker import USER
from streams.broker.jars import lock, locks
from streams.broker.reaper import temporary_broker
from streams.engine import AgentSpec, EngineConfig
from streams.engine.state import CountsTable, EntriesTable
from streams.faust.app import create_app
from streams.kafka.acls import Rule, add
from streams.kafka.client.broker_release import broker_release
from streams.kafka.connection import admin_client, await_broker, explained
from streams.kafka.rights import Right
from streams.kafka.security import client_arguments, protection
from streams.kafka.topic_admin import create
from streams.kafka.topics import Topic
from tests.cli_runs import Hb
from tests.streams.app_kit import worker
from tests.streams.engine_kit import CELLS, PATIENCE, Counting, done, ids, until
from tests.streams.settings_kit import settings as app_settings

RECORDS = 2_000


@pytest.fixture(scope="module")
def secure_broker():
    """A broker with TLS and passwords, where `hb` may do everything and `guest` nothing."""
    with temporary_broker(users=(USER, "guest"), short_lived=True) as broker:
        yield broker


def changed(settings, bootstrap=None, **changes):
    """Return settings with other security, validated again."""
    values = {**settings.security.model_dump(exclude_none=True), **changes}
    filled = {key: value for key, value in values.items() if value is not None}
    return BrokerSettings(
        bootstrap=bootstrap or settings.bootstrap, security=SecuritySettings(**filled)
    )


def ways_in(broker):
    password, certificate = broker.settings(), broker.certificate_settings()
    shown = certificate.security
    combined = changed(password, cert_file=shown.cert_file, key_file=shown.key_file)
    return {"password": password, "certificate": certificate, "both": combined}


@pytest.mark.parametrize("way", ["password", "certificate", "both"])
async def test_a_record_goes_through(secure_broker, prefix, way):
    settings = ways_in(secure_broker)[way]
    topic = f"{prefix}secret"
    async with admin_client(settings) as admin:
        await create(admin, [Topic(topic, 1, 1)])
    arguments = client_arguments(settings)
    async with (
        AIOKafkaProducer(**arguments, transactional_id=topic) as producer,
        producer.transaction(),
    ):
        await producer.send_and_wait(topic, b"value")
    consumer = AIOKafkaConsumer(
        topic,
        **arguments,
        group_id=topic,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    async with consumer:
        assert (await consumer.getone()).value == b"value"


def wrong_settings(broker, plain, folder: Path):
    """Return what is wrong, the settings that are so, and what must be said of it."""
    good, certificate = broker.settings(), broker.certificate_settings()
    (folder / "wrong").write_text("guess")
    wrong = Secret(file=folder / "wrong")
    no_login = {"username": None, "password": None}
    bare = {**no_login, "ca_file": None, "protocol": "plaintext"}
    return {
        "wrong password": (changed(good, password=wrong), "does not accept the user name and pass"),
        "unknown user": (
            changed(good, username="nobody"),
            "does not accept the user name and pass",
        ),
        "other mechanism": (changed(good, mechanism="SCRAM-SHA-256"), "does not offer"),
        "unknown authority": (changed(good, ca_file=None), "certificate is not trusted"),
        "no encryption": (changed(good, **bare), "it ends the connection"),
        "no log-in": (changed(good, protocol="ssl", **no_login), "it ends the connection"),
        "no certificate": (
            changed(certificate, cert_file=None, key_file=None),
            "certificate required",
        ),
        "log-in where none is": (
            changed(good, plain, protocol="sasl_plaintext", ca_file=None),
            "does not ask for a password",
        ),
        "encryption where none is": (changed(good, plain), "it ends the connection"),
    }


MISTAKES = [
    "wrong password",
    "unknown user",
    "other mechanism",
    "unknown authority",
    "no encryption",
    "no log-in",
    "no certificate",
    "log-in where none is",
    "encryption where none is",
]


@pytest.mark.parametrize("case", MISTAKES)
async def test_each_mistake_is_explained_in_one_sentence(
    secure_broker, broker_address, tmp_path, case
):
    settings, sentence = wrong_settings(secure_broker, broker_address, tmp_path)[case]
    with pytest.raises(BrokerError, match=sentence) as caught:
        await await_broker(settings, 0.6)
    assert "\n" not in str(caught.value)
    assert settings.addresses[0] in str(caught.value)
    assert "guess" not in str(caught.value)


async def test_a_wrong_password_is_not_tried_again_and_again(secure_broker, tmp_path):
    settings, _ = wrong_settings(secure_broker, "127.0.0.1:1", tmp_path)["wrong password"]
    with pytest.raises(BrokerError, match="cannot use the broker"):
        await await_broker(settings, 3600)


async def test_a_user_without_rights_is_told(secure_broker, prefix):
    guest = secure_broker.settings("guest")
    await await_broker(guest)
    with pytest.raises(BrokerError, match=r"does not let guest do this \(TopicAuthorization"):
        async with admin_client(guest) as admin:
            await create(admin, [Topic(f"{prefix}forbidden", 1, 1)])


@pytest.mark.parametrize("kafka", [pinned.kafka for pinned in locks() if pinned != lock()])
async def test_an_earlier_kafka_refuses_and_allows_the_same(kafka):
    """And says which release it is."""
    topic, guest = Topic("wanted", 1, 1), "guest"
    with temporary_broker(users=(USER, guest), kafka=kafka, short_lived=True) as broker:
        with pytest.raises(BrokerError, match="does not let guest do this"):
            async with admin_client(broker.settings(guest)) as admin:
                await create(admin, [topic])
        async with admin_client(broker.settings()) as admin:
            assert kafka.startswith(f"{await broker_release(admin)}.")
            rights = [Right("topic", topic.name, operation) for operation in ("create", "describe")]
            await add(admin, [Rule(f"User:{guest}", right) for right in rights])
        async with admin_client(broker.settings(guest)) as admin:
            assert await create(admin, [topic]) == [topic.name]


def test_the_settings_hold_no_secret_and_the_files_are_private(secure_broker):
    text = repr(secure_broker.settings())
    password = secure_broker.settings().security.password.read()
    assert password not in text
    folder = secure_broker.data / "secrets"
    assert {path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())} == {0}
    for node in secure_broker.nodes:
        assert password not in node.log.read_text()
        assert password not in node.properties.read_text()


def test_the_certificates_vouch_for_loopback_only(secure_broker):
    folder = secure_broker.data / "secrets"
    server = x509.load_pem_x509_certificates((folder / "server.pem").read_bytes())[0]
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert all(ip.is_loopback for ip in names.get_values_for_type(x509.IPAddress))
    assert not list(folder.glob("ca*.key"))


def test_tls_arguments(secure_broker):
    context = protection(secure_broker.certificate_settings().security)["ssl_context"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    trusting = changed(secure_broker.settings(), check_hostname=False).security
    assert not protection(trusting)["ssl_context"].check_hostname


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot be read: No such file"), ("no PEM", "must be PEM")]
)
@pytest.mark.parametrize("key", ["ca_file", "cert_file"])
def test_unusable_files_are_named(tmp_path, key, content, message):
    file = tmp_path / "file.pem"
    if content:
        file.write_text(content)
    files = {key: file} if key == "ca_file" else {"cert_file": file, "key_file": file}
    with pytest.raises(SettingsError, match=f"broker.security.{key}: {file}.*{message}"):
        protection(SecuritySettings(protocol="ssl", **files))


def test_a_locked_key_opens_with_its_password_only(secure_broker, tmp_path):
    certificate = secure_broker.certificate_settings().security
    key = s.load_pem_private_key(certificate.key_file.read_bytes(), None)
    locked = tmp_path / "locked.pem"
    lock = s.BestAvailableEncryption(b"open sesame")
    locked.write_bytes(key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, lock))
    for word, opens in (("open sesame", True), ("wrong", False), (None, False)):
        secret = None
        if word:
            (tmp_path / "word").write_text(word)
            secret = Secret(file=tmp_path / "word")
        settings = changed(secure_broker.certificate_settings(), key_file=locked)
        security = settings.security.model_copy(update={"key_password": secret})
        if opens:
            assert "ssl_context" in protection(security)
        else:
            with pytest.raises(SettingsError, match="key_password"):
                protection(security)


def test_an_error_of_the_client_becomes_one_sentence():
    settings = BrokerSettings(bootstrap="127.0.0.1:1")
    sentence = str(explained(TopicAuthorizationFailedError("topic-name"), settings))
    assert sentence == (
        "the broker at 127.0.0.1:1 does not let this client do this"
        " (TopicAuthorizationFailedError); see hb acls"
    )


async def test_a_wrong_password_ends_the_start_at_once(secure_broker, tmp_path):
    file = tmp_path / "password"
    file.write_text("not this one")
    good = secure_broker.settings()
    wrong = good.security.model_copy(update={"password": Secret(file=file)})
    local = app_settings(state=tmp_path)
    app = create_app(
        local.model_copy(update={"broker": good.model_copy(update={"security": wrong})})
    )
    app.finalize()
    with pytest.raises(BrokerError, match="does not accept the user name and password"):
        await asyncio.wait_for(app._await_broker(app.reach), PATIENCE)
    # aiokafka closes the refused connection in its own time, without a way to wait for it.
    await asyncio.sleep(0.2)


def test_a_secure_one_says_what_a_settings_file_needs(secure_broker, monkeypatch, capsys):
    hb = Hb(monkeypatch, capsys)
    shown = hb("broker", "status", "--data", secure_broker.data, "--json").json["settings"]
    sections = [tomllib.loads(text)["broker"] for text in shown]
    assert [section["security"]["protocol"] for section in sections] == ["sasl_ssl", "ssl"]
    assert BrokerSettings.model_validate(sections[0]) == secure_broker.settings()
    assert BrokerSettings.model_validate(sections[1]) == secure_broker.certificate_settings()
    printed = hb("broker", "up", "--data", secure_broker.data).out
    assert all(text.strip() in printed for text in shown)


def counting(name, source, sink):
    return AgentSpec(
        name,
        (source,),
        lambda: [CountsTable("counts", 1, cells=CELLS), EntriesTable("seen")],
        lambda context: Counting(context, sink),
    )


async def read(client, topic, count):
    consumer = AIOKafkaConsumer(
        topic, **client, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    async with consumer:
        return [(await consumer.getone()).value for _ in range(count)]


async def test_two_agents_in_a_row_on_a_secure_broker(secure_broker, prefix, tmp_path):
    settings = secure_broker.settings()
    client = client_arguments(settings)
    client.pop("request_timeout_ms")
    config = EngineConfig(prefix.rstrip("."), prefix, client, tmp_path, f"{prefix}deadletter")
    agents = [
        counting("first", f"{prefix}in", f"{prefix}middle"),
        counting("second", f"{prefix}middle", f"{prefix}out"),
    ]
    logs = [config.changelog(agent.name) for agent in agents]
    logs += [config.shared_changelog(agent.name) for agent in agents]
    names = [f"{prefix}{name}" for name in ("in", "middle", "out", "deadletter")]
    async with admin_client(settings) as admin:
        compact = {"cleanup.policy": "compact"}
        await create(admin, [Topic(name, 1, 1) for name in names])
        await create(admin, [Topic(name, 1, 1, compact) for name in logs])
    async with AIOKafkaProducer(**client, linger_ms=5) as producer:
        for value in [*ids(range(RECORDS)), b"not JSON"]:
            await producer.send(f"{prefix}in", value)
    async with worker(config, *agents) as app:
        await until(lambda: done(app.engine, 2 * RECORDS + 1))
    out = [orjson.loads(value)["id"] for value in await read(client, f"{prefix}out", RECORDS)]
    assert out == list(range(RECORDS))
    assert await read(client, f"{prefix}deadletter", 1) == [b"not JSON"]
