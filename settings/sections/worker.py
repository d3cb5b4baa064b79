"""`[worker]`: how a worker process runs on its machine."""

from pathlib import Path

from platformdirs import user_data_path
from pydantic import Field

from settings.sections.base import Duration, FilePath, Section, parse_duration


def state_folder(name: str) -> Path:
    """Return the default folder for the state of the ensemble `name`."""
    return user_data_path("hb", appauthor=False) / "state" / name


class WorkerSettings(Section):
    """One worker process."""

    web_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="The address that serves the console, /metrics, /healthz and /readyz. The"
        " default is reachable from this machine only.",
    )
    web_port: int = Field(
        default=6066,
        ge=0,
        le=65535,
        description="Its port; the next free one if it is taken, 0 for any free port.",
    )
    console: bool = Field(default=True, description="Serve the live console page.")
    metrics: bool = Field(default=True, description="Serve /metrics for Prometheus.")
    state: FilePath = Field(
        default_factory=lambda: state_folder("hb"),
        description="The folder of the state tables (RocksDB). It can be deleted: a worker restores"
        " it from the broker.",
        json_schema_extra={"default_text": "a folder of the ensemble's name in the user's data"},
    )
    batch_size: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="The largest number of records in one transaction. A transaction takes what has"
        " arrived during the one before, so it grows this large only under load.",
    )
    transaction_timeout: Duration = Field(
        default=parse_duration("60s"),
        description="After how long the broker aborts a transaction that a dead worker left open.",
    )
    session_timeout: Duration = Field(
        default=parse_duration("10s"),
        description="After how long a silent worker is considered dead, so that others take over"
        " its partitions.",
    )
