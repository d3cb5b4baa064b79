"""Reasons: one for each prediction of an additive rule, about its log-odds, which they sum to.

They can be switched on at any time, so predictions should have them from the one on that the first
record on the topic is about. Those that were made while they were switched off again count as lost.
"""

from typing import TYPE_CHECKING

import numpy as np

from audit.recording.columns import count, firsts, occurrences
from learners.arrays.types import Bools, Ints

if TYPE_CHECKING:
    from audit.local_learner import LocalAudit


def audit_reasons(audit: "LocalAudit") -> None:
    """Compare a learner's reasons with its predictions, if it publishes any."""
    log = audit.observed.logs.explanations.get(audit.name)
    if log is None:
        return
    findings, size, ids = audit.findings, audit.observed.size, log.columns["id"]
    predicted_ids, explicable = audit.predictions["id"], _explicable(audit)
    counted, scope = count(ids, size), audit.observed.scope
    due = count(
        predicted_ids[explicable & audit.early() & _since_the_first(predicted_ids, ids, size)], size
    )
    findings.count("reasons", len(ids))
    findings.differing("reasons that cannot be read", audit.where, len(log.bad))
    findings.lost("reasons", audit.where, np.maximum(due - counted, 0)[scope])
    surplus = np.maximum(counted - count(predicted_ids[explicable], size), 0)
    findings.double("reasons", audit.where, surplus[scope])
    findings.differing("sums of reasons", audit.where, ~log.columns["sound"])
    findings.differing("reasons of other log-odds", audit.where, _misfits(audit, explicable))


def _explicable(audit: "LocalAudit") -> Bools:
    """Mark the predictions that have an opinion, by a rule that is additive."""
    additive = np.array([*(rule.additive for rule in audit.learner.rules), False])
    return np.asarray(additive[audit.predictions["rule"]] & (audit.predictions["label"] >= 0))


def _since_the_first(predicted_ids: Ints, ids: Ints, size: int) -> Bools:
    """Mark the predictions from the one on that the first reasons are about."""
    if not len(ids):
        return np.zeros(len(predicted_ids), np.bool_)
    return np.asarray(np.arange(len(predicted_ids)) >= max(firsts(predicted_ids, size)[ids[0]], 0))


def _misfits(audit: "LocalAudit", explicable: Bools) -> Bools:
    """Mark the reasons whose prediction has another rule, or other log-odds if it has any."""
    columns = audit.observed.logs.explanations[audit.name].columns
    predictions = {key: audit.predictions[key][explicable] for key in ("id", "rule", "odds")}
    step = max(len(columns), len(predictions["id"])) + 1
    # From the end, because the first reasons may be gone or never have been sent.
    reason_keys, prediction_keys = (
        ids * step + occurrences(ids[::-1])[::-1] for ids in (columns["id"], predictions["id"])
    )
    _, here, there = np.intersect1d(
        reason_keys, prediction_keys, assume_unique=True, return_indices=True
    )
    sent = predictions["odds"][there]
    differing = np.isfinite(sent).all(axis=1) & (columns["odds"][here] != sent).any(axis=1)
    return np.asarray(differing | (columns["rule"][here] != predictions["rule"][there]))
