"""Who may ask; and the page needs nothing from anywhere else."""

import re
import socket

import pytest

from agents.monitor.console.access import HEADERS, objection
from agents.monitor.console.assets import CHARTS, PAGE, assets, charts

HERE = "127.0.0.1"


@pytest.mark.parametrize(
    ("served", "headers", "allowed"),
    [
        (HERE, {"Host": "127.0.0.1:6066"}, True),
        (HERE, {"Host": "localhost:6066"}, True),
        (HERE, {"Host": "hb.localhost"}, True),
        ("::1", {"Host": "[::1]:6066"}, True),
        ("localhost", {"Host": "127.0.0.1:6066"}, True),
        (HERE, {"Host": "rebound.example:6066"}, False),
        (HERE, {"Host": "192.168.1.7:6066"}, False),
        (HERE, {"Host": "[::1"}, False),
        (HERE, {}, False),
        ("0.0.0.0", {"Host": "worker-3.internal:6066"}, False),
        ("0.0.0.0", {"Host": "worker-1:6066"}, True),
        ("0.0.0.0", {"Host": "10.1.2.3:6066"}, True),
        ("0.0.0.0", {"Host": "[fe80::1]:6066"}, True),
        ("0.0.0.0", {"Host": "127.0.0.1:6066"}, True),
        ("0.0.0.0", {"Host": f"{socket.gethostname()}:6066"}, True),
        ("worker.internal", {"Host": "worker.internal:6066"}, True),
        ("0.0.0.0", {}, False),
        (HERE, {"Host": "localhost:1", "Origin": "http://localhost:1"}, True),
        (HERE, {"Host": "localhost:1", "Origin": "http://localhost:2"}, False),
        (HERE, {"Host": "localhost:1", "Origin": "null"}, False),
        ("0.0.0.0", {"Host": "worker-1:1", "Origin": "https://evil.example"}, False),
        (HERE, {"Host": "localhost:1", "Sec-Fetch-Site": "same-origin"}, True),
        (HERE, {"Host": "localhost:1", "Sec-Fetch-Site": "none"}, True),
        (HERE, {"Host": "localhost:1", "Sec-Fetch-Site": "cross-site"}, False),
        (HERE, {"Host": "localhost:1", "Sec-Fetch-Site": "same-site"}, False),
    ],
)
def test_who_may_ask(served, headers, allowed):
    assert (objection(headers, served, ("worker-1",)) is None) is allowed


def test_the_policy_allows_this_worker_only():
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    for loose in ("unsafe-inline", "unsafe-eval", "http:", "https:", "*"):
        assert loose not in policy


def test_no_file_of_the_page_names_another_place():
    for name, asset in assets().items():
        text = asset.body.decode()
        text = text.replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//[a-z]+\.[a-z]+/", text), name
        assert "style=" not in text or name != PAGE, "the policy forbids it"


def test_the_page_names_only_files_that_are_there():
    page = assets()[PAGE].body.decode()
    named = set(re.findall(r'(?:src|href)="console/([^"?]+)', page))
    modules = {
        file
        for asset in assets().values()
        for file in re.findall(r'from "\./([^"]+)"', asset.body.decode())
    }
    assert named | modules <= {*assets(), CHARTS}
    assert {*assets()} == named - {CHARTS} | modules | {PAGE}, "and no file is left over"
    assert "{" not in page.split("<body>")[0], "every placeholder is filled"


def test_the_chart_library_comes_from_its_wheel():
    asset = charts()
    assert asset.body.startswith(b"/**\n* plotly.js")
    assert len(asset.packed) < 0.4 * len(asset.body)
    assert "immutable" in asset.cache
