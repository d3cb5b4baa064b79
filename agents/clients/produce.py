"""Publishes the patients of a source at a chosen rate, and their labels later.

0. check    the whole source, if asked: what cannot be used is known before anything is sent
1. read     some patients of the source
2. split    into each learner's instance; a bad row stops everything, or is skipped and counted
3. send     in batches, and note for each label when it is due
4. label    what is due by now; after the last patient, wait for the rest

What was interrupted can be resumed: the order of patients, the generated ids, and which labels are
withheld or wrong follow from the trial alone. Labels of patients that were sent earlier are sent
again, which changes nothing where they were: the same label twice counts once.
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
from agents.clients.pseudonyms import Pseudonyms
from agents.clients.sender import Sender
from agents.clients.splitting import ID, SUBJECT, Fault, Split, Splitter
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
    start     how many patients were sent earlier; only their labels are sent again
    run       what generated ids begin with, so that they can be generated again
    history past patients: they teach, and their errors are counted separately
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
    start: int = 0
    run: str = ""
    history: bool = False


@dataclass
class Published:
    """What was published so far.

    taken      rows of the source that are done with, skipped ones and earlier ones included
    skipped    bad rows, by column
    repeated   patients whose id an earlier one had: only the first of each gets a diagnosis
    """

    taken: int = 0
    patients: int = 0
    labels: int = 0
    waiting: int = 0
    withheld: int = 0
    wrong: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    share: float = 0.0
    seconds: float = 0.0


@dataclass
class BadColumn:
    """Rows that cannot be used because of a column: the first line, what is expected, how many."""

    line: int
    expected: str
    rows: int = 0


@dataclass
class Checked:
    """What a source holds: rows, labels, repeated ids, and by column what cannot be used."""

    rows: int = 0
    labels: int = 0
    repeated: int = 0
    bad: dict[str, BadColumn] = field(default_factory=dict)


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
        room: Callable[[], int] | None = None,
    ) -> None:
        """`notice` is told what will be sent: ids, and their true labels ("" if unknown).

        `gate` is awaited before every piece, so that callers can slow it down; `room` says how many
        patients the next piece may have.
        """
        self.done = Published()
        self._settings, self._source, self._trial = settings, source, trial
        self._notice, self._gate, self._room = notice, gate, room
        self._run = trial.run or new_id()[:8]
        self._splitter = Splitter(settings, texts=source.texts, history=trial.history)
        self._pseudonyms = Pseudonyms(settings)
        self._topic = Topics.of(settings).labels
        self._labelled = trial.labels and source.labelled
        self._random = np.random.default_rng(trial.seed)
        self._delays, self._missing, self._wrong = self._random.spawn(3)
        self._due: list[DueLabel] = []
        self._serial = 0
        self._ids: set[int] = set()

    async def run(self, tick: Callable[[], None] = lambda: None) -> Published:
        """Publish everything; `tick` is called after every step."""
        topics = [*self._splitter.topics, *([self._topic] if self._labelled else [])]
        began = time.monotonic()
        async with Sender(self._settings, topics) as sender:
            start, pieces = time.monotonic(), self._pieces()
            while True:
                if self._gate is not None:
                    await self._gate()  # first, as a piece is cut by what there is room for
                piece = next(pieces, None)
                if piece is None:
                    break
                await self._wait_for_turn(sender, start, tick)
                if self.done.taken < self._trial.start:
                    self._label_again(piece)
                else:
                    await self._send(sender, piece)
                self.done.taken += len(piece)
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

    def check(self) -> "Checked":
        """Read the whole source and say what could not be used; nothing is sent."""
        checked, ids = Checked(), set[int]()
        for chunk in self._source.chunks():
            bad = self._bad_rows(chunk)
            checked.rows += len(chunk)
            checked.labels += sum(map(bool, chunk.labels or ())) if self._labelled else 0
            if chunk.ids is not None:
                ids.update(map(hash, chunk.ids))
                checked.repeated = checked.rows - len(ids)
            for row in sorted(bad):
                column, expected = bad[row]
                checked.bad.setdefault(column, BadColumn(chunk.lines[row], expected)).rows += 1
        return checked

    def _pieces(self) -> Iterator[Patients]:
        """Yield the source in pieces that suit the rate, repeated as requested, up to the limit."""
        trial = self._trial
        count, most, repeat = 0, trial.limit, trial.repeat
        for turn in range(repeat):
            earlier = 0.0
            for chunk in self._chunks():
                start = 0
                while start < len(chunk):
                    size = self._size()
                    if count < trial.start:
                        size = min(_PIECE, trial.start - count)
                    rows = range(start, min(start + size, len(chunk)))
                    rows = rows if most is None else rows[: most - count]
                    if not rows:
                        return
                    start = rows.stop
                    share = (
                        turn + earlier + (chunk.share - earlier) * rows.stop / len(chunk)
                    ) / repeat
                    share = share if most is None else max(share, (count + len(rows)) / most)
                    yield self._named(chunk.take(rows, min(share, 1.0)), turn, count)
                    count += len(rows)
                earlier = chunk.share

    def _size(self) -> int:
        """Return how many patients the next piece has."""
        if self._room is not None:
            return min(max(self._room(), 1), _PIECE)
        if not self._trial.rate:
            return _PIECE
        return min(max(round(self._trial.rate * _PIECE_SECONDS), 1), _PIECE)

    def _chunks(self) -> Iterator[Patients]:
        if not self._trial.shuffle:
            yield from self._source.chunks()
            return
        whole = gathered(self._source)
        order = self._random.permutation(len(whole)).tolist()
        for start in range(0, len(order), _PIECE):
            rows = order[start : start + _PIECE]
            yield whole.take(rows, (start + len(rows)) / len(order))

    def _named(self, piece: Patients, turn: int, start: int) -> Patients:
        """Assign ids where there are none; repeats must not reuse those of the first pass."""
        ids = piece.ids
        if ids is None:
            ids = [f"{self._run}-{start + k}" for k in range(len(piece))]
        elif turn:
            ids = [f"{name}~{turn + 1}" for name in ids]
        pseudonyms = self._pseudonyms
        subjects = pseudonyms.subjects(piece.subjects)
        return replace(piece, ids=pseudonyms.ids(ids), subjects=subjects)

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
        split = self._split(piece, at)
        labels = self._true_labels(piece, split)
        if split.faults or len(labels) < len(split.rows):
            piece, split, labels = self._without_bad(piece, at)
        self._notice(split.ids, labels)
        keys = [name.encode() for name in split.ids]

        def count() -> None:
            if self._labelled:
                self._schedule(split.ids, labels)
            self.done.patients += len(split.ids)
            self._count_repeats(split.ids)
            self.done.share = piece.share

        await _counted(sender.send_many(keys, split.values, at), count)

    def _split(self, piece: Patients, at: int) -> Split:
        return self._splitter.many(piece.ids or (), piece.columns, at, piece.subjects)

    def _column(self, fault: Fault) -> str:
        """Return the column of the source in which a fault is."""
        columns = {ID: self._source.id_column, SUBJECT: self._settings.columns.subject or "subject"}
        return columns.get(fault.column, fault.column)

    def _bad_rows(self, piece: Patients) -> dict[int, tuple[str, str]]:
        """Return what is wrong with rows that cannot be used: the column, and what is expected."""
        ids = piece.ids if piece.ids is not None else ["made-up"] * len(piece)
        bad = {
            fault.row: (self._column(fault), fault.expected)
            for fault in self._splitter.faults(ids, piece.columns, piece.subjects)
        }
        for row in range(len(piece)) if self._labelled else ():
            if not self._label_known(piece, row):
                expected = f"one of {', '.join(self._settings.labels)}, or nothing"
                bad.setdefault(row, (self._settings.columns.label or "label", expected))
        return bad

    def _without_bad(self, piece: Patients, at: int) -> tuple[Patients, Split, list[str]]:
        """Skip bad rows and count them, or raise an error for the first."""
        bad = self._bad_rows(piece)
        for row in sorted(bad):
            column, expected = bad[row]
            if not self._trial.skip_bad:
                raise InputError(
                    f"{self._source.name}:{piece.lines[row]}: column {column!r}: expected"
                    f" {expected}; --skip-bad skips such rows"
                )
            self.done.skipped[column] += 1
        usable = piece.take([row for row in range(len(piece)) if row not in bad])
        split = self._split(usable, at)
        return usable, split, self._true_labels(usable, split)

    def _label_again(self, piece: Patients) -> None:
        """Send the labels of patients that were sent earlier: perhaps they were not."""
        bad = self._bad_rows(piece)
        usable = piece.take([row for row in range(len(piece)) if row not in bad])
        if self._labelled and usable.labels is not None:
            self._schedule(usable.ids or (), usable.labels, again=True)
        self._count_repeats(usable.ids or ())
        self.done.share = piece.share

    def _count_repeats(self, ids: Sequence[str]) -> None:
        """Count ids that came before; by their hashes, as there may be millions."""
        before = len(self._ids)
        self._ids.update(map(hash, ids))
        self.done.repeated += len(ids) - (len(self._ids) - before)

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

    def _schedule(self, ids: Sequence[str], labels: Sequence[str], again: bool = False) -> None:
        """Schedule each label, at once if again; in experiments some are withheld or wrong.

        What is drawn for a patient does not depend on the pieces, so it can be drawn again.
        """
        trial, moment = self._trial, time.monotonic()
        delays = trial.delay.draw(self._delays, len(ids)).tolist()
        withheld = (self._missing.random(len(ids)) < trial.missing).tolist()
        wrong = self._wrong.random((len(ids), 2)).tolist()
        for name, true, delay, is_lost, (chance, which) in zip(
            ids, labels, delays, withheld, wrong, strict=True
        ):
            if not true:
                continue
            if is_lost:
                self.done.withheld += 1
                continue
            is_wrong = chance < trial.wrong
            label = self._other(true, which) if is_wrong else true
            self.done.wrong += is_wrong
            self._serial += 1
            due = moment if again else moment + delay
            heapq.heappush(self._due, DueLabel(due, self._serial, name, label))
        self.done.waiting = len(self._due)

    def _other(self, label: str, which: float) -> str:
        choices = [choice for choice in self._settings.labels if choice != label]
        return choices[int(which * len(choices))]

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
