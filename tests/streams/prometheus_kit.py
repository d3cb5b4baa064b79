"""Runs a real Prometheus with the project's configuration, sped up, and queries it."""

import asyncio
import contextlib
import math
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from ruamel.yaml import YAML

from tests.conftest import need_tool
from tests.deploy.files import DEPLOY, RULES, read_yaml

CONFIG = DEPLOY / "prometheus" / "prometheus.yml"


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    address: str
    session: aiohttp.ClientSession

    async def get(self, page: str, **parameters: Any) -> Any:
        """Return the data of an answer; fail with Prometheus's own message if it is an error."""
        url = f"http://{self.address}/api/v1/{page}"
        async with self.session.get(url, params=parameters) as response:
            answer = await response.json()
        assert answer["status"] == "success", (parameters, answer.get("error"))
        return answer["data"]

    async def now(self, query: str) -> list[dict[str, Any]]:
        """Return the current answer to a query, numbers only."""
        return _finite((await self.get("query", query=query))["result"])

    async def lately(self, query: str, seconds: int = 30) -> list[dict[str, Any]]:
        """Return the answer over the last seconds, as a panel requests it."""
        end = time.time()
        span = {"start": end - seconds, "end": end, "step": 1}
        return _finite((await self.get("query_range", query=query, **span))["result"])


def _finite(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out series without any finite value: a panel would show nothing of them."""
    return [
        result
        for result in series
        if any(
            math.isfinite(float(value)) for _, value in result.get("values") or [result["value"]]
        )
    ]


def _configuration(workers: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the project's configuration with shorter intervals, these workers and its rules.

    Each worker is given labels of its own, as Kubernetes does.
    """
    config: dict[str, Any] = dict(read_yaml(CONFIG))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(RULES / "*.yml")]
    job = next(job for job in config["scrape_configs"] if job["job_name"] == "hb")
    groups = [
        {"targets": [at], "labels": {"ensemble": name, "pod": f"p{at}", "namespace": "n"}}
        for name, addresses in workers.items()
        for at in addresses
    ]
    config["scrape_configs"] = [{**job, "static_configs": groups}]
    return config


@contextlib.asynccontextmanager
async def prometheus(
    folder: Path, workers: Mapping[str, Sequence[str]]
) -> AsyncIterator[Prometheus]:
    """Run a Prometheus that scrapes the workers of these ensembles every second."""
    program = need_tool("prometheus", "prometheus")
    file = folder / "prometheus.yml"
    YAML(typ="safe").dump(_configuration(workers), file)
    process = await asyncio.create_subprocess_exec(
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--web.listen-address=127.0.0.1:0",
        stderr=asyncio.subprocess.PIPE,
    )
    reading = None
    try:
        address = await asyncio.wait_for(_address(process.stderr), 120)
        reading = asyncio.create_task(_drain(process.stderr))
        async with aiohttp.ClientSession() as session:
            yield Prometheus(address, session)
    finally:
        process.terminate()
        await process.wait()
        if reading is not None:
            await reading


async def _address(log: Any) -> str:
    """Return its address once it is ready to answer."""
    address, lines = "", []
    async for line in log:
        lines.append(line.decode())
        if match := re.search(r'msg="Listening on" address=(\S+)', lines[-1]):
            address = match[1]
        if "Server is ready" in lines[-1]:
            return address
    raise AssertionError("".join(lines))


async def _drain(log: Any) -> None:
    async for _ in log:
        pass
