"""How the whole system is doing: the one answer that the console and `hb status` show.

It is made from what was read from the broker, or from the error that prevented the reading; a
worker adds what it knows of itself.
"""

from collections.abc import Iterable

from agents.monitor.overview import Overview, TaskView
from settings.errors import BrokerError, HbError
from streams.engine.health import Cause, Symptom, Verdict, broker_away, verdict
from streams.engine.held_back import HELD_BACK_AFTER, HeldBack
from streams.kafka.connection import BrokerAwayError, BrokerSlowError


def system_verdict(
    overview: Overview | None, error: HbError | None = None, own: Iterable[Symptom] = ()
) -> Verdict:
    """Return how the system is doing; `own` are the symptoms of the worker that asks."""
    symptoms = list(own)
    if error is not None:
        symptoms.append(symptom_of(error))
    if overview is not None:
        symptoms += symptoms_of(overview)
    return verdict(symptoms)


def symptom_of(error: HbError) -> Symptom:
    """Return what an error says about the system that could not be looked at."""
    if isinstance(error, BrokerAwayError):
        return broker_away(error.address)
    if isinstance(error, BrokerSlowError):
        return Symptom(Cause.BROKER_SLOW, "the broker is slow to answer")
    cause = Cause.BROKER_UNUSABLE if isinstance(error, BrokerError) else Cause.STATE_UNREADABLE
    return Symptom(cause, str(error))


def symptoms_of(overview: Overview) -> list[Symptom]:
    """Return what is wrong with the system as it was seen."""
    symptoms = [task.symptom for task in overview.tasks if task.symptom is not None]
    symptoms += [
        _held_back(partition)
        for partition in overview.held_back
        if partition.seconds >= HELD_BACK_AFTER
    ]
    unheld = [task for task in overview.tasks if task.holder is None]
    if not overview.members:
        return [*symptoms, Symptom(Cause.NO_WORKER, "no worker runs")]
    return [*symptoms, Symptom(Cause.TASK_UNHELD, _unheld(unheld))] if unheld else symptoms


def _held_back(partition: HeldBack) -> Symptom:
    text = (
        f"an open transaction holds {partition.topic}/{partition.partition} back:"
        f" {partition.records} records written there cannot be read"
    )
    return Symptom(Cause.HELD_BACK, text)


def _unheld(tasks: list[TaskView]) -> str:
    first = f"{tasks[0].agent}/{tasks[0].partition}"
    if len(tasks) == 1:
        return f"task {first} is held by no worker"
    return f"{len(tasks)} tasks are held by no worker, {first} among them"
