"""Ways to log in besides SCRAM: a plain password, and tokens that live for a second."""

import base64
import contextlib
import datetime as dt
import json
import ssl
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from settings.errors import BrokerError
from settings.sections.broker import BrokerSettings, SecuritySettings
from streams.broker import USER
from streams.broker.reaper import temporary_broker
from streams.kafka.admin import create
from streams.kafka.connection import admin_client, await_broker
from streams.kafka.security import client_arguments
from streams.kafka.topics import Topic

SECRET = "correct-horse"
LOGIN = "org.apache.kafka.common.security"
CHANGES = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
    "listener.name.client.plain.sasl.jaas.config":
        f'{LOGIN}.plain.PlainLoginModule required user_alice="{SECRET}";',
    # Tokens are not signed in this test, but they do expire, and connections with them.
    "listener.name.client.oauthbearer.sasl.jaas.config":
        f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required"
        ' unsecuredLoginStringClaim_sub="broker";',
    "listener.name.client.oauthbearer.connections.max.reauth.ms": "1000",
    "super.users": "User:CN=hb-broker;User:CN=hb;User:hb;User:alice;User:carol",
}  # fmt: skip


@pytest.fixture(scope="module")
def broker():
    with temporary_broker(users=(USER,), changes=CHANGES) as made:
        yield made


def by_password(broker, folder, password):
    (folder / "password").write_text(password)
    return _settings(
        broker, mechanism="PLAIN", username="alice", password={"file": str(folder / "password")}
    )


def by_token(broker, folder, url, secret=SECRET):
    (folder / "secret").write_text(secret)
    token = {"url": str(url), "client_id": "carol"}
    token["client_secret"] = {"file": str(folder / "secret")}
    return _settings(broker, mechanism="OAUTHBEARER", token=token)


def _settings(broker, **log_in):
    known = broker.settings()
    security = {"protocol": "sasl_ssl", "ca_file": str(known.security.ca_file), **log_in}
    return BrokerSettings(
        bootstrap=known.bootstrap, security=SecuritySettings.model_validate(security)
    )


@contextlib.asynccontextmanager
async def issuer(life=1.0, exp=60.0):
    """Serve tokens that count as fresh for `life` seconds and expire `exp` seconds from now."""

    async def issue(request):
        if request.headers.get("Authorization") != f"Basic {_encoded(f'carol:{SECRET}'.encode())}":
            return web.json_response({"error": "invalid_client"}, status=401)
        now = time.time()
        claims = {"sub": "carol", "iat": now - 100, "exp": now + exp}
        parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
        token = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
        return web.json_response({"access_token": f"{token}.", "expires_in": life})

    site = web.Application()
    site.router.add_post("/token", issue)
    async with TestServer(site) as server:
        yield server.make_url("/token")


def _encoded(data):
    return base64.b64encode(data).decode()


async def test_a_plain_password(broker, prefix, tmp_path):
    settings = by_password(broker, tmp_path, SECRET)
    async with admin_client(settings) as admin:
        await create(admin, [Topic(f"{prefix}plain", 1, 1)])
    with pytest.raises(BrokerError, match="does not accept the user name and password"):
        await await_broker(by_password(broker, tmp_path, "guess"), 3600)


async def test_ten_tokens_under_load(broker, prefix, tmp_path):
    topic = f"{prefix}tokens"
    async with issuer() as url:
        settings = by_token(broker, tmp_path, url)
        async with admin_client(settings) as admin:
            await create(admin, [Topic(topic, 1, 1)])
        arguments = client_arguments(settings)
        provider = arguments["sasl_oauth_token_provider"]
        sent = 0
        async with AIOKafkaProducer(**arguments, enable_idempotence=True) as producer:
            while provider.fetched < 10:
                await producer.send_and_wait(topic, b"%d" % sent)
                sent += 1
        got = []
        consumer = AIOKafkaConsumer(
            topic, **client_arguments(settings), auto_offset_reset="earliest"
        )
        async with consumer:
            while len(got) < sent:
                got.append(int((await consumer.getone()).value))
    assert got == list(range(sent)), "every record once and in order, whatever the connection did"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"exp": -30.0}, "does not accept .* the token"),
        ({"secret": "guess"}, "refuses this client"),
        ({"gone": True}, "no token from"),
    ],
)
async def test_tokens_that_do_not_do(broker, tmp_path, given, said):
    async with issuer(exp=given.get("exp", 60.0)) as url:
        place = "http://127.0.0.1:9/token" if given.get("gone") else url
        settings = by_token(broker, tmp_path, place, given.get("secret", SECRET))
        with pytest.raises(BrokerError, match=said) as caught:
            await await_broker(settings, 3600)
    assert "guess" not in str(caught.value)


@contextlib.asynccontextmanager
async def dubious_server(folder, host, days):
    """Serve TLS with a certificate for a host that ends some days from now; give its port."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dubious")])
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(days=30))
    builder = builder.not_valid_after(now + dt.timedelta(days=days))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), False)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "dubious.pem").write_bytes(private + pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "dubious.pem")
    server = TestServer(web.Application())
    await server.start_server(ssl=context)
    try:
        yield server.port
    finally:
        await server.close()


@pytest.mark.parametrize(
    ("host", "days", "trusted", "said"),
    [
        ("localhost", -1, True, "its certificate has expired"),
        ("elsewhere.example", 1, True, "its certificate is for another host name"),
        ("localhost", 1, False, "its certificate is not trusted"),
    ],
)
async def test_certificates_that_do_not_do(tmp_path, host, days, trusted, said):
    async with dubious_server(tmp_path, host, days) as port:
        security = {"protocol": "ssl"}
        if trusted:
            security["ca_file"] = str(tmp_path / "dubious.pem")
        settings = BrokerSettings(
            bootstrap=f"localhost:{port}", security=SecuritySettings.model_validate(security)
        )
        with pytest.raises(BrokerError, match=said) as caught:
            await await_broker(settings, 3600)
    assert "\n" not in str(caught.value)
