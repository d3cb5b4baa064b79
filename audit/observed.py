"""What an audit reads of one partition: its topics, and the live state of its agents."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from agents.erasures import TABLE, digest_of
from agents.state_encoding import unpack
from agents.totals import AmendmentTotals, EnsembleTotals
from audit.live_state import LiveState
from audit.recording.columns import Columns, firsts
from audit.recording.partition_logs import PartitionLogs
from audit.recording.topic_logs import Log
from learners.arrays.types import ABSTAINED, MISSING, Bools, Ints
from learners.join import Reason
from learners.join.entries import (
    EVICTED,
    EXPIRED,
    WITHDRAWN,
    DiagnosedEntry,
    Entry,
    OpenEntry,
    OverEntry,
    SettledEntry,
    entry_of,
)
from settings.model import Settings
from streams.kafka.topics import ENSEMBLE, Topics, local

GONE, PARKED, OPEN, DIAGNOSED, SETTLED, EXPIRED_STATE, EVICTED_STATE, WITHDRAWN_STATE = range(8)
"""What the ensemble learner's state says of an instance; GONE: nothing, or nothing any more."""


@dataclass(slots=True)
class Pending:
    """The ensemble learner's entries: the state of each instance and the label it has there."""

    status: Ints
    label: Ints
    entries: dict[int, Entry] = field(default_factory=dict)


@dataclass
class Observed:
    """The topics of one partition, and the states of the agents that read them."""

    logs: PartitionLogs
    states: dict[str, LiveState]

    @property
    def settings(self) -> Settings:
        """The settings of the ensemble."""
        return self.logs.settings

    @cached_property
    def topics(self) -> Topics:
        """The names of the topics."""
        return Topics.of(self.settings)

    def place(self, part: str) -> str:
        """Return where something was found, for the report."""
        return f"{part}/{self.logs.partition}"

    def state(self, agent: str) -> LiveState:
        """Return the state of an agent."""
        return self.states[agent]

    def position(self, topic: str) -> int:
        """Return how far the agent that reads a topic had read it."""
        for state in self.states.values():
            if topic in state.positions:
                return state.positions[topic]
        return 0

    def within(self, topic: str, columns: Columns) -> Bools:
        """Mark the records that the agent had read."""
        return np.asarray(columns["offset"] < self.position(topic))

    def cut(self, topic: str) -> bool:
        """Whether retention has removed the beginning of a topic."""
        return self.logs.spans[topic].cut

    def log(self, topic: str) -> Log:
        """Return the log of a topic."""
        return self.logs.by_topic()[topic]

    def readers(self) -> dict[str, str]:
        """Return, for each input topic, the agent that reads it."""
        topics = self.topics
        read = {topics.predictions: ENSEMBLE, topics.labels: ENSEMBLE}
        if topics.contextual:
            read[topics.contexts] = ENSEMBLE
        for name in topics.learners:
            read[topics.instances(name)] = read[topics.feedback(name)] = local(name)
        return read

    def refused(self, topic: str, *reasons: str) -> Ints:
        """Return the offsets of a topic's records that were refused for one of some reasons."""
        letters = self.logs.reasons.get(topic, {})
        offsets = [o for o, why in letters.items() if any(reason in reasons for reason in why)]
        return np.array(sorted(offsets), np.int64)

    def usable(self, topic: str) -> Bools:
        """Mark a topic's good records that were not refused later, by a rule or by the join."""
        away = self.refused(topic, *map(str, Reason), "rule_failed")
        return ~np.isin(self.log(topic).columns["offset"], away)

    @cached_property
    def totals(self) -> EnsembleTotals:
        """The totals of the ensemble learner."""
        return EnsembleTotals(self.state(ENSEMBLE).counts["totals"].rows(np.zeros(1, np.int64))[0])

    @cached_property
    def amendments(self) -> AmendmentTotals:
        """What the ensemble learner counted of corrected labels."""
        rows = self.state(ENSEMBLE).counts["amendments"].rows(np.zeros(1, np.int64))
        return AmendmentTotals(rows[0])

    @cached_property
    def head(self) -> dict[str, int]:
        """The counts that the ensemble learner's join keeps."""
        return self.totals.counts | self.amendments.counts

    @cached_property
    def pending(self) -> Pending:
        """The ensemble learner's entries."""
        pending = Pending(np.zeros(self.size, np.int64), np.full(self.size, MISSING, np.int64))
        for name, entry in self._entries.items():
            number = self.logs.names.ids.find(name)
            pending.entries[number] = entry
            pending.status[number], pending.label[number] = _status(entry)
        return pending

    @cached_property
    def _entries(self) -> "dict[str, Entry]":
        """The ensemble learner's entries by instance; those that cannot be read are a problem."""
        state, entries = self.state(ENSEMBLE), {}
        for key, value in state.entries["pending"].items():
            try:
                entry = entry_of(unpack(value))
                _check_entry(entry, len(self.settings.learners), len(self.settings.labels))
                entries[key.decode()] = entry
            except Exception:  # noqa: BLE001  # anybody may have written it
                state.problems["entries of table pending that cannot be read"] += 1
        return entries

    @cached_property
    def size(self) -> int:
        """How many instances there are, in the topics and in the ensemble learner's state."""
        self.logs.names.ids.of(self._entries)
        return len(self.logs.names.ids)

    def erased(self, agent: str) -> Ints:
        """Return what an agent noted of each instance when it was erased; -1: it was not."""
        moments, noted = self.state(agent).entries[TABLE], np.full(self.size, -1, np.int64)
        if moments:
            digests = (digest_of(name).encode() for name in self.logs.names.ids.names())
            noted[:] = [int.from_bytes(moments[d]) if d in moments else -1 for d in digests]
        return noted

    @cached_property
    def scope(self) -> Bools:
        """Mark the instances whose whole history is in the topics, and who were not erased.

        If the start of some topics is gone, these are the instances that reached every learner
        after the last of the gaps.
        """
        since = self.logs.vouched_from
        scope = np.ones(self.size, np.bool_)
        for agent in self.states:
            scope &= self.erased(agent) < 0
        if since is not None:
            for log in self.logs.instances.values():
                first = firsts(log.columns["id"], self.size)
                times = np.r_[log.columns["time"], MISSING]
                scope &= times[first] >= since
        return scope

    @property
    def whole(self) -> bool:
        """Whether nothing was removed, so that tables can be recomputed from the start."""
        return self.logs.vouched_from is None


def _check_entry(entry: Entry, learners: int, labels: int) -> None:
    """Raise if an entry names learners or labels that do not exist."""
    if isinstance(entry, SettledEntry):
        _check_entry(waited(entry), learners, labels)
        sound = entry.outcome in (*range(labels), WITHDRAWN) and entry.taught in range(labels)
    elif isinstance(entry, OverEntry):
        outcomes = (*range(labels), EXPIRED, EVICTED, WITHDRAWN, MISSING)
        sound = entry.outcome in outcomes
    else:
        sound = len(entry.labels) == learners
        sound &= all(label in (*range(labels), MISSING, ABSTAINED) for label in entry.labels)
    if isinstance(entry, OpenEntry):
        sound &= entry.label in (*range(labels), MISSING)
    if not sound:
        raise ValueError("an entry of other settings")


def waited(entry: SettledEntry) -> DiagnosedEntry:
    """Return the entry that had waited for the label."""
    return DiagnosedEntry(*unpack(entry.diagnosed))


_OUTCOMES = {EXPIRED: EXPIRED_STATE, EVICTED: EVICTED_STATE, WITHDRAWN: WITHDRAWN_STATE}


def _status(entry: Entry) -> tuple[int, int]:
    """Return the state and the label of an instance from its entry."""
    if isinstance(entry, OverEntry | SettledEntry):
        return _OUTCOMES.get(entry.outcome, SETTLED), max(entry.outcome, MISSING)
    if isinstance(entry, DiagnosedEntry):
        return DIAGNOSED, MISSING
    predicted = any(label != MISSING for label in entry.labels)
    return (OPEN if predicted else PARKED), entry.label
