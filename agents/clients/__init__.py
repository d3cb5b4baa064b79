"""For users' programs: publish patients and labels, and read diagnoses."""

from agents.clients.client import (
    AsyncClient,
    Client,
    Diagnoses,
    NoDiagnosisError,
    Publisher,
    ReusedIdError,
)
from agents.clients.splitting import PatientError

__all__ = [
    "AsyncClient",
    "Client",
    "Diagnoses",
    "NoDiagnosisError",
    "PatientError",
    "Publisher",
    "ReusedIdError",
]
