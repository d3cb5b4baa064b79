"""`[worker]`: how a worker process runs on its machine."""

import ipaddress
from pathlib import Path
from typing import Annotated

from platformdirs import user_data_path
from pydantic import Field, model_validator

from settings.sections.base import Duration, FilePath, Secret, Section, parse_duration, problem


def state_folder(name: str) -> Path:
    """Return the default folder for the state of the ensemble `name`."""
    return user_data_path("hb", appauthor=False) / "state" / name


def is_local(host: str) -> bool:
    """Tell whether a host is this machine, reached from itself only.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class WorkerSettings(Section):
    """One worker process."""

    web_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="The address that serves the console, /metrics, /healthz and /readyz. The"
        " default is reachable from this machine only. Any other needs `web_token`,"
        " `web_client_ca` or `insecure`.",
    )
    web_port: int = Field(
        default=6066,
        ge=0,
        le=65535,
        description="Its port; the next free one if it is taken, 0 for any free port.",
    )
    web_names: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(),
        description="Names by which others call this worker, besides its address and the machine's"
        " name: requests for any other name are refused.",
    )
    web_token: Secret | None = Field(
        default=None,
        description="The token that pages ask for: as bearer token, or as the password of any user"
        " in a browser. /healthz and /readyz answer without it, by their status only.",
    )
    web_cert: FilePath | None = Field(
        default=None, description="Serve the pages over TLS with this certificate (PEM)."
    )
    web_key: FilePath | None = Field(default=None, description="Its key (PEM).")
    web_client_ca: FilePath | None = Field(
        default=None,
        description="Serve only clients with a certificate of this authority (PEM): mutual TLS.",
    )
    insecure: bool = Field(
        default=False,
        description="Serve the pages on an address that others can reach, without a token or"
        " certificate: for a network where everybody may read them.",
    )
    console: bool = Field(default=True, description="Serve the live console page.")
    farewell: str = Field(
        default="",
        max_length=200,
        description="What open console pages say once this worker has been stopped cleanly.",
    )
    metrics: bool = Field(default=True, description="Serve /metrics for Prometheus.")
    runbook: str = Field(
        default="http://127.0.0.1:6066/runbook",
        min_length=1,
        description="Where the runbook is: alerts and dashboards link there. Every worker serves it"
        " at /runbook; the default is a worker on the reader's own machine, or a forwarded port.",
    )
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

    @model_validator(mode="after")
    def _check_certificate_has_key(self) -> "WorkerSettings":
        if (self.web_cert is None) != (self.web_key is None):
            raise problem("web_cert and web_key must be set together", "web_cert")
        if self.web_client_ca is not None and self.web_cert is None:
            raise problem("needs web_cert and web_key", "web_client_ca")
        return self

    @model_validator(mode="after")
    def _check_somebody_is_asked(self) -> "WorkerSettings":
        asks = self.web_token is not None or self.web_client_ca is not None
        if not (is_local(self.web_host) or asks or self.insecure):
            raise problem(
                "others could read the pages: set web_token or web_client_ca, or insecure = true if"
                " everybody on that network may",
                "web_host",
            )
        return self
