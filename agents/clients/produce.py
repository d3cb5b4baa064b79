"""Publishes the patients of a source at a chosen rate, and their labels later.

1. read     some patients of the source
2. split    into each learner's instance; a bad row stops everything, or is skipped and counted
3. send     in batches, and note for each label when it is due
4. label    what is due by now; after the last patient, wait for the rest
"""

import asyncio
import heapq
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from agents.clients.client import new_id
from agents.clients.label_delays import Delay, fixed
from agents.clients.patient_files import Patients, Source, gathered
from agents.clients.sender import Sender
from agents.clients.splitting import ID, Split, Splitter
from schemas.records import Label
from schemas.writing import encode_all
from settings.errors import InputError
from settings.model import Settings
from streams.clock import wall
from streams.kafka.topics import Topics

_PIECE = 2_000
_PIECE_SECONDS = 0.02
_GRACE = 5.0
"""How long to wait, when told to stop, for records in flight to the broker."""


@dataclass(frozen=True)
class Trial:
    """How patients and labels are published.

    rate      patients per second; None: as fast as the broker takes them
    repeat    how often the source is sent; repeats get ids of their own
    limit     the maximum number of patients
    missing   the share of labels that never come
    wrong     the share of labels that are not the true one
    """

    rate: float | None = None
    repeat: int = 1
    limit: int | None = None
    shuffle: bool = False
    seed: int | None = None
    labels: bool = True
    delay: Delay = field(default_factory=lambda: fixed(0.0))
    missing: float = 0.0
    wrong: float = 0.0
    skip_bad: bool = False


@dataclass
class Published:
    """What was published so far.

    skipped    bad rows, by column
    repeated   patients whose id an earlier one had: only the first of each gets a diagnosis
    """

    patients: int = 0
    labels: int = 0
    waiting: int = 0
    withheld: int = 0
    wrong: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    share: float = 0.0
    seconds: float = 0.0


class DueLabel(NamedTuple):
    """A label that is to be published at a moment of the monotonic clock; `serial` breaks ties."""

    at: float
    serial: int
    id: str
    label: str


class Production:
    """Publishes a source; `done` shows the progress at any time."""

    def __init__(
        self,
        settings: Settings,
        source: Source,
        trial: Trial,
        *,
        notice: Callable[[Sequence[str], Sequence[str]], None] = lambda _ids, _labels: None,
        gate: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`notice` is told what will be sent: ids, and their true labels ("" if unknown).

        `gate` is awaited before every piece, so that callers can slow it down.
        """
        self.done = Published()
        self._settings, self._source, self._trial = settings, source, trial
        self._notice, self._gate = notice, gate
        self._splitter = Splitter(settings, texts=source.texts)
        self._topic = Topics.of(settings).labels
        self._labelled = trial.labels and source.labelled
        self._random = np.random.default_rng(trial.seed)
        self._due: list[DueLabel] = []
        self._serial = 0
        self._ids: set[int] = set()

    async def run(self, tick: Callable[[], None] = lambda: None) -> Published:
        """Publish everything; `tick` is called after every step."""
        topics = [*self._splitter.topics, *([self._topic] if self._labelled else [])]
        began = time.monotonic()
        async with Sender(self._settings, topics) as sender:
            start = time.monotonic()
            for piece in self._pieces():
                await self._wait_for_turn(sender, start, tick)
                if self._gate is not None:
                    await self._gate()
                await self._send(sender, piece)
                await self._send_labels(sender)
                self.done.seconds = time.monotonic() - began
                tick()
            while self._due:
                await self._sleep_until(self._due[0].at, tick)
                await self._send_labels(sender)
                tick()
            await sender.flush()
        self.done.share, self.done.seconds = 1.0, time.monotonic() - began
        tick()
        return self.done

    # Patients.

    def _pieces(self) -> Iterator[Patients]:
        """Yield the source in pieces that suit the rate, repeated as requested, up to the limit."""
        trial = self._trial
        size = _PIECE
        if trial.rate:
            size = min(max(round(trial.rate * _PIECE_SECONDS), 1), _PIECE)
        taken, most, repeat = 0, trial.limit, trial.repeat
        for turn in range(repeat):
            done = 0.0
            for chunk in self._chunks():
                for start in range(0, len(chunk), size):
                    rows = range(start, min(start + size, len(chunk)))
                    rows = rows if most is None else rows[: most - taken]
                    if not rows:
                        return
                    taken += len(rows)
                    share = (turn + done + (chunk.share - done) * rows.stop / len(chunk)) / repeat
                    share = share if most is None else max(share, taken / most)
                    yield self._named(chunk.take(rows, min(share, 1.0)), turn)
                done = chunk.share

    def _chunks(self) -> Iterator[Patients]:
        if not self._trial.shuffle:
            yield from self._source.chunks()
            return
        whole = gathered(self._source)
        order = self._random.permutation(len(whole)).tolist()
        for start in range(0, len(order), _PIECE):
            rows = order[start : start + _PIECE]
            yield whole.take(rows, (start + len(rows)) / len(order))

    def _named(self, piece: Patients, turn: int) -> Patients:
        """Assign ids where there are none; repeats must not reuse those of the first pass."""
        ids = piece.ids
        if ids is None:
            ids = [new_id() for _ in piece.lines]
        elif turn:
            ids = [f"{name}~{turn + 1}" for name in ids]
        return replace(piece, ids=ids)

    async def _wait_for_turn(self, sender: Sender, start: float, tick: Callable[[], None]) -> None:
        """Wait until the next patients are due; meanwhile send the labels that are."""
        if not self._trial.rate:
            return
        turn = start + self.done.patients / self._trial.rate
        while self._due and self._due[0].at < turn:
            await self._sleep_until(self._due[0].at, tick)
            await self._send_labels(sender)
        await self._sleep_until(turn, tick)

    @staticmethod
    async def _sleep_until(moment: float, tick: Callable[[], None]) -> None:
        while (left := moment - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.25))
            tick()

    async def _send(self, sender: Sender, piece: Patients) -> None:
        at = wall()
        split = self._splitter.many(piece.ids or (), piece.columns, at)
        labels = self._true_labels(piece, split)
        if split.faults or len(labels) < len(split.rows):
            piece, split, labels = self._without_bad(piece, split, at)
        self._notice(split.ids, labels)
        keys = [name.encode() for name in split.ids]

        def count() -> None:
            if self._labelled:
                self._schedule(split.ids, labels)
            self.done.patients += len(split.ids)
            self._count_repeats(split.ids)
            self.done.share = piece.share

        await _counted(sender.send_many(keys, split.values, at), count)

    def _without_bad(
        self, piece: Patients, split: Split, at: int
    ) -> tuple[Patients, Split, list[str]]:
        """Skip bad rows and count them, or raise an error for the first."""
        bad = {fault.row: (fault.column, fault.expected) for fault in split.faults}
        for row in split.rows:
            if self._labelled and not self._label_known(piece, row):
                expected = f"one of {', '.join(self._settings.labels)}, or nothing"
                bad[row] = (self._settings.columns.label or "label", expected)
        for row in sorted(bad):
            column, expected = bad[row]
            column = self._source.id_column if column == ID else column
            if not self._trial.skip_bad:
                raise InputError(
                    f"{self._source.name}:{piece.lines[row]}: column {column!r}: expected"
                    f" {expected}; --skip-bad leaves such rows out"
                )
            self.done.skipped[column] += 1
        kept = piece.take([row for row in range(len(piece)) if row not in bad])
        split = self._splitter.many(kept.ids or (), kept.columns, at)
        return kept, split, self._true_labels(kept, split)

    def _count_repeats(self, ids: Sequence[str]) -> None:
        """Count ids that came before; by their hashes, as there may be millions."""
        known = len(self._ids)
        self._ids.update(map(hash, ids))
        self.done.repeated += len(ids) - (len(self._ids) - known)

    # Labels.

    def _label_known(self, piece: Patients, row: int) -> bool:
        label = "" if piece.labels is None else piece.labels[row]
        return not label or label in self._settings.labels

    def _true_labels(self, piece: Patients, split: Split) -> list[str]:
        """Return the true label of each row, "" where there is none; fewer if one is unknown."""
        if piece.labels is None:
            return [""] * len(split.rows)
        labels = [piece.labels[row] for row in split.rows]
        if self._labelled and not {"", *self._settings.labels}.issuperset(labels):
            return []
        return labels

    def _schedule(self, ids: Sequence[str], labels: Sequence[str]) -> None:
        """Schedule each label; in experiments some are withheld or wrong."""
        trial, moment = self._trial, time.monotonic()
        delays = trial.delay.draw(self._random, len(ids)).tolist()
        lost = (self._random.random(len(ids)) < trial.missing).tolist()
        wrong = (self._random.random(len(ids)) < trial.wrong).tolist()
        for name, label, delay, is_lost, is_wrong in zip(
            ids, labels, delays, lost, wrong, strict=True
        ):
            if not label:
                continue
            if is_lost:
                self.done.withheld += 1
                continue
            said = self._other(label) if is_wrong else label
            self.done.wrong += is_wrong
            self._serial += 1
            heapq.heappush(self._due, DueLabel(moment + delay, self._serial, name, said))
        self.done.waiting = len(self._due)

    def _other(self, label: str) -> str:
        others = [each for each in self._settings.labels if each != label]
        return others[int(self._random.integers(len(others)))]

    async def _send_labels(self, sender: Sender) -> None:
        moment, at = time.monotonic(), wall()
        ids, records = [], []
        while self._due and self._due[0].at <= moment:
            _, _, name, label = heapq.heappop(self._due)
            ids.append(name.encode())
            records.append(Label(name, label, at))
        if ids:
            sending = sender.send_many(ids, {self._topic: encode_all(records)}, at)

            def count() -> None:
                self.done.labels += len(ids)
                self.done.waiting = len(self._due)

            await _counted(sending, count)


async def _counted(sending: Coroutine[Any, Any, None], count: Callable[[], None]) -> None:
    """Send and count, even if told to stop meanwhile: records in flight arrive."""
    sent = asyncio.ensure_future(sending)
    try:
        await asyncio.shield(sent)
    except asyncio.CancelledError:
        done, _ = await asyncio.wait([sent], timeout=_GRACE)
        if done and sent.exception() is None:
            count()
        else:
            sent.cancel()
        raise
    count()
