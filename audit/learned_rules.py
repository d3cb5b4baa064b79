"""Rules that learn, taught again from the partition's feedback and features.

The lessons are in the order of the feedback, so a rule that is `exact` must come out identical bit
by bit; the others must make the same predictions.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from agents.models import EARLIER, MODELS, ModelFormat
from agents.pooling import BEGAN, EARLIER_FORM, FILLING, FORM, LEARNED
from agents.state_encoding import unpack_state
from agents.totals import FORGOTTEN
from agents.waiting_features import RowFormat
from audit.compare import same_state
from audit.recording.columns import firsts
from learners.arrays.types import Bools, State
from learners.errors import LearnerError
from learners.local.learner import Lessons, opinion
from learners.rules.base import LearningRule
from streams.engine.errors import FinalError
from streams.kafka.topics import local

if TYPE_CHECKING:
    from audit.local_learner import LocalAudit

_PROBES = 1000


class Taught(NamedTuple):
    """What rules were taught, why that is unknown if it is, and whether a rule failed on it."""

    lessons: Lessons
    unknown: str = ""
    failed: bool = False


def lessons_of(audit: "LocalAudit", learned: Bools) -> Taught:
    """Return what the rules were taught by some feedback."""
    unknown = _unknowable(audit) if audit.learner.learns else ""
    if unknown or not audit.learner.learns:
        d, K = audit.learner.space.d, audit.learner.classes
        return Taught(Lessons(np.zeros((0, d)), np.zeros(0, np.int64), np.zeros((0, K))), unknown)
    # Feedback that a rule failed on is counted, and teaches nothing.
    learned = learned & audit.observed.usable(audit.observed.topics.feedback(audit.name))
    # The features of an erased patient who was still waiting for the label taught nothing.
    learned = learned & (audit.erased[audit.feedback["id"]] <= 0)
    first = firsts(audit.instances["id"], audit.observed.size)
    at = first[audit.feedback["id"][learned]]
    truth = audit.feedback["label"][learned].astype(np.int64)
    log_odds = np.nan_to_num(audit.feedback["others"][learned])
    own = opinion(audit.feedback["odds"], audit.feedback["predicted"])[learned]
    chosen = audit.feedback["rule"][learned].astype(np.int64)
    present = at >= 0
    rows = audit.instances["row"][at[present]]
    return Taught(Lessons(rows, truth[present], log_odds[present], own[present], chosen[present]))


def audit_models(audit: "LocalAudit", taught: Taught) -> None:
    """Compare a learner's models with those taught again, and its features with the instances."""
    rules = audit.learner.learning_rules
    if not audit.learner.learns:
        return
    _audit_features(audit)
    note = taught.unknown
    _audit_filling(audit, taught)
    for rule in rules:
        name = f"{local(audit.name)} model {rule.name}"
        stored = _model(audit, rule.name.encode())
        if note or (stored is None and not len(taught.lessons.truth)):
            audit.findings.table(name, audit.where, values=0, differing=0, note=note)
            continue
        values, differing, why = _compare(audit, rule, stored, taught)
        audit.findings.table(name, audit.where, values=values, differing=differing, note=why)


def _audit_filling(audit: "LocalAudit", taught: Taught) -> None:
    """Compare what fills in for missing values with what the lessons give, if any were missing."""
    stored = _state(audit, FILLING, _model(audit, FILLING))
    again = audit.learner.filling.state()
    if not stored and not again:
        return
    note = taught.unknown or ("not compared: a rule failed" if taught.failed else "")
    differing = 0 if note else same_state(stored, again)
    audit.findings.table(
        f"{local(audit.name)} filling", audit.where, values=len(again), differing=differing,
        note=note,
    )  # fmt: skip


def _model(audit: "LocalAudit", name: bytes) -> bytes | None:
    """Return a model as it is kept; earlier versions kept it in another table."""
    entries = audit.state.entries
    return entries[MODELS].get(name) or entries[EARLIER].get(name)


def _state(audit: "LocalAudit", name: bytes, stored: bytes | None) -> State:
    """Return a model that is kept, decrypted."""
    if stored is None:
        return {}
    return unpack_state(ModelFormat(audit.observed.settings, audit.name).read(name, stored))


def _unknowable(audit: "LocalAudit") -> str:
    """Say why the rules cannot be taught again; nothing if they can."""
    observed = audit.observed
    if observed.cut(observed.topics.instances(audit.name)):
        return "not compared: the first instances are gone"
    if observed.cut(observed.topics.feedback(audit.name)):
        return "not compared: the first feedback is gone"
    ids, rows = audit.instances["id"][audit.read], audit.instances["row"][audit.read]
    first = firsts(ids, observed.size)
    if not np.array_equal(rows, rows[first[ids]], equal_nan=True):
        return "not compared: an id came with different features, and it is not known which count"
    return ""


def _compare(
    audit: "LocalAudit", rule: LearningRule, stored: bytes | None, taught: Taught
) -> tuple[int, int, str]:
    """Return values compared, values differing, and a note."""
    lessons = len(taught.lessons.truth)
    try:
        live = _state(audit, rule.name.encode(), stored)
        learned = int(live.pop(LEARNED, np.array(0)))
        began = int(live.pop(BEGAN, np.array(EARLIER_FORM if live else FORM)))
    except Exception:  # noqa: BLE001  # anyone may have written it
        return 1, 1, "it cannot be read"
    given_up = int(audit.state.counts["totals"].rows(np.zeros(1, np.int64))[0, FORGOTTEN])
    if learned < lessons <= learned + given_up:
        return 0, 0, f"not compared: features of {lessons - learned} instances were given up"
    if learned != lessons or taught.failed or began not in {EARLIER_FORM, FORM}:
        return 1, 1, ""
    if rule.exact:
        differing = same_state(live, rule.state())
        if differing and began == EARLIER_FORM:
            return 0, 0, "not compared: it began under a version that kept values in another form"
        return len(live), differing, ""
    return _compare_predictions(audit, rule, live)


def _compare_predictions(
    audit: "LocalAudit", rule: LearningRule, live: State
) -> tuple[int, int, str]:
    """Return predictions compared, predictions differing, and a note."""
    probes = audit.learner.filling.look(audit.instances["row"][-_PROBES:])
    ours = rule.judge(probes)[0]
    try:
        rule.restore(live)
    except LearnerError as error:
        return 1, 1, str(error)
    return len(probes), int((rule.judge(probes)[0] != ours).sum()), "by what it predicts"


def _audit_features(audit: "LocalAudit") -> None:
    """Compare the features that wait for their label with the instances they came with."""
    stored = audit.state.entries["features"]
    find = audit.observed.logs.names.ids.find
    expected = {
        (number, row.tobytes())
        for number, row in zip(audit.instances["id"].tolist(), audit.instances["row"], strict=True)
    }
    rows = RowFormat(audit.observed.settings, audit.name)
    wrong = 0
    for key, value in stored.items():
        name = key.decode("utf-8", "replace")
        try:
            wrong += (find(name), rows.read(name, value[8:])) not in expected
        except FinalError as error:
            audit.findings.note(str(error))
            wrong += 1
    note = "" if audit.observed.whole else "not compared: the start of its topics is gone"
    audit.findings.table(
        f"{local(audit.name)} features", audit.where, values=len(stored),
        differing=0 if note else wrong, note=note,
    )  # fmt: skip
