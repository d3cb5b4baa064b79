"""Ways to log in: passwords, a certificate, and signed tokens that live for a second.

One broker with all of them serves all tests. The pipeline runs as users run it: a worker in a
process of its own, and commands.
"""

import asyncio
import base64
import collections
import contextlib
import csv
import datetime as dt
import http.server
import json
import socket
import ssl
import threading
import time
from dataclasses import replace

import pytest
import typer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID
from engine_kit import PATIENCE
from user_kit import TOML, worker_process

from agents.worker import Worker
from cli.main import app
from settings.errors import BrokerError
from settings.loading import load_settings
from settings.render import broker_section
from settings.sections.broker import BrokerSettings, SecuritySettings
from streams.broker import USER, node
from streams.broker.jvm import java_command
from streams.broker.reaper import temporary_broker
from streams.kafka.acls import add, compare
from streams.kafka.connection import admin_client
from streams.kafka.rights import roles
from streams.kafka.topics import Topics
from tests.cli_runs import Hb

SECRET = "correct-horse"
WARD, DESK = "ward", "desk"
"""Who the worker is by its token, and who gives the commands."""
AUDIENCE, ISSUER = "kafka", "the-clinic"
KEY, OTHER_KEY = (rsa.generate_private_key(65537, 2048) for _ in range(2))
"""What tokens are signed with, and what a forger has."""
LOG_IN = 1.5
"""Seconds that a log-in by token is good for; a client asks for a new token after one."""
TIMES = 10
"""How often the worker's tokens and log-ins have to be renewed."""
LOGIN = "org.apache.kafka.common.security"
CHANGES = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN,OAUTHBEARER",
    "listener.name.client.scram-sha-256.sasl.jaas.config":
        f"{LOGIN}.scram.ScramLoginModule required;",
    "listener.name.client.plain.sasl.jaas.config":
        f'{LOGIN}.plain.PlainLoginModule required user_alice="{SECRET}";',
    # The broker itself has no token: the claim stands for one, as Kafka wants one of every server.
    "listener.name.client.oauthbearer.sasl.jaas.config":
        f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required"
        ' unsecuredLoginStringClaim_sub="broker";',
    "listener.name.client.oauthbearer.sasl.server.callback.handler.class":
        f"{LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "sasl.oauthbearer.expected.audience": AUDIENCE,
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "listener.name.client.oauthbearer.connections.max.reauth.ms": f"{1000 * LOG_IN:.0f}",
    # Not the client whose certificate the broker made: it needs access rules like everybody else.
    "super.users": "User:CN=hb-broker;User:hb;User:alice",
}  # fmt: skip


COMMANDS = (
    ("topics", "create"),
    ("topics", "check"),
    ("topics", "describe"),
    ("broker", "check"),
    ("status",),
    ("doctor",),
    ("diagnoses", "-n", "2"),
    ("diagnosis", "p0"),
    ("deadletters",),
    ("label", "p0=malignant", "--amend"),
    ("produce", "HISTORY", "--rate", "100"),
    ("replay",),
    ("forget", "p1", "--dry-run"),
    ("forget", "p1"),
    ("teach", "HISTORY"),
    ("deadletters", "--replay", "LETTERS"),
    ("audit",),
    ("acls", "apply"),
    ("acls", "check"),
)
"""All that log in and end by themselves; HISTORY and LETTERS stand for files."""
FINDING = {("doctor",), ("status",), ("acls", "check")}
"""Those that may find fault with this machine, these patients or these rules, and exit with 1."""
LASTING = (("worker",), ("up",))
"""Those that log in and stay; the first is the worker of each pipeline here."""
WITHOUT_LOG_IN = {
    *("acls print", "console", "down", "logs", "plan", "schema", "evaluate", "init", "demo"),
    *("build", "check", "dashboards", "docs", "fuzz", "sbom", "screenshots", "test"),
    *("bench", "experiments", "features", "settings"),
    *("broker up", "broker down", "broker status", "broker logs", "broker reset"),
}
"""Commands, and whole groups of them, that use no broker or only one that they start themselves."""


@pytest.fixture(scope="module")
def broker():
    """Start a broker that takes the keys of tokens from their issuer, as it may from no other."""
    with key_server() as keys, pytest.MonkeyPatch.context() as patch:
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}"

        def command(*arguments, **options):
            java, *rest = java_command(*arguments, **options)
            return [java, allowed, *rest]

        patch.setattr(node, "java_command", command)
        changes = {**CHANGES, "sasl.oauthbearer.jwks.endpoint.url": keys}
        with temporary_broker(users=(USER,), changes=changes, short_lived=True) as started:
            yield started


@pytest.fixture
def hb(monkeypatch, capsys):
    return Hb(monkeypatch, capsys)


def by_password(broker, folder, password):
    (folder / "password").write_text(password)
    return _settings(
        broker, mechanism="PLAIN", username="alice", password={"file": str(folder / "password")}
    )


def by_scram_256(broker, folder, user):
    """Give a user a password for the weaker of the two, and return how to log in with it."""
    admin = broker.settings()
    address = {"bootstrap.servers": ",".join(admin.addresses), "security.protocol": "SASL_SSL"}
    security = admin.security
    client = AdminClient(
        address
        | {"ssl.ca.location": str(security.ca_file), "sasl.mechanism": security.mechanism}
        | {"sasl.username": security.username, "sasl.password": security.password.read()}
    )
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    change = UserScramCredentialUpsertion(user, scram, SECRET.encode())
    client.alter_user_scram_credentials([change])[user].result(PATIENCE)
    (folder / "password").write_text(SECRET)
    password = {"file": str(folder / "password")}
    return _settings(broker, mechanism="SCRAM-SHA-256", username=user, password=password)


def by_function(broker, folder, url, monkeypatch, client):
    """Name a function of ours that returns tokens, as clouds with a scheme of their own need it."""
    log_in = base64.b64encode(f"{client}:{SECRET}".encode()).decode()
    kind = "async def" if client == DESK else "def"  # both may be named
    (folder / f"{client}_tokens.py").write_text(
        "import json, urllib.request\n"
        f"{kind} token():\n"
        f"    said = {{'Authorization': 'Basic {log_in}'}}\n"
        f"    asked = urllib.request.Request({url!r}, b'', said)\n"
        "    with urllib.request.urlopen(asked) as answer:\n"
        "        return json.load(answer)['access_token']\n"
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return _settings(broker, mechanism="OAUTHBEARER", token={"function": f"{client}_tokens:token"})


def by_token(broker, folder, url, secret=SECRET, client=DESK):
    (folder / "secret").write_text(secret)
    token = {"url": url, "client_id": client}
    token["client_secret"] = {"file": str(folder / "secret")}
    return _settings(broker, mechanism="OAUTHBEARER", token=token)


def _settings(broker, **log_in):
    access = broker.settings()
    security = {"protocol": "sasl_ssl", "ca_file": str(access.security.ca_file), **log_in}
    return BrokerSettings(
        bootstrap=access.bootstrap, security=SecuritySettings.model_validate(security)
    )


class Issuer(http.server.ThreadingHTTPServer):
    """Issues tokens that count as fresh for a second and expire `exp` seconds from now.

    issued, turned_away   when each client was given a token, and how often none because we are away
    """

    daemon_threads = True

    def __init__(self, exp=60, audience=AUDIENCE, name=ISSUER, key=KEY):
        super().__init__(("127.0.0.1", 0), _Counter)
        self.claims, self.exp, self.key = {"aud": audience, "iss": name}, exp, key
        self.issued, self.turned_away = collections.defaultdict(list), collections.Counter()
        self.away = False
        self.url = f"http://127.0.0.1:{self.server_port}/token"

    def issue(self, client):
        now = int(time.time())
        self.issued[client].append(time.time())
        claims = {**self.claims, "sub": client, "iat": now - 100, "exp": now + self.exp}
        parts = [json.dumps(part).encode() for part in ({"alg": "RS256", "kid": "1"}, claims)]
        signed = ".".join(map(base64_url, parts))
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return {"access_token": f"{signed}.{base64_url(signature)}", "expires_in": 1.0}

    def keys(self):
        """Return the key that a broker checks signatures with (RFC 7517)."""
        public = KEY.public_key().public_numbers()
        parts = {
            name: base64_url(getattr(public, name).to_bytes(256).lstrip(b"\0")) for name in "ne"
        }
        return {"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", **parts}]}

    def span(self, client):
        """Return for how many seconds a client has been asking."""
        times = self.issued[client]
        return times[-1] - times[0] if times else 0.0


def base64_url(content):
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


class _Counter(http.server.BaseHTTPRequestHandler):
    """Where clients ask for tokens, and brokers for keys."""

    def do_POST(self):
        credentials = self.headers.get("Authorization", "").removeprefix("Basic ")
        client, _, secret = base64.b64decode(credentials).decode().partition(":")
        if self.server.away:
            self.server.turned_away[client] += 1
            self.connection.shutdown(socket.SHUT_RDWR)
        elif secret == SECRET:
            self._answer(200, self.server.issue(client))
        else:
            self._answer(401, {"error": "invalid_client"})

    def do_GET(self):
        self._answer(200, self.server.keys())

    def _answer(self, status, document):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def issuer(**options):
    with Issuer(**options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def key_server():
    """Serve the keys for as long as there is the broker; give their address."""
    with issuer() as server:
        yield f"http://127.0.0.1:{server.server_port}/jwks"


def written(folder, name, broker, of):
    """Write the settings of an ensemble with a log-in to a file, and return it."""
    text = TOML.format(name=name, address="", partitions=2, mode="wm", context="")
    section = '[broker]\nbootstrap = ""\n'
    assert section in text
    file = folder / f"{of}.toml"
    file.write_text(text.replace(section, broker_section(broker)))
    return file


def grant(broker, file, *users):
    """Give users the rights of all roles of an ensemble, and no others."""
    settings = load_settings(file, environ={})

    async def give():
        async with admin_client(broker.settings()) as admin:
            for user in users:
                wanted = [replace(role, user=user) for role in roles(settings)]
                await add(admin, (await compare(admin, wanted)).missing)

    asyncio.run(give())


def patients_file(folder, first, count):
    file = folder / "patients.csv"
    with file.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["patient", "radius", "texture", "age", "site", "truth"])
        for i in range(first, first + count):
            label = "malignant" if i % 3 == 0 else "benign"
            rows.writerow([f"p{i}", 10 + i % 7, 20.5, 30 + i % 50, "left", label])
    return file


def wait_until(it_is_so):
    deadline = time.monotonic() + PATIENCE
    while not it_is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def used(hb, folder, file, enough, first=0):
    """Let patients come, fifty at a time, until it is enough; return how many came."""
    sent = 0
    deadline = time.monotonic() + PATIENCE
    while not sent or not enough():
        chosen = ("--settings", file)
        run = hb("produce", patients_file(folder, first + sent, 50), "--rate", 100, *chosen)
        assert run.code == 0, run.err
        sent += 50
        assert time.monotonic() < deadline
    return sent


def checked(hb, file, sent):
    """Wait until everything is learned; read what came, and audit it."""
    chosen = ("--settings", file)
    deadline = time.monotonic() + PATIENCE
    while (status := hb("status", "--json", *chosen)).json["labelled"] < sent:
        assert time.monotonic() < deadline, status.out
    shown = hb("diagnoses", "--json", "-n", sent, *chosen)
    assert len(shown.json["diagnoses"]) == sent
    audited = hb("audit", "--json", *chosen)
    assert audited.code == 0, audited.out
    assert [audited.json["figures"][name] for name in ("lost", "double", "differing")] == [0] * 3
    assert audited.json["figures"]["diagnoses"] == sent


@pytest.mark.parametrize("way", ["issuer", "function"])
def test_the_pipeline_by_tokens_that_live_for_a_second(
    broker, prefix, tmp_path, hb, monkeypatch, way
):
    """The worker's connections end with each token, ten times, and nothing is lost.

    Nor is anything while nobody issues tokens.
    """
    name = prefix.strip(".")
    with issuer() as tokens:

        def log_in(client):
            if way == "function":
                return by_function(broker, tmp_path, tokens.url, monkeypatch, client)
            return by_token(broker, tmp_path, tokens.url, client=client)

        desk = written(tmp_path, name, log_in(DESK), DESK)
        ward = written(tmp_path, name, log_in(WARD), WARD)
        grant(broker, desk, WARD, DESK)
        assert hb("topics", "create", "--settings", desk).code == 0
        with worker_process(ward):
            sent = used(hb, tmp_path, desk, lambda: tokens.span(WARD) > TIMES * LOG_IN)
            tokens.away = True
            wait_until(lambda: tokens.turned_away[WARD] > TIMES)
            tokens.away = False
            sent += used(hb, tmp_path, desk, lambda: True, sent)
            checked(hb, desk, sent)
            every_command(hb, tmp_path, desk)
        assert len(tokens.issued[WARD]) > TIMES


@pytest.mark.parametrize("way", ["scram-sha-256", "plain"])
def test_the_pipeline_by_password(broker, prefix, tmp_path, hb, way):
    """One user has the rights of all roles, the other is an administrator."""
    user = "alice" if way == "plain" else "nurse"
    log_in = by_password(broker, tmp_path, SECRET) if way == "plain" else None
    file = written(
        tmp_path, prefix.strip("."), log_in or by_scram_256(broker, tmp_path, user), user
    )
    grant(broker, file, user)
    assert hb("topics", "create", "--settings", file).code == 0
    with worker_process(file):
        checked(hb, file, used(hb, tmp_path, file, lambda: True))
        every_command(hb, tmp_path, file, administrator=way == "plain")


def every_command(hb, folder, file, *, administrator=False):
    """Give every command that talks to the broker; those above have been given already."""
    for arguments in COMMANDS:
        run = given(hb, arguments, folder, file, 100_000)
        if arguments[0] == "acls" and not administrator:
            assert run.code == 4, (arguments, run.out)
            assert "does not let" in run.err
            continue
        assert run.code in (0, 1), (arguments, run.err)
        assert run.code == 0 or arguments in FINDING, (arguments, run.out, run.err)


def given(hb, arguments, folder, file, first):
    """Give a command, with files where it needs them."""
    letters = folder / "letters.jsonl"
    topic = Topics.of(load_settings(file, environ={})).labels
    value = {"v": 1, "id": "p3", "label": "malignant", "at": 1}
    letters.write_text(json.dumps({"topic": topic, "value": value}) + "\n")
    files = {"HISTORY": patients_file(folder, first, 20), "LETTERS": letters}
    return hb(*(files.get(part, part) for part in arguments), "--settings", file)


def test_the_pipeline_by_certificate(broker, prefix, tmp_path, hb):
    """Who one is stands in the certificate."""
    way = broker.certificate_settings()
    file = written(tmp_path, prefix.strip("."), way, "certificate")
    refused = hb("topics", "create", "--settings", file)
    assert refused.code == 4
    assert "does not let" in refused.err
    grant(broker, file, "CN=hb")
    assert hb("topics", "create", "--settings", file).code == 0
    with worker_process(file):
        checked(hb, file, used(hb, tmp_path, file, lambda: True))
        every_command(hb, tmp_path, file)


@pytest.mark.parametrize(
    "arguments", [*COMMANDS, *LASTING], ids=lambda command: "-".join(command[:2])
)
def test_every_command_says_that_the_password_is_wrong(broker, prefix, tmp_path, hb, arguments):
    file = written(tmp_path, prefix.strip("."), by_password(broker, tmp_path, "guess"), "mistaken")
    run = given(hb, arguments, tmp_path, file, 0)
    assert "does not accept the user name and password" in " ".join((run.out + run.err).split())
    assert "Traceback" not in run.err
    assert run.code == (1 if arguments[0] == "doctor" else 4)


def test_no_command_is_left_out():
    """A new command either logs in above, or is known to do without."""
    tried = [*COMMANDS, *LASTING]
    left = {
        " ".join(path)
        for path in paths(typer.main.get_command(app))
        if not any(command[: len(path)] == path for command in tried)
    }
    assert {name if name in WITHOUT_LOG_IN else name.split()[0] for name in left} == WITHOUT_LOG_IN


def paths(command, path=()):
    """Yield the words of each command."""
    if not hasattr(command, "commands"):
        yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from paths(below, (*path, name))


@pytest.fixture(scope="module")
def dubious(tmp_path_factory):
    """Certificates that vouch for themselves: one for here, one that is over, one for elsewhere."""
    folder = tmp_path_factory.mktemp("dubious")
    for name, host, days in (("own", "localhost", 1), ("old", "localhost", -1), ("far", "far", 1)):
        (folder / f"{name}.pem").write_bytes(certificate(host, days))
    return folder


def certificate(host, days):
    """Return a certificate for a host that ends some days from now, with its key."""
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
    return private + pem


@contextlib.contextmanager
def tls_server(own, clients=None):
    """Shake hands with a certificate, and ask for clients' if theirs are named; give the port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=clients)
    context.load_cert_chain(own)
    context.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Counter)
    server.handle_error = lambda *_: None
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def mistaken(case, broker, folder, dubious):
    """Give settings with a mistake in them."""
    access = broker.certificate_settings()
    with contextlib.ExitStack() as stack:
        if case == "wrong password":
            yield by_password(broker, folder, "guess")
        elif "token" in case:
            tokens = stack.enter_context(issuer(**BAD_TOKENS.get(case, {})))
            url = "http://127.0.0.1:9/token" if case == "no issuer of tokens" else tokens.url
            secret = "guess" if case == "wrong secret for tokens" else SECRET
            yield by_token(broker, folder, url, secret)
        elif case == "own certificate of an unknown authority":
            own = {"cert_file": dubious / "own.pem", "key_file": dubious / "own.pem"}
            yield access.model_copy(update={"security": access.security.model_copy(update=own)})
        else:
            files = {"ca_file": str(dubious / "own.pem")}
            server, clients = "own.pem", None
            if case == "expired certificate":
                server, files = "old.pem", {"ca_file": str(dubious / "old.pem")}
            elif case == "other host":
                server, files = "far.pem", {"ca_file": str(dubious / "far.pem")}
            elif case == "unknown authority":
                files = {"ca_file": str(access.security.ca_file)}
            else:
                clients = dubious / "old.pem"
                files |= {"cert_file": str(clients), "key_file": str(clients)}
            port = stack.enter_context(tls_server(dubious / server, clients))
            security = SecuritySettings.model_validate({"protocol": "ssl", **files})
            yield BrokerSettings(bootstrap=f"localhost:{port}", security=security)


REFUSED_TOKEN = "does not accept the user name and password, or the token"
BAD_TOKENS = {
    # Kafka grants half a minute for clocks that differ.
    "expired token": {"exp": -60},
    "forged token": {"key": OTHER_KEY},
    "token for another audience": {"audience": "files"},
    "token of another issuer": {"name": "another"},
}
MISTAKES = {
    "wrong password": "does not accept the user name and password",
    **dict.fromkeys(BAD_TOKENS, REFUSED_TOKEN),
    "wrong secret for tokens": "refuses this client",
    "no issuer of tokens": "no token from",
    "expired certificate": "its certificate has expired",
    "other host": "its certificate is for another host name",
    "unknown authority": "its certificate is not trusted",
    "own certificate of an unknown authority": "it does not accept our certificate",
    "own certificate that has expired": "it does not accept our certificate",
}


@pytest.mark.parametrize("case", MISTAKES)
def test_each_mistake_is_one_sentence_from_a_command_and_a_worker(
    broker, tmp_path, prefix, hb, dubious, case
):
    with mistaken(case, broker, tmp_path, dubious) as settings:
        file = written(tmp_path, prefix.strip("."), settings, "mistaken")
        run = hb("status", "--settings", file)
        with pytest.raises(BrokerError) as caught:
            asyncio.run(Worker(load_settings(file, environ={})).run())
    sentence = str(caught.value)
    assert MISTAKES[case] in sentence
    assert "\n" not in sentence
    assert "guess" not in sentence
    assert run.code == 4
    assert " ".join(run.err.split()) == f"hb: {sentence}"
