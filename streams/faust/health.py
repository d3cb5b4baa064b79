"""`/healthz`: this process lives. `/readyz`: its tasks are open and their commits get through."""

from typing import Any

from faust.web import View

from streams.engine.tasks.group import TaskGroup


def register(app: Any, engine: TaskGroup) -> None:
    """Add both pages to an application's web server."""

    @app.page("/healthz", name="healthz")  # type: ignore[untyped-decorator]  # app is Any
    async def healthz(view: View, _request: Any) -> Any:
        return view.json({"status": "alive"})

    @app.page("/readyz", name="readyz")  # type: ignore[untyped-decorator]  # app is Any
    async def readyz(view: View, _request: Any) -> Any:
        trouble = engine.trouble()
        return view.json({"ready": not trouble, "trouble": trouble}, status=503 if trouble else 200)
