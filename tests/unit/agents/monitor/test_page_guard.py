"""Every page asks who wants it, by which name, and how often."""

import asyncio
import contextlib
import functools
import itertools
import ssl
from collections import Counter

import pytest
from aiohttp import ClientError, ClientSession, TCPConnector, encode_basic_auth, web
from aiohttp.test_utils import TestClient, TestServer

from agents.monitor import page_guard
from agents.monitor.page_guard import BURST, RATE, TOGETHER, Budget, guard, has_token
from settings.errors import SettingsError
from settings.sections.worker import WorkerSettings
from streams.broker.certificates import SecretFiles
from streams.faust.web import page_tls

EVERYWHERE = "0.0.0.0"
TOKEN = "correct-horse"
PAGES = ("/", "/metrics", "/healthz", "/readyz", "/no-such-page")


def worker(folder=None, **options):
    if folder is not None:
        (folder / "token").write_text(f"{TOKEN}\n")
        options["web_token"] = {"file": str(folder / "token")}
    return WorkerSettings.model_validate(options)


@contextlib.asynccontextmanager
async def served(settings):
    async def say(request):
        return web.Response(text="details", status=503 if request.path == "/readyz" else 200)

    site = web.Application(middlewares=[guard(settings)])
    for path in PAGES[:-1]:
        site.router.add_get(path, say)
    server = TestServer(site)
    await server.start_server(ssl=page_tls(settings))
    async with TestClient(server) as client:
        yield client


@pytest.mark.parametrize("path", PAGES)
async def test_a_foreign_name_is_refused_on_every_page(path):
    for options, host, status in [
        ({}, "rebound.example", 403),
        ({}, "10.1.2.3", 403),
        ({"web_host": EVERYWHERE, "insecure": True}, "rebound.example", 403),
        ({"web_host": EVERYWHERE, "insecure": True}, "10.1.2.3:6066", None),
        ({"web_host": EVERYWHERE, "insecure": True, "web_names": ["worker-1"]}, "worker-1", None),
    ]:
        async with served(worker(**options)) as client:
            answer = await client.get(path, headers={"Host": host})
            assert answer.status == (status or {"/readyz": 503, PAGES[-1]: 404}.get(path, 200))


async def test_the_token_is_asked_for_and_probes_get_their_status_only(tmp_path):
    async with served(worker(tmp_path, web_host=EVERYWHERE)) as client:
        for path in ("/", "/metrics", "/no-such-page"):
            answer = await client.get(path)
            assert answer.status == 401
            assert answer.headers["WWW-Authenticate"].startswith("Basic")
            assert "details" not in await answer.text()
            wrong = await client.get(path, headers={"Authorization": "Bearer wrong"})
            assert wrong.status == 401
        for path, status in (("/healthz", 200), ("/readyz", 503)):
            answer = await client.get(path)
            assert (answer.status, await answer.text()) == (status, "")
        for authorization in (f"Bearer {TOKEN}", encode_basic_auth("anybody", TOKEN)):
            answer = await client.get("/readyz", headers={"Authorization": authorization})
            assert (answer.status, await answer.text()) == (503, "details")
            assert (await client.get("/", headers={"Authorization": authorization})).status == 200


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Bearer wrong", "Basic", "Basic %%%", "Basic /w==", "Digest x",
     encode_basic_auth("correct-horse", "wrong"), f"bearer{TOKEN}"],
)  # fmt: skip
def test_what_is_not_the_token(authorization):
    assert not has_token(authorization, TOKEN)


def test_in_the_long_run_nobody_gets_more_than_the_rate():
    now = 0.0
    budget = Budget(lambda: now)
    times = []
    for _ in range(1000):
        now += budget.delay("a")
        times.append(now)
    assert times[int(BURST) - 1] == pytest.approx(0.0, abs=1e-9)
    assert times[-1] == pytest.approx((1000 - BURST) / RATE)
    assert budget.delay("b") == 0.0


def test_who_does_not_wait_is_refused_and_not_held_to_account_for_it():
    now = 0.0
    budget = Budget(lambda: now)
    delays = [budget.delay("a") for _ in range(10_000)]
    assert sum(delay <= 2.0 for delay in delays) == int(BURST + 2 * RATE)
    assert max(delays) < 3.0
    now += 10.0
    assert budget.delay("a") == 0.0


def test_clients_are_forgotten():
    clock = itertools.count()
    budget = Budget(lambda: float(next(clock)))
    for n in range(30_000):
        budget.delay(str(n))
    assert len(budget._even) <= 10_000


async def test_too_many_requests_at_once():
    async with served(worker()) as client:
        statuses = [(await client.get("/metrics")).status for _ in range(20)]
        assert statuses == [200] * 20
        budgeted = [(await client.get("/healthz")).status for _ in range(20)]
        assert budgeted == [200] * 20, "probes have a budget of their own"


@pytest.fixture
def at_once(monkeypatch):
    """Let no time pass for the budgets."""
    monkeypatch.setattr(page_guard, "Budget", functools.partial(Budget, lambda: 0.0))


async def asked(address, page, times, headers=None):
    """Ask for a page from an address, many times at once; return the statuses."""
    connector = TCPConnector(limit=0, local_addr=(address, 0))
    async with ClientSession(connector=connector, headers=headers) as session:

        async def ask():
            async with session.get(page) as answer:
                return answer.status

        return Counter(await asyncio.gather(*[ask() for _ in range(times)]))


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [("/", {"Host": "rebound.example"}, 403), ("/", {}, 401), ("/no-such-page", {}, 401)],
)
async def test_refusals_are_budgeted_like_answers(at_once, tmp_path, path, headers, status):
    """Whoever has no token and no name to ask for cannot keep the event loop busy either."""
    granted = int(BURST + 2 * RATE)
    async with served(worker(tmp_path)) as client:
        page = client.make_url(path)
        assert await asked("127.0.0.1", page, granted + 20, headers) == {status: granted, 429: 20}


async def test_many_addresses_together_have_a_budget_too(at_once):
    async with served(worker()) as client:
        page = client.make_url("/metrics")
        requests = int(BURST / 10)
        asking = [asked(f"127.0.0.{n}", page, requests) for n in range(1, 18)]
        statuses = sum(await asyncio.gather(*asking), Counter())
        granted = int(TOGETHER * (BURST + 2 * RATE) / 10)
        assert statuses == {200: granted, 429: 17 * requests - granted}, "none has used up its own"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"web_host": EVERYWHERE}, "others could read the pages"),
        ({"web_host": "worker.internal"}, "others could read the pages"),
        ({"web_host": "::"}, "others could read the pages"),
        ({"web_cert": "a.pem"}, "must be set together"),
        ({"web_client_ca": "a.pem"}, "needs web_cert and web_key"),
    ],
)
def test_pages_are_not_opened_to_everybody_by_mistake(options, message):
    with pytest.raises(ValueError, match=message):
        worker(**options)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.0.0.7"])
def test_this_machine_needs_no_token(host):
    assert worker(web_host=host).web_token is None
    assert page_tls(worker(web_host=host)) is None


async def test_mutual_tls_serves_those_who_show_a_certificate(tmp_path):
    files = SecretFiles(tmp_path)
    files.make(())
    settings = worker(
        web_host=EVERYWHERE,
        web_cert=str(files.server),
        web_key=str(files.server),
        web_client_ca=str(files.authority),
    )
    stranger, guest = (ssl.create_default_context(cafile=files.authority) for _ in range(2))
    guest.load_cert_chain(files.client_certificate, files.client_key)
    async with served(settings) as client, ClientSession() as session:
        page = f"https://127.0.0.1:{client.server.port}/metrics"
        async with session.get(page, ssl=guest) as answer:
            assert (answer.status, await answer.text()) == (200, "details")
        with pytest.raises(ClientError):
            await session.get(page, ssl=stranger)


def test_certificates_that_cannot_be_used(tmp_path):
    (tmp_path / "no.pem").write_text("no certificate")
    options = {"web_cert": str(tmp_path / "no.pem"), "web_key": str(tmp_path / "no.pem")}
    with pytest.raises(SettingsError, match=r"worker\.web_cert, web_key or web_client_ca cannot"):
        page_tls(worker(**options))
