"""Who may do what on the broker: one role per kind of program, with exactly what it needs.

A right is Kafka's: an operation on a topic, a consumer group or a transactional id. What is not
granted is denied. Reading or writing a topic includes describing it.

| role           | is                                  | may                                  |
|----------------|-------------------------------------|--------------------------------------|
| `local-<ll>`   | the worker of one local learner     | its inputs, outputs and state        |
| `ensemble`     | the worker of the ensemble learner  | its inputs, outputs and state        |
| `producer-<ll>`| who publishes for one local learner | write its instances                  |
| `producer`     | who publishes whole patients        | write all instances, and contexts    |
| `labels`       | who knows the truth                 | write labels                         |
| `reader`       | who uses the diagnoses              | read diagnoses                       |
| `reasons-<ll>` | who may see one learner's reasons   | read diagnoses and its reasons       |
| `monitor`      | who watches (`hb status`)           | read counts and totals               |
| `operator`     | who runs it (`hb topics, hb audit,  | read all, create and configure       |
|                | hb forget`)                         | topics, erase patients               |

Nobody but its own task writes a changelog, and nobody but a learner and the operator reads what the
learner sees and what its rules have learned from it. Every worker watches the system, and so has
what `monitor` has.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from settings.model import Settings
from streams.kafka.topics import ENSEMBLE, Topics, local

Resource = Literal["topic", "group", "transactional-id"]
Operation = Literal[
    "read", "write", "create", "delete", "describe", "describe-configs", "alter-configs"
]


@dataclass(frozen=True, order=True)
class Right:
    """One operation on a resource, or on all whose names begin like it."""

    resource: Resource
    name: str
    operation: Operation
    prefixed: bool = False


@dataclass(frozen=True)
class Role:
    """What programs of one kind may do, and the user that they log in as."""

    name: str
    user: str
    rights: frozenset[Right]

    @property
    def principal(self) -> str:
        """The user as Kafka calls it."""
        return f"User:{self.user}"


def roles(settings: Settings) -> tuple[Role, ...]:
    """Return every role of an ensemble; its users are named after the ensemble and the role."""
    topics = Topics.of(settings)
    rights: dict[str, Iterable[Right]] = {
        **{f"local-{name}": _local(settings, topics, name) for name in topics.learners},
        "ensemble": _ensemble(settings, topics),
        **{f"producer-{name}": _on("write", topics.instances(name)) for name in topics.learners},
        "producer": _on("write", *map(topics.instances, topics.learners), *_contexts(topics)),
        "labels": _on("write", topics.labels),
        "reader": _reading(settings, topics),
        **{
            f"reasons-{name}": [*_reading(settings, topics), *_on("read", topics.reasons(name))]
            for name in topics.explained
        },
        "monitor": _watching(settings, topics),
        "operator": _operating(settings, topics),
    }
    return tuple(
        Role(name, f"{settings.name}-{name}", frozenset(allowed))
        for name, allowed in rights.items()
    )


def _local(settings: Settings, topics: Topics, name: str) -> Iterator[Right]:
    yield from _on("read", topics.instances(name), topics.feedback(name))
    yield from _on("write", topics.predictions, topics.deadletter_of(name))
    if name in topics.explained:
        yield from _on("write", topics.reasons(name))
    yield from _on("read", topics.models(name))
    yield from _working(settings, topics, local(name))


def _reading(settings: Settings, topics: Topics) -> list[Right]:
    return [*_on("read", topics.diagnoses), *_group(f"{settings.name}-reader", prefix=True)]


def _ensemble(settings: Settings, topics: Topics) -> Iterator[Right]:
    yield from _on("read", topics.predictions, topics.labels, *_contexts(topics), topics.erasures)
    yield from _on("write", topics.diagnoses, topics.deadletter)
    yield from _on("write", *map(topics.feedback, topics.learners))
    yield from _working(settings, topics, ENSEMBLE)


def _working(settings: Settings, topics: Topics, agent: str) -> Iterator[Right]:
    """Yield what a worker needs for its state, its transactions and its group."""
    yield from _on("read", topics.changelog(agent))
    yield from _on("write", *topics.states_of(agent))
    yield Right("transactional-id", f"{topics.prefix}{agent}.", "write", prefixed=True)
    yield from _group(settings.name)
    yield from _watching(settings, topics)


def _watching(settings: Settings, topics: Topics) -> Iterator[Right]:
    yield from _on("read", *map(topics.shared, topics.agents))
    for operation in ("describe", "describe-configs"):
        yield from _on(operation, *_all(topics))
    yield Right("group", settings.name, "describe")


def _operating(settings: Settings, topics: Topics) -> Iterator[Right]:
    yield from _watching(settings, topics)
    for operation in ("read", "create", "alter-configs"):
        yield from _on(operation, *_all(topics))
    yield from _on("write", topics.erasures)
    yield from _on("delete", *topics.kinds)


def _all(topics: Topics) -> list[str]:
    return [*topics.kinds, *topics.states]


def _contexts(topics: Topics) -> tuple[str, ...]:
    return (topics.contexts,) if topics.contextual else ()


def _on(operation: Operation, *names: str) -> list[Right]:
    return [Right("topic", name, operation) for name in names]


def _group(name: str, *, prefix: bool = False) -> list[Right]:
    return [Right("group", name, "read", prefix)]


def as_command(role: Role, right: Right) -> str:
    """Return the call of Kafka's own tool that grants a right.

    >>> role = Role("labels", "toy-labels", frozenset())
    >>> as_command(role, Right("topic", "toy.labels", "write"))
    '--add --allow-principal User:toy-labels --operation Write --topic toy.labels'
    """
    operation = "".join(part.capitalize() for part in right.operation.split("-"))
    pattern = " --resource-pattern-type prefixed" if right.prefixed else ""
    return (
        f"--add --allow-principal {role.principal} --operation {operation}"
        f" --{right.resource} {right.name}{pattern}"
    )
