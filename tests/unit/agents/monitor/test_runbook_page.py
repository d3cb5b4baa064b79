"""The links of alerts and dashboards lead somewhere, as everything is shipped."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from agents.monitor import page_guard, runbook_page
from settings.sections.worker import WorkerSettings

ROOT = Path(__file__).parents[4]


def test_every_alert_has_its_section():
    alerts = re.findall(
        r"- alert: (\w+)", (ROOT / "deploy/prometheus/rules/alerts.yml").read_text()
    )
    page = runbook_page.page()
    assert len(alerts) > 20
    for alert in alerts:
        assert page.count(f'<h3 id="{alert.lower()}">{alert}</h3>') == 1
    text = re.sub(r"<[^>]+>", "", page)
    assert not re.search(r"\*\*|`|\]\(|^#", text, re.MULTILINE), (
        "all marks are shown as what they mean"
    )


def test_the_default_address_is_that_of_a_worker_as_shipped():
    defaults = WorkerSettings()
    address = urlsplit(defaults.runbook)
    assert (address.hostname, address.port) == (defaults.web_host, defaults.web_port)
    assert address.path == runbook_page.PATH
    published = f"{address.hostname}:${{HB_PORT:-{address.port}}}:{address.port}"
    assert published in (ROOT / "deploy/compose.yaml").read_text()
    chart = (ROOT / "deploy/helm/values.yaml").read_text()
    assert re.search(rf"^web:\n(  .*\n)*?  port: {address.port}$", chart, re.MULTILINE)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
async def test_who_comes_from_grafana_gets_it_without_a_token(tmp_path, site):
    (tmp_path / "token").write_text("correct-horse-battery-staple")
    worker = WorkerSettings(web_token={"file": str(tmp_path / "token")})
    pages = web.Application(middlewares=[page_guard.guard(worker)])
    runbook_page.add_page(pages)
    async with TestClient(TestServer(pages)) as client:
        answer = await client.get(runbook_page.PATH, headers={"Sec-Fetch-Site": site})
        assert (answer.status, answer.content_type) == (200, "text/html")
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert (await client.get("/", headers={"Sec-Fetch-Site": "none"})).status == 401
        renamed = await client.get(runbook_page.PATH, headers={"Host": "elsewhere.example"})
        assert renamed.status == 403
