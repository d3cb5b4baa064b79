"""For programs of your own: publish patients and labels, and get diagnoses.

The settings file is the only argument. In an asynchronous program:

    async with AsyncClient("ensemble.toml") as client:
        diagnosis = await client.diagnose({"radius": 14.2, "texture": 20.1})
        await client.label(diagnosis.id, "malignant")

In any other program, `Client` does the same and blocks. `Publisher` and `Diagnoses` are its two
halves, for programs that need only one. The examples in `docs/use.md` are tested.
"""

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypeVar
from uuid import uuid4

import msgspec

from agents.clients.coalescing import Coalescer
from agents.clients.pseudonyms import Pseudonyms
from agents.clients.sender import Headers, Sender
from agents.clients.splitting import PatientError, Splitter, label_value
from agents.clients.topic_reader import TopicReader
from schemas.errors import RecordError
from schemas.reading import Reader
from schemas.records import Diagnosis
from schemas.traces import as_header
from schemas.traces import traceparent as parsed
from settings.client_settings import AnySettings
from settings.errors import HbError, InputError
from settings.loading import load_client_settings
from streams.clock import wall
from streams.kafka.partitions import partition_of
from streams.kafka.topics import Topics

__all__ = [
    "AsyncClient",
    "Client",
    "Diagnoses",
    "NoDiagnosisError",
    "PatientError",
    "Published",
    "Publisher",
    "ReusedIdError",
]

SettingsLike: TypeAlias = AnySettings | str | os.PathLike[str] | None
"""Settings, or their file; None for the file that `hb` itself would use."""

PATIENCE = 30.0
REMEMBERED = 10_000
_AT_ONCE = 1_000
"""Patients of `diagnose_many` that are published before their diagnoses are waited for."""
T = TypeVar("T")


class NoDiagnosisError(HbError, TimeoutError):
    """No diagnosis arrived in time."""


class ReusedIdError(NoDiagnosisError):
    """No diagnosis came for this request; an earlier patient with the same id has one."""


class Published(str):
    """The id of a published patient, with the offset from which its diagnosis can come.

    after   the end of its partition of the diagnoses before the patient was published: an answer to
            this request is there or later. 0 for a generated id, which is new.
    """

    __slots__ = ("after",)
    after: int

    @classmethod
    def of(cls, name: str, after: int) -> "Published":
        """Return an id with what is known of its publishing."""
        published = cls(name)
        published.after = after
        return published


def read_settings(settings: SettingsLike) -> AnySettings:
    """Return the settings, reading their file if need be."""
    if settings is None or isinstance(settings, str | os.PathLike):
        return load_client_settings(settings)
    return settings


def new_id() -> str:
    """Return an id that reveals nothing about the patient."""
    return uuid4().hex


def _traced(value: str | None) -> Headers:
    """Return the headers of a record that belongs to a trace; none if the value is not valid."""
    trace = parsed(value)
    return [] if trace is None else as_header(trace)


class Publisher:
    """Publishes patients and labels. Use it as an asynchronous context manager.

    Each call returns when the broker has the records. Calls may run concurrently: what is asked for
    while a request is under way is sent together with the next one.
    """

    def __init__(self, settings: SettingsLike = None) -> None:
        self.settings = read_settings(settings)
        self._splitter = Splitter(self.settings)
        self._pseudonyms = Pseudonyms(self.settings)
        self._labels = Topics.of(self.settings).labels
        self._sender = Sender(self.settings, [*self._splitter.topics, self._labels])
        self._answers: TopicReader | None = None
        self._opening, self._sending = asyncio.Lock(), asyncio.Lock()
        self._asked = Coalescer(self._publish)
        self._open = False

    async def __aenter__(self) -> Self:
        await self._sender.__aenter__()
        self._open = True
        return self

    async def __aexit__(self, *error: object) -> None:
        self._open = False
        await self._asked.finish()
        try:
            if self._answers is not None:
                await self._answers.__aexit__()
        finally:
            await self._sender.__aexit__(*error)

    async def publish(
        self,
        features: Mapping[str, object],
        *,
        id: str | None = None,  # noqa: A002 - the record's own word
        subject: str | None = None,
        traceparent: str | None = None,
    ) -> Published:
        """Publish a patient and return its id: the one given, or an opaque one that is generated.

        `features` holds a number or the name of a category for each feature of the settings; what
        no learner uses is not sent. An id names one visit and must never be reused: the second
        patient gets no diagnosis, and `Diagnoses.of` does not return the first one's instead. A
        person who comes again gets a new id and the same `subject`, which is an opaque token too.
        `traceparent` is the trace that the call belongs to (W3C Trace Context), which the diagnosis
        then carries as a header; one that is not valid is ignored.
        """
        _need(self._open, "Publisher")
        name = id or new_id()
        self._splitter.need_a_feature(features)
        sent, whose = self._pseudonyms.id(name), self._pseudonyms.subject(subject)
        patient = _Patient(sent, id is not None, features, whose, _traced(traceparent))
        return Published.of(name, await self._asked.answer(patient))

    async def _publish(self, patients: Sequence["_Patient"]) -> list[int | Exception]:
        """Publish patients together; return where each one's diagnosis can begin, or its error."""
        at, names = wall(), [patient.id for patient in patients]
        columns = {
            column: [patient.features.get(column) for patient in patients]
            for column in self._splitter.columns
        }
        split = self._splitter.many(names, columns, at, [patient.subject for patient in patients])
        outcomes: list[int | Exception] = [0] * len(patients)
        given = [row for row in split.rows if patients[row].given]
        ends = await self._ends([names[row] for row in given]) if given else []
        for row, end in zip(given, ends, strict=True):
            outcomes[row] = end
        keys, headers = (
            [name.encode() for name in split.ids],
            [patients[row].headers for row in split.rows],
        )
        async with self._sending:
            failed = await self._sender.send_each(keys, split.values, at, headers)
        for row, error in zip(split.rows, failed, strict=True):
            outcomes[row] = error or outcomes[row]
        for fault in split.faults:
            outcomes[fault.row] = PatientError(str(fault))
        return outcomes

    async def publish_many(
        self,
        patients: Sequence[Mapping[str, object]],
        *,
        ids: Sequence[str] | None = None,
        subjects: Sequence[str | None] | None = None,
        traceparent: str | None = None,
    ) -> list[Published]:
        """Publish many patients together, and return their ids in the same order.

        Far quicker than one at a time; they share one `traceparent`. If one of them cannot be
        published, none is: PatientError says which and why.
        """
        _need(self._open, "Publisher")
        for sequence in (ids, subjects):
            if sequence is not None and len(sequence) != len(patients):
                raise PatientError(f"there are {len(patients)} patients and {len(sequence)} ids")
        names = [new_id() for _ in patients] if ids is None else list(ids)
        at = wall()
        columns = {
            column: [patient.get(column) for patient in patients]
            for column in self._splitter.columns
        }
        sent, whose = self._pseudonyms.ids(names), self._pseudonyms.subjects(subjects)
        split = self._splitter.many(sent, columns, at, whose)
        for fault in split.faults:
            raise PatientError(f"patient {fault.row + 1} of {len(patients)}: {fault}")
        after = [0] * len(names) if ids is None else await self._ends(sent)
        async with self._sending:  # what is flushed is this call's own, and its errors too
            keys, headers = [name.encode() for name in sent], _traced(traceparent)
            await self._sender.send_many(keys, split.values, at, headers)
            await self._sender.flush()
        return [Published.of(name, end) for name, end in zip(names, after, strict=True)]

    async def _ends(self, names: Sequence[str]) -> list[int]:
        """Return where the diagnoses end now, in the partition of each id."""
        topic, count = Topics.of(self.settings).diagnoses, self.settings.topics.partitions
        async with self._opening:  # calls that run at the same time share one reader
            if self._answers is None:
                answers = TopicReader(self.settings, [topic])
                await answers.__aenter__()
                answers.rest()
                self._answers = answers
        places = [partition_of(name.encode(), count) for name in names]
        ends = {place: await self._answers.end(topic, place) for place in set(places)}
        return [ends[place] for place in places]

    async def label(self, id: str, label: str | None, *, amends: bool = False) -> None:  # noqa: A002 - the record's own word
        """Publish the true label of a patient.

        The first label counts, and a different one is refused, unless it `amends` the first: then
        it replaces any earlier label. None withdraws the label without giving another.
        """
        _need(self._open, "Publisher")
        at = wall()
        # The encoder takes plain text only, and `publish` returns a kind of its own.
        sent = str(self._pseudonyms.id(id))
        value = label_value(sent, label, at, self.settings.labels, amends=amends)
        await self._sender.send(sent.encode(), {self._labels: value}, at)


class _Patient(NamedTuple):
    """A patient to be published; `given` says that the caller chose the id."""

    id: str
    given: bool
    features: Mapping[str, object]
    subject: str | None
    headers: Headers


class Diagnoses:
    """Reads committed diagnoses. Use it as an asynchronous context manager.

    Either wait for those of certain patients with `of`, or get all with `async for`; to do both,
    create two. `since="start"` begins with the oldest diagnosis that is kept; otherwise it begins
    with the first one after entering.
    """

    def __init__(
        self, settings: SettingsLike = None, *, since: Literal["start", "end"] = "end"
    ) -> None:
        self.settings = read_settings(settings)
        self._reader = TopicReader(self.settings, [Topics.of(self.settings).diagnoses], since)
        self._pseudonyms = Pseudonyms(self.settings)
        self._decode = Reader(Diagnosis).one
        self._recent: OrderedDict[str, _Answer] = OrderedDict()
        self._waiting: dict[str, list[_Waiter]] = {}
        self.unreadable = 0
        """Records on the topic that are not diagnoses; they are skipped."""
        self._pump: asyncio.Task[None] | None = None
        self._iterated = False
        self._open = False

    async def __aenter__(self) -> Self:
        await self._reader.__aenter__()
        self._open = True
        return self

    async def __aexit__(self, *error: object) -> None:
        self._open = False
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
        await self._reader.__aexit__(*error)

    async def __aiter__(self) -> AsyncIterator[Diagnosis]:
        """Yield every diagnosis, without end."""
        _need(self._open, "Diagnoses")
        if self._pump is not None:
            raise InputError("these diagnoses are being waited for with of(); iterate over others")
        self._iterated = True
        while True:
            for answer in await self._read():
                yield answer.diagnosis

    async def _read(self) -> list["_Answer"]:
        answers = []
        for record in await self._reader.read():
            try:
                answers.append(_Answer(self._decode(record.value), record.offset))
            except RecordError:
                self.unreadable += 1
        return answers

    async def of(self, id: str, timeout: float = PATIENCE) -> Diagnosis:  # noqa: A002, ASYNC109 - the words users expect
        """Wait for the diagnosis of a patient that was published after this was entered.

        Raises NoDiagnosisError after `timeout` seconds. The last 10,000 diagnoses are remembered,
        so you may ask for one that has already come. With an id that `publish` returned, an earlier
        patient's diagnosis is not mistaken for the answer.
        """
        _need(self._open, "Diagnoses")
        if self._iterated:
            raise InputError("these diagnoses are being iterated over; wait for others")
        if self._pump is None:
            self._pump = asyncio.create_task(self._run(), name="diagnoses")
        diagnosis = await self._await(self._pseudonyms.id(id), getattr(id, "after", 0), timeout)
        return msgspec.structs.replace(diagnosis, id=str(id)) if self._pseudonyms else diagnosis

    async def _await(self, name: str, after: int, seconds: float) -> Diagnosis:
        """Wait for the diagnosis of an id as it travels, from some offset on."""
        assert self._pump is not None  # noqa: S101 - `of` has started it
        recent = self._recent.get(name)
        if recent is not None and recent.offset >= after:
            return recent.diagnosis
        if self._pump.done():
            self._pump.result()
        waiter = _Waiter(after, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(name, []).append(waiter)
        try:
            return await asyncio.wait_for(waiter.future, seconds)
        except TimeoutError:
            raise self._no_diagnosis(name, seconds) from None
        finally:
            self._forget(name, waiter)

    def _no_diagnosis(self, name: str, seconds: float) -> NoDiagnosisError:
        if name in self._recent:
            return ReusedIdError(
                f"no diagnosis within {seconds:g} s; an earlier patient had the same id: give each"
                " its own"
            )
        return NoDiagnosisError(
            f"no diagnosis within {seconds:g} s; do the workers run? See: hb status"
        )

    def _forget(self, name: str, waiter: "_Waiter") -> None:
        left = [candidate for candidate in self._waiting.pop(name, []) if candidate is not waiter]
        if left:
            self._waiting[name] = left

    async def _run(self) -> None:
        """Read diagnoses; if that fails, every waiting caller gets the error."""
        try:
            while True:
                for answer in await self._read():
                    self._take(answer)
        except Exception as error:
            for waiter in [waiter for waiters in self._waiting.values() for waiter in waiters]:
                if not waiter.future.done():
                    waiter.future.set_exception(error)
            raise

    def _take(self, answer: "_Answer") -> None:
        name = answer.diagnosis.id
        self._recent[name] = answer
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        for waiter in self._waiting.get(name, ()):
            if answer.offset >= waiter.after and not waiter.future.done():
                waiter.future.set_result(answer.diagnosis)


class _Answer(NamedTuple):
    """A diagnosis, and its offset: those of one id are on one partition."""

    diagnosis: Diagnosis
    offset: int


class _Waiter(NamedTuple):
    """A caller that waits for a diagnosis from some offset on."""

    after: int
    future: "asyncio.Future[Diagnosis]"


class AsyncClient:
    """Publishes, waits and labels. Use it as an asynchronous context manager.

    Any number of calls may run concurrently.
    """

    def __init__(self, settings: SettingsLike = None) -> None:
        self.settings = read_settings(settings)
        self._publisher = Publisher(self.settings)
        self._diagnoses = Diagnoses(self.settings)
        self._stack = AsyncExitStack()
        self._open = False

    async def __aenter__(self) -> Self:
        try:
            await self._stack.enter_async_context(self._publisher)
            await self._stack.enter_async_context(self._diagnoses)
        except BaseException:
            await self._stack.aclose()
            raise
        self._open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self._open = False
        await self._stack.aclose()

    async def publish(
        self,
        features: Mapping[str, object],
        *,
        id: str | None = None,  # noqa: A002 - the record's own word
        subject: str | None = None,
        traceparent: str | None = None,
    ) -> Published:
        """Publish a patient and return its id; see `Publisher.publish`."""
        _need(self._open, type(self).__name__)
        return await self._publisher.publish(
            features, id=id, subject=subject, traceparent=traceparent
        )

    async def publish_many(
        self,
        patients: Sequence[Mapping[str, object]],
        *,
        ids: Sequence[str] | None = None,
        subjects: Sequence[str | None] | None = None,
        traceparent: str | None = None,
    ) -> list[Published]:
        """Publish many patients together; see `Publisher.publish_many`."""
        _need(self._open, type(self).__name__)
        return await self._publisher.publish_many(
            patients, ids=ids, subjects=subjects, traceparent=traceparent
        )

    async def diagnosis(self, id: str, timeout: float = PATIENCE) -> Diagnosis:  # noqa: A002, ASYNC109 - the words users expect
        """Wait for the diagnosis of a patient published since this was entered."""
        _need(self._open, type(self).__name__)
        return await self._diagnoses.of(id, timeout)

    async def diagnose(
        self,
        features: Mapping[str, object],
        *,
        id: str | None = None,  # noqa: A002 - the record's own word
        subject: str | None = None,
        traceparent: str | None = None,
        timeout: float = PATIENCE,  # noqa: ASYNC109 - the word users expect
    ) -> Diagnosis:
        """Publish a patient and wait for its diagnosis."""
        name = await self.publish(features, id=id, subject=subject, traceparent=traceparent)
        return await self.diagnosis(name, timeout)

    async def diagnose_many(
        self,
        patients: Sequence[Mapping[str, object]],
        *,
        ids: Sequence[str] | None = None,
        subjects: Sequence[str | None] | None = None,
        traceparent: str | None = None,
        timeout: float = PATIENCE,  # noqa: ASYNC109 - the word users expect
    ) -> list[Diagnosis]:
        """Publish many patients and wait for their diagnoses, in the same order.

        A thousand at a time, each of which gets `timeout` seconds.
        """
        diagnoses: list[Diagnosis] = []
        for first in range(0, len(patients), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            names = await self.publish_many(
                patients[part],
                ids=None if ids is None else ids[part],
                subjects=None if subjects is None else subjects[part],
                traceparent=traceparent,
            )
            diagnoses += await asyncio.gather(*(self.diagnosis(name, timeout) for name in names))
        return diagnoses

    async def label(self, id: str, label: str | None, *, amends: bool = False) -> None:  # noqa: A002 - the record's own word
        """Publish the true label of a patient, or correct it; see `Publisher.label`."""
        _need(self._open, type(self).__name__)
        await self._publisher.label(id, label, amends=amends)


class Client:
    """The blocking form: publishes, waits, labels. Use it as a context manager, from any thread."""

    def __init__(self, settings: SettingsLike = None) -> None:
        self.settings = read_settings(settings)
        self._opened: AsyncClient | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="hb client")
        self._thread.start()
        client = AsyncClient(self.settings)
        try:
            self._do(client.__aenter__())
        except BaseException:
            self._end()
            raise
        self._opened = client
        return self

    def __exit__(self, *_: object) -> None:
        client, self._opened = self._client, None
        try:
            self._do(client.__aexit__())
        finally:
            self._end()

    def publish(
        self,
        features: Mapping[str, object],
        *,
        id: str | None = None,  # noqa: A002 - the record's own word
        subject: str | None = None,
        traceparent: str | None = None,
    ) -> str:
        """Publish a patient and return its id; see `Publisher.publish`."""
        work = self._client.publish(features, id=id, subject=subject, traceparent=traceparent)
        return self._do(work)

    def publish_many(
        self,
        patients: Sequence[Mapping[str, object]],
        *,
        ids: Sequence[str] | None = None,
        subjects: Sequence[str | None] | None = None,
        traceparent: str | None = None,
    ) -> list[Published]:
        """Publish many patients together; see `Publisher.publish_many`."""
        work = self._client.publish_many(
            patients, ids=ids, subjects=subjects, traceparent=traceparent
        )
        return self._do(work)

    def diagnosis(self, id: str, timeout: float = PATIENCE) -> Diagnosis:  # noqa: A002 - the record's own word
        """Wait for the diagnosis of a patient published since this was entered."""
        return self._do(self._client.diagnosis(id, timeout))

    def diagnose(
        self,
        features: Mapping[str, object],
        *,
        id: str | None = None,  # noqa: A002 - the record's own word
        subject: str | None = None,
        traceparent: str | None = None,
        timeout: float = PATIENCE,
    ) -> Diagnosis:
        """Publish a patient and wait for its diagnosis."""
        work = self._client.diagnose(
            features, id=id, subject=subject, traceparent=traceparent, timeout=timeout
        )
        return self._do(work)

    def diagnose_many(
        self,
        patients: Sequence[Mapping[str, object]],
        *,
        ids: Sequence[str] | None = None,
        subjects: Sequence[str | None] | None = None,
        traceparent: str | None = None,
        timeout: float = PATIENCE,
    ) -> list[Diagnosis]:
        """Publish many patients and wait for their diagnoses; see `AsyncClient.diagnose_many`."""
        client = self._client
        work = client.diagnose_many(
            patients, ids=ids, subjects=subjects, traceparent=traceparent, timeout=timeout
        )
        return self._do(work)

    def label(self, id: str, label: str | None, *, amends: bool = False) -> None:  # noqa: A002 - the record's own word
        """Publish the true label of a patient, or correct it; see `Publisher.label`."""
        self._do(self._client.label(id, label, amends=amends))

    @property
    def _client(self) -> AsyncClient:
        if self._opened is None:
            raise _not_open("Client", "with")
        return self._opened

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C ends the waiting, and the work with it
            raise

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _need(opened: bool, name: str) -> None:
    if not opened:
        raise _not_open(name, "async with")


def _not_open(name: str, how: str) -> InputError:
    return InputError(f"this {name} is not open; use it inside: {how} {name}(...) as client")
