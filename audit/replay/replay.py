"""Replays a recorded stream through the pure learners, with the live settings and with others.

Where the record says what every decision rested on, the replay follows it, and with nothing changed
it gives the live diagnoses (`audit.replay.recorded_pace`). Otherwise it goes by the records' times
(`audit.replay.player`), and each diagnosis that differs has a cause (`audit.replay.differences`).

What no replay can know is whether other diagnoses would have led to other labels: the recorded ones
are taken as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agents.ensemble_learner import join_rules
from audit.recording.columns import firsts
from audit.recording.partition_logs import PartitionLogs, read_partition
from audit.recording.reader import Progress, opened, silent
from audit.replay.differences import Differences, differences
from audit.replay.player import Player
from audit.replay.recorded_order import Schedule, schedule
from audit.replay.recorded_pace import Follower
from audit.replay.recorded_stream import recorded_stream
from audit.replay.score import Score, live_score
from learners.arrays.types import MISSING, Ints
from settings.model import Settings
from streams.kafka.topics import Topics


@dataclass(frozen=True, slots=True)
class Replay:
    """How a recorded stream went: live, replayed, and replayed with nothing changed.

    The last tells what a change of settings does apart from what a replay cannot know; it is the
    replay itself if nothing was changed. Both are compared with the live diagnoses.

    order   why it did not follow the record; None if it did
    """

    live: Score
    replayed: Score
    unchanged: Score
    agreement: float | None
    differences: Differences
    patients: int
    positive: int
    order: str | None

    @property
    def caveats(self) -> tuple[str, ...]:
        """In what this replay is not exact."""
        by_time = f"labels and decisions are in the order of their times: {self.order}"
        return (*(() if self.order is None else (by_time,)), *self.differences.sentences())

    def report(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "figures": {
                "agreement": self.agreement,
                "unchanged_agreement": self.differences.agreement,
                "compared": self.differences.compared,
                "patients": self.patients,
                "followed": self.order is None,
                **self.differences.figures(),
                "live": self.live.report(self.positive),
                "unchanged": self.unchanged.report(self.positive),
                "replay": self.replayed.report(self.positive),
            },
            "caveats": list(self.caveats),
        }


def replayed(
    recorded: Sequence[PartitionLogs], settings: Settings, progress: Progress = silent
) -> Replay:
    """Replay what was recorded with `settings`, and compare it with the live run."""
    was = recorded[0].settings
    order = schedule(recorded) if _same_join(was, settings) else _OTHER_JOIN
    same = _player(recorded, was, order)
    unchanged = same.play(progress)
    player, score = same, unchanged
    if settings != was:
        player = _player(recorded, settings, order)
        score = player.play(progress)
    live = np.concatenate([_diagnosed(logs) for logs in recorded])
    return Replay(
        live_score(recorded),
        score,
        unchanged,
        _agreement(live, player),
        differences(recorded, live, same.diagnosed, same.rests_on),
        int((player.diagnosed != MISSING).sum()),
        settings.labels.index(settings.positive),
        None if isinstance(order, Schedule) else str(order),
    )


_OTHER_JOIN = "what other time-outs and limits of the join would have led to is not on record"


def _same_join(left: Settings, right: Settings) -> bool:
    """Tell whether both wait alike; learners may be others."""
    return replace(join_rules(left), learners=1) == replace(join_rules(right), learners=1)


def _player(recorded: Sequence[PartitionLogs], settings: Settings, order: object) -> Player:
    stream = recorded_stream(recorded, settings)
    if isinstance(order, Schedule):
        return Follower(stream, settings, order)
    return Player(stream, settings)


def _agreement(live: Ints, player: Player) -> float | None:
    """Return the share of diagnoses that came out as they did live."""
    comparable = (live != MISSING) & (player.diagnosed != MISSING)
    return (
        float((live[comparable] == player.diagnosed[comparable]).mean())
        if comparable.any()
        else None
    )


def _diagnosed(logs: PartitionLogs) -> Ints:
    columns = logs.diagnoses.columns
    first = firsts(columns["id"], len(logs.names.ids))
    labels = np.r_[columns["label"], MISSING].astype(np.int64)
    return np.asarray(labels[first], np.int64)


async def replay(live: Settings, settings: Settings, progress: Progress = silent) -> Replay:
    """Read what was recorded under `live` and replay it with `settings`."""
    async with opened(live, "replay", progress) as recording:
        numbers = await recording.partitions(Topics.of(live).predictions)
        recorded = [await read_partition(recording, live, number) for number in numbers]
    return replayed(recorded, settings, progress)
