"""The labels of the demonstration, published shortly after each diagnosis."""

import asyncio
import heapq
import time
from typing import NamedTuple

import numpy as np

from agents.clients.sender import Sender
from schemas.records import Label
from schemas.writing import encode_all
from settings.model import Settings
from streams.clock import wall
from streams.kafka.topics import Topics

LATE_SECONDS = 0.1
"""Average delay of a label after the diagnosis."""
_PAUSE = 0.01


class DueLabel(NamedTuple):
    """A label to be published at a given time of the monotonic clock."""

    at: float
    patient: str
    label: str


class LateLabels:
    """Publishes labels, each at its own time."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self._settings = settings
        self._topic = Topics.of(settings).labels
        self._random = np.random.default_rng(seed)
        self._due: list[DueLabel] = []

    def expect(self, patient: str, label: str) -> None:
        """Schedule the label of a patient that was just diagnosed."""
        moment = time.monotonic() + self._random.exponential(LATE_SECONDS)
        heapq.heappush(self._due, DueLabel(moment, patient, label))

    async def run(self) -> None:
        """Publish what is due, until cancelled."""
        async with Sender(self._settings, [self._topic]) as sender:
            while True:
                await self._send(sender)
                await asyncio.sleep(_PAUSE)

    async def _send(self, sender: Sender) -> None:
        at, ids, records = wall(), [], []
        while self._due and self._due[0].at <= time.monotonic():
            _, patient, label = heapq.heappop(self._due)
            ids.append(patient.encode())
            records.append(Label(patient, label, at))
        if ids:
            await sender.send_many(ids, {self._topic: encode_all(records)}, at)
