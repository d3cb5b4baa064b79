"""Feeds odd inputs to each target in turn, and reports those neither taken nor refused."""

import random
import resource
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.fuzz.mutations import mutated
from bench.fuzz.targets import Target, targets
from bench.fuzz.web_pages import REQUESTS, ask, served
from bench.fuzz.wire_targets import wire_targets
from bench.pipeline.job import write_settings
from settings.errors import InputError

_TURN = 0.2
"""Seconds that a target has before it is the next one's turn."""
SLOW = 5.0
"""Seconds that one input may take: more stalls a worker."""
_MEMORY = 4 << 30
"""Bytes that the process may grow by: what takes more would end a worker, and is a finding."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that a target neither took nor refused as it should."""

    target: str
    what: str
    where: str
    data: bytes


@contextmanager
def all_targets() -> Iterator[dict[str, Target]]:
    """Yield every target by its name."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hb-fuzz-")))
        by_name = targets(folder)
        port = stack.enter_context(served(write_settings(folder, "127.0.0.1:9", "fuzz")))
        yield (
            by_name | wire_targets() | {"web pages": Target(REQUESTS, lambda data: ask(port, data))}
        )


@contextmanager
def limited_memory() -> Iterator[None]:
    """Let what takes too much memory fail, and not the machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def tried(name: str, target: Target, data: bytes) -> Finding | None:
    """Give a target one input."""
    began = time.monotonic()
    try:
        target.run(data)
    except target.refuses:
        pass
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        return Finding(name, type(error).__name__, where, data)
    if (took := time.monotonic() - began) > SLOW:
        return Finding(name, f"took {took:.0f} s", "", data)
    return None


def fuzz(
    seconds: float | None,
    seed: int,
    chosen: Collection[str] = (),
    say: Callable[[Finding], object] = id,
) -> dict[str, Any]:
    """Try odd inputs until time runs out, or forever; report each kind of finding once."""
    findings: dict[tuple[str, str, str], Finding] = {}
    inputs: Counter[str] = Counter()
    deadline = None if seconds is None else time.monotonic() + seconds
    with all_targets() as every, limited_memory():
        picked = _picked(every, chosen)
        draws = {name: random.Random(f"{seed} {name}") for name in picked}  # noqa: S311 - no secret
        try:
            while deadline is None or time.monotonic() < deadline:
                for name, target in picked.items():
                    for finding in _turn(name, target, draws[name], inputs):
                        if (finding.target, finding.what, finding.where) not in findings:
                            findings[finding.target, finding.what, finding.where] = finding
                            say(finding)
        except KeyboardInterrupt:
            if deadline is not None:
                raise
    return _report(inputs, findings.values(), seed=seed)


def again(data: bytes, chosen: Collection[str], say: Callable[[Finding], object]) -> dict[str, Any]:
    """Give one input to the chosen targets, or to all."""
    with all_targets() as every, limited_memory():
        picked = _picked(every, chosen)
        findings = [finding for name in picked if (finding := tried(name, picked[name], data))]
    for finding in findings:
        say(finding)
    return _report(dict.fromkeys(picked, 1), findings)


def _report(
    inputs: Mapping[str, int], findings: Iterable[Finding], **extra: object
) -> dict[str, Any]:
    named = [{"target": f.target, "what": f.what, "where": f.where} for f in findings]
    return {**extra, "inputs": dict(inputs), "findings": named}


def _turn(
    name: str, target: Target, draw: random.Random, inputs: Counter[str]
) -> Iterator[Finding]:
    end = time.monotonic() + _TURN
    while time.monotonic() < end:
        inputs[name] += 1
        if finding := tried(name, target, mutated(draw, target.corpus)):
            yield finding


def _picked(every: dict[str, Target], chosen: Collection[str]) -> dict[str, Target]:
    if unknown := set(chosen) - set(every):
        raise InputError(f"--target {min(unknown)}: must be one of: {', '.join(every)}")
    return {name: every[name] for name in chosen or every}
