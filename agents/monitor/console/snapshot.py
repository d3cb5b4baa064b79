"""What a page is sent, as plain data: no id in full, no feature value.

`about` is sent once when a page opens, `snapshot` with every frame.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

from agents.monitor.console.activity import Activity, Health
from agents.monitor.console.newest_records import DeadLetterReasons, NewestRecords
from agents.monitor.overview import Overview, TaskView
from agents.monitor.recent import recent
from learners.scores.wording import because
from schemas.records import REFER, Diagnosis, Opinion
from schemas.refusals import Reason
from settings.model import Settings
from streams.engine.tasks.task import TaskStatus
from streams.kafka.topics import local

_SHOWN = 4
_UNTAUGHT = frozenset({"no_labels", "few_labels"})
_MEANINGS = {reason.value: reason.meaning for reason in Reason}


def shortened(name: str) -> str:
    """Return the last characters of an id: ids that are given in turn begin alike. Never all of it.

    >>> shortened("3f9c2a7e-41"), shortened("p17"), shortened("x")
    ('…e-41', '…7', '…')
    """
    return "…" + name[len(name) - min(_SHOWN, len(name) // 2) :]


def token_of(name: str, id_: str) -> str:
    """Return what stands for an instance id in pages and links of the ensemble of that name.

    >>> token_of("demo", "p17")
    '3a160b75193c904b'
    """
    return blake2b(id_.encode(), key=name.encode()[:64], digest_size=8).hexdigest()


def about(settings: Settings, worker: str, started: int, version: str) -> dict[str, Any]:
    """Return what does not change while a worker runs."""
    return {
        "worker": worker,
        "started": started,
        "version": version,
        "name": settings.name,
        "mode": settings.ensemble.mode,
        "labels": list(settings.labels),
        "positive": settings.positive,
        "learners": [
            {
                "name": name,
                "features": [feature.name for feature in learner.features],
                "rules": list(learner.rules),
                "feedback": learner.feedback,
            }
            for name, learner in settings.learners.items()
        ],
        "metrics": settings.worker.metrics,
        "contextual": settings.ensemble.context is not None,
        "partitions": settings.topics.partitions,
        "limit": settings.ensemble.max_pending * settings.topics.partitions,
        "farewell": settings.worker.farewell,
    }


def snapshot(
    settings: Settings,
    overview: Overview,
    activity: Activity,
    newest: NewestRecords,
    statuses: Sequence[TaskStatus],
    *,
    returns: Callable[[Diagnosis], bool] = lambda _: False,
) -> dict[str, Any]:
    """Return the state of the system.

    statuses   of this worker's own tasks
    returns    tells of a diagnosis whether the person had been diagnosed before
    """
    scores, counts = overview.scores, overview.counts
    health = activity.health()
    return {
        "workers": len(overview.members),
        "rates": scores.rates,
        "recent": scores.recent,
        "last": recent(settings, scores).report(),
        "best": scores.best,
        "accuracy": {
            name: [item.value, item.low, item.high] for name, item in scores.accuracy.items()
        },
        "targets": scores.targets,
        "answers": scores.answers,
        "missed": scores.missed,
        "miss_targets": scores.miss_targets,
        "weights": scores.weights,
        "exploration": scores.exploration,
        "regret": scores.regret,
        "bound": scores.bound,
        "labelled": scores.labelled,
        "taught": scores.taught,
        "learned": scores.learned,
        "diagnosed": counts["diagnosed_complete"] + counts["diagnosed_incomplete"],
        "incomplete": counts["diagnosed_incomplete"],
        "labels": _labels(overview),
        "flows": {way: round(rate, 3) for way, rate in activity.rates().items()},
        "passed": activity.passed,
        "health": {_agent(name): _health(item) for name, item in health.items()},
        "diagnoses": [
            {**diagnosis(settings, item), "returns": returns(item)} for item in newest.latest
        ],
        "dead": _dead(settings, newest.letters),
        "tasks": _tasks(overview.tasks, statuses),
    }


def _labels(overview: Overview) -> dict[str, Any]:
    """Return what became of labels, how many are awaited, and how many patients came again."""
    counts = overview.counts
    return {
        "waiting": overview.waiting,
        "limit": overview.limit,
        "settled": counts["settled"],
        "parked": overview.parked,
        "duplicate": counts["label_duplicate"],
        "conflict": counts["label_conflict"],
        "unknown": counts["parked_label_unknown"],
        "late": counts["label_expired"] + counts["label_evicted"],
        "refused": counts["label_pending_full"],
        "expired": counts["expired"] + counts["evicted"],
        "amended": counts["amendment_taken"] + counts["label_again"],
        "withdrawn": counts["withdrawal_taken"],
        "unlearned": counts["unlearned"],
        "repeated": overview.repeated,
    }


def _agent(name: str) -> str:
    """Return an agent as the page knows it: a learner by its own name."""
    return name.removeprefix(local(""))


def _health(health: Health) -> dict[str, Any]:
    return {"state": health.state, "text": health.text, "well": health.well}


def diagnosis(settings: Settings, record: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis with its votes, its id shortened.

    `share` is the share of the weight whose experts agreed with the ensemble.
    """
    labels = {name: opinion.label for name, opinion in record.learners.items() if opinion.label}
    votes = record.votes or labels
    weights = {expert: record.weights.get(expert, 0.0) for expert in votes}
    total = sum(weights.values())
    agreed = sum(weight for expert, weight in weights.items() if votes[expert] == record.label)
    track = record.track_record
    return {
        "token": token_of(settings.name, record.id),
        "id": shortened(record.id),
        "at": record.at,
        "label": record.label,
        "referred": record.answer == REFER,
        "untaught": not _UNTAUGHT.isdisjoint(record.why),
        "chance": record.chance,
        "cannot_exclude": list(record.cannot_exclude),
        "track": None if track is None else [track.cases, track.right, track.low, track.high],
        "why": because(record.why),
        "learned": record.learned,
        "complete": record.complete,
        "missing": list(record.missing),
        "share": round(agreed / total, 4) if total else None,
        "votes": [
            _vote(name, record.learners[name], record.weights.get(name), settings.privacy.min_cube)
            for name in settings.learners
            if name in record.learners
        ],
    }


def _vote(name: str, opinion: Opinion, weight: float | None, fewest: int) -> dict[str, Any]:
    """Return an opinion; what few patients of the cube led to is withheld."""
    few = 0 < opinion.trials < fewest
    return {
        "weight": weight,
        "missing": opinion.missing,
        "learner": name,
        "label": opinion.label,
        "rule": opinion.rule,
        "exploring": opinion.exploring,
        "trials": None if few else opinion.trials,
        "accuracy": None if few else opinion.accuracy,
        "low": None if few else opinion.low,
        "high": None if few else opinion.high,
    }


def _dead(settings: Settings, letters: DeadLetterReasons) -> dict[str, Any]:
    prefix = settings.topics.prefix
    return {
        "counted": letters.counted,
        "all": letters.all_counted,
        "reasons": [
            {
                "reason": reason,
                "topic": topic.removeprefix(prefix),
                "meaning": _MEANINGS.get(reason, ""),
                "count": count,
            }
            for (reason, topic), count in letters.counts.most_common()
        ],
    }


def _tasks(tasks: Iterable[TaskView], statuses: Sequence[TaskStatus]) -> list[dict[str, Any]]:
    """Return all tasks; those of this worker with their phase and errors."""
    own = {(status.agent, status.partition): status for status in statuses}
    return [_task(task, own.get((task.agent, task.partition))) for task in tasks]


def _task(task: TaskView, own: TaskStatus | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "agent": task.agent,
        "partition": task.partition,
        "holder": task.holder,
        "behind": task.behind,
    }
    if own is not None:
        row |= {
            "phase": own.phase.value,
            "reason": own.reason,
            "reopenings": max(own.reopenings, 0),
            "uncommitted": None if own.oldest is None else round(own.oldest, 1),
        }
    return row
