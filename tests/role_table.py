"""The table of roles and operations: as the rights say, and as docs show it."""

import re
from pathlib import Path

from streams.kafka.rights import roles
from streams.kafka.topics import Topics, declared

DOCS = Path(__file__).parent.parent / "docs" / "broker.md"
NAME, LEARNERS = "clinic", ("a", "b", "c")
OVERRIDES = (
    "learners.c.reasons=true",
    'learners.c.rules={lr={kind="bayes"}}',
    'ensemble.mode="ch-vote"',
    'ensemble.context={features=[{name="y", low=0.0, high=1.0}]}',
)
"""Have the settings of `pipeline_kit` call for every kind of topic and every kind of role."""
_COLUMNS = {
    "read": "read", "write": "write", "create": "create", "delete": "delete",
    "alter-configs": "configure",
}  # fmt: skip
_HEAD = ("on", *_COLUMNS.values())
_IMPLIED = {
    ("topic", "read"): "describe",
    ("topic", "write"): "describe",
    ("topic", "delete"): "describe",
    ("topic", "alter-configs"): "describe-configs",
    ("group", "read"): "describe",
}
"""What Kafka allows to whoever may do something else."""


def resources(settings):
    """Return (kind, name) of all that roles have rights on, and of some that nobody has."""
    topics = Topics.of(settings)
    elsewhere = f"{topics.prefix}elsewhere"
    return [
        *(("topic", name) for name in (*(topic.name for topic in declared(settings)), elsewhere)),
        *(("group", name) for name in (settings.name, f"{settings.name}-reader-1", elsewhere)),
        *(("transactional-id", f"{topics.prefix}{agent}.0") for agent in topics.agents),
        ("transactional-id", elsewhere),
    ]


def granted(settings):
    """Return for each role what it may do, as (kind, name, operation)."""
    return {role.name: {*_granted(role, resources(settings))} for role in roles(settings)}


def _granted(role, places):
    for right in role.rights:
        for kind, name in places:
            matches = name.startswith(right.name) if right.prefixed else name == right.name
            if kind == right.resource and matches:
                yield kind, name, right.operation
                if (kind, right.operation) in _IMPLIED:
                    yield kind, name, _IMPLIED[kind, right.operation]


def rendered(may, settings):
    """Return the lines of docs' table: who may do what with each topic, group and id."""
    prefix, rows = settings.topics.prefix, {}
    for kind, name in resources(settings):
        words = re.split(r"[.-]", name.removeprefix(prefix))
        own = next((learner for learner in LEARNERS if learner in words), None)
        shown = re.sub(rf"\.{own}\b", ".<ll>", name.removeprefix(prefix))
        shown = re.sub(rf"^{settings.name}\b", "<name>", re.sub(r"\b[01]$", "…", shown))
        cells = []
        for operation in _COLUMNS:
            who = {r for r, done in may.items() if (kind, name, operation) in done}
            cells.append(", ".join(sorted({f"`{_general(role, own)}`" for role in who})))
        row = f"{kind.replace('-', ' ')} `{shown}`"
        assert rows.setdefault(row, cells) == cells, "every learner is treated alike"
    return [_line(_HEAD), _line(["---"] * len(_HEAD)), *(_line([k, *v]) for k, v in rows.items())]


def _general(role, own):
    """Return a role's name without the learner's; `own` is the learner that the row is about."""
    name, _, learner = role.partition("-")
    if learner not in LEARNERS:
        return role
    return f"{name}-<ll>" if own in (None, learner) else f"{name}-<other>"


def _line(cells):
    return f"| {' | '.join(cells)} |".replace("|  ", "| ")


def documented():
    """Return the lines of the table in docs."""
    table = re.search(rf"^{re.escape(_line(_HEAD))}\n(\|.*\n)+", DOCS.read_text(), re.MULTILINE)
    return table[0].splitlines() if table else []
