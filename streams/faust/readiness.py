"""`/readyz`: every part of the worker has recently proved that it works. `/healthz`: none hangs.

While the broker does not answer, a worker is not ready, but restarting it would not help: so
`/healthz` checks only whether its loops still run.
"""

from typing import Any

from faust.web import View

from streams.engine.health import Verdict
from streams.engine.tasks.group import TaskGroup


def register(app: Any, engine: TaskGroup) -> None:
    """Add both pages to an application's web server."""

    @app.page("/healthz", name="healthz")  # type: ignore[untyped-decorator]  # app is Any
    async def healthz(view: View, _request: Any) -> Any:
        hung = engine.hung()
        return view.json({"status": "alive" if hung.well else hung.text}, status=_status(hung))

    @app.page("/readyz", name="readyz")  # type: ignore[untyped-decorator]  # app is Any
    async def readyz(view: View, _request: Any) -> Any:
        verdict = engine.verdict()
        trouble = [symptom.text for symptom in verdict.symptoms]
        answer = {"ready": verdict.well, "verdict": verdict.report(), "trouble": trouble}
        return view.json(answer, status=_status(verdict))


def _status(verdict: Verdict) -> int:
    return 200 if verdict.well else 503
