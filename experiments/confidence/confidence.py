"""How far a diagnosis can be trusted, on ten data sets: six medical, five with missing values.

Every set is run with labels 0 and 100 patients late, with and without drift, by the learners that
`hb init` proposes, each label with a miss target of 5 %. `streams.py` says what comes when, and
which group's labels change: on three sets it is empty, and these have no stream with drift.

The comparison with River is over the patients of the first pass, from the tenth known label on:
until then the product diagnoses nobody (`ensemble.min_labels`).
Figures that miss their target are reported like the others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from experiments.confidence.measures import (
    brier_score,
    calibration_error,
    calibration_floor,
    calibration_gap_se,
    error_rate,
    log_loss,
    referred,
)
from experiments.confidence.ours import listen
from experiments.confidence.river_chances import CANDIDATES, river_chances
from experiments.confidence.streams import (
    MEDICAL,
    SETS,
    Case,
    changing,
    dataset,
    make_stream,
    proposed,
    told,
)
from experiments.process_pool import spread
from experiments.report.result import Result, Row, Table
from experiments.single_pass.bootstrap import Gap, gap
from learners.arrays.types import Bools, Floats, Ints

Tick = Callable[[], object]
TARGET = 0.05
WANTED = 2_000
LATE = (0, 100)
LEVEL = 0.95
UNTAUGHT = 10
"""Labels that must be known before anybody is diagnosed, by default (`ensemble.min_labels`)."""
BEYOND = 1.96
"""How many standard errors make a difference more than chance, at this level."""


@dataclass(frozen=True)
class Found:
    """What one stream showed; rates in percent.

    error, river_error          on the first pass
    gap                         their difference, paired over the patients
    beside                      the difference from each of River's classifiers, with its standard
                                error over the patients
    calibration, river_calibration
    calibration_se              standard error of their difference, paired over the patients
    calibration_floor           what true chances would have on as many patients
    long_calibration            over the whole stream, with its 2,000 labels of each kind
    log_loss, river_log_loss    on the first pass, in nats
    brier, river_brier          likewise, from 0 to 2
    sure_error, river_sure_error  once the least sure tenth is referred
    told_error, told_sure_error   the same of one that was told all labels before (`streams.told`)
    referred                    share of patients that were referred to keep the miss targets
    misses                      each label's miss rate
    records                     track records, and how many of them held throughout
    """

    case: Case
    steps: int
    error: float
    river: str
    river_error: float
    gap: Gap
    beside: Mapping[str, tuple[float, float]]
    calibration: float
    river_calibration: float
    calibration_se: float
    calibration_floor: float
    long_calibration: float
    log_loss: float
    river_log_loss: float
    brier: float
    river_brier: float
    sure_error: float
    river_sure_error: float
    told_error: float
    told_sure_error: float
    referred: float
    misses: tuple[float, ...]
    records: tuple[int, int]

    @property
    def miss_gap(self) -> float:
        """Return how far the worst label's miss rate is from its target, in points."""
        return max(abs(miss - 100.0 * TARGET) for miss in self.misses)

    @property
    def halved(self) -> bool:
        """Tell whether referring the least sure tenth halves the error."""
        return self.sure_error <= self.error / 2.0

    @property
    def told_halves(self) -> bool:
        """Tell whether it does for one that was told everything."""
        return self.told_sure_error <= self.told_error / 2.0

    @property
    def calibration_gap(self) -> float:
        """Return by how much the calibration error exceeds River's."""
        return self.calibration - self.river_calibration

    @property
    def worse_calibrated(self) -> bool:
        """Tell whether it exceeds River's by more than the random draw of patients explains."""
        return self.calibration_gap > BEYOND * self.calibration_se


def confidence(
    count: int = 50, *, seed: int = 2017, quick: bool = False, tick: Tick = lambda: None
) -> Result:
    """Run all streams, in one order for every fifty of `count`."""
    sets, late = (("wine",), (0, 20)) if quick else (SETS, LATE)
    wanted = 80 if quick else WANTED
    cases = [
        Case(name, delay, drift, wanted, seed + order)
        for order in range(max(1, count // 50))
        for name, delay, drift in product(sets, late, (False, True))
        if not drift or changing(dataset(name)).any()
    ]
    streams = spread(examined, cases, tick=tick)
    figures = summary(streams)
    return Result(
        name="confidence",
        title="How far a diagnosis can be trusted",
        settings={"sets": len(sets), "of them medical": sum(name in MEDICAL for name in sets),
                  "labels of each kind": wanted, "miss target": TARGET, "late": list(late),
                  "seed": seed},
        figures=figures,
        tables=[_errors(streams), _scores(streams), _promises(streams)],
        notes=_notes(figures, streams),
    )  # fmt: skip


def examined(case: Case) -> Found:
    """Run one stream."""
    stream = make_stream(case)
    labels = stream.data.labels
    heard = listen(stream, proposed(stream.data, case.seed, f"ensemble.miss_target={TARGET}"))
    at = slice(case.late + UNTAUGHT, stream.once)
    truth, chance = stream.truth[at], heard.chance[at]
    rivals = {name: chances[at] for name, chances in river_chances(stream).items()}
    rival = min(rivals, key=lambda name: error_rate(rivals[name], truth))
    theirs = rivals[rival]
    everything = told(case, stream)[at]
    misses = ~heard.possible[np.arange(len(stream.truth)), stream.truth]
    labelled = np.arange(len(stream.truth)) >= case.late
    return Found(
        case=case,
        steps=len(stream.truth),
        error=error_rate(chance, truth),
        river=rival,
        river_error=error_rate(theirs, truth),
        gap=gap(_errors_of(chance, truth), _errors_of(theirs, truth)),
        beside={name: _beside(chance, chances, truth) for name, chances in rivals.items()},
        calibration=calibration_error(chance, truth),
        river_calibration=calibration_error(theirs, truth),
        calibration_se=calibration_gap_se(chance, theirs, truth, case.seed),
        calibration_floor=calibration_floor(chance, case.seed),
        long_calibration=calibration_error(heard.chance[labelled], stream.truth[labelled]),
        log_loss=log_loss(chance, truth),
        river_log_loss=log_loss(theirs, truth),
        brier=brier_score(chance, truth),
        river_brier=brier_score(theirs, truth),
        sure_error=referred(chance, truth),
        river_sure_error=referred(theirs, truth),
        told_error=error_rate(everything, truth),
        told_sure_error=referred(everything, truth),
        referred=100.0 * float((~heard.answered).mean()),
        misses=_rates(misses, stream.truth, len(labels)),
        records=heard.records,
    )


def _beside(ours: Floats, theirs: Floats, truth: Ints) -> tuple[float, float]:
    """Return the mean difference in errors, and its standard error over the patients."""
    apart = _errors_of(ours, truth) - _errors_of(theirs, truth)
    return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart)))


def _errors_of(chances: Floats, truth: Ints) -> Floats:
    return np.asarray(100.0 * (chances.argmax(axis=1) != truth)[:, None], np.float64)


def _rates(misses: Bools, truth: Ints, classes: int) -> tuple[float, ...]:
    return tuple(100.0 * float(misses[truth == k].mean()) for k in range(classes))


def summary(streams: Sequence[Found]) -> dict[str, float]:
    """Return the figures that scripts read."""
    latest = max(stream.case.late for stream in streams)
    late = [stream for stream in streams if stream.case.late == latest]
    low = [stream for stream in streams if stream.error < 10.0]
    rivals = [stream for stream in streams if stream.river_error < 10.0]
    behind = [stream for stream in late if stream.gap.ahead is False]
    worst = max(streams, key=lambda stream: stream.calibration_gap)
    fixed = [stream.beside[_usual(late)] for stream in late]
    return {
        "coverage_worst": min(coverage(streams).values()),
        "miss_gap_worst_points": max(stream.miss_gap for stream in streams),
        "calibration_error_over_river_worst": worst.calibration_gap,
        "calibration_error_over_river_worst_se": worst.calibration_se,
        "calibration_streams_behind": float(sum(stream.worse_calibrated for stream in streams)),
        "true_chances_over_river_worst": max(
            stream.calibration_floor - stream.river_calibration for stream in streams
        ),
        "calibration_error_over_river_mean": float(
            np.mean([stream.calibration_gap for stream in streams])
        ),
        "calibration_error_over_floor_mean": float(
            np.mean([stream.calibration - stream.calibration_floor for stream in streams])
        ),
        "calibration_error_long_worst": max(stream.long_calibration for stream in streams),
        "log_loss_over_river_mean": float(
            np.mean([stream.log_loss - stream.river_log_loss for stream in streams])
        ),
        "log_loss_over_river_worst": max(
            stream.log_loss - stream.river_log_loss for stream in streams
        ),
        "brier_over_river_mean": float(
            np.mean([stream.brier - stream.river_brier for stream in streams])
        ),
        "brier_over_river_worst": max(stream.brier - stream.river_brier for stream in streams),
        "halved_share": float(np.mean([stream.halved for stream in low])) if low else float("nan"),
        "halved_share_of_told": float(np.mean([stream.told_halves for stream in low]))
        if low
        else float("nan"),
        "halved_share_of_river": float(
            np.mean([stream.river_sure_error <= stream.river_error / 2 for stream in rivals])
        )
        if rivals
        else float("nan"),
        "late_error_over_river_points": float(np.mean([stream.gap.mean for stream in late])),
        "late_error_over_river_se": float(
            np.sqrt(np.sum([stream.gap.patients_se**2 for stream in late])) / len(late)
        ),
        "late_error_over_one_river_points": float(np.mean([mean for mean, _ in fixed])),
        "late_error_over_one_river_se": float(
            np.sqrt(np.sum([se**2 for _, se in fixed])) / len(fixed)
        ),
        "late_error_over_river_worst_points": max(stream.gap.mean for stream in late),
        "late_streams_behind": float(len(behind)),
        "late_streams": float(len(late)),
        "referred_mean": float(np.mean([stream.referred for stream in streams])),
    }


def _usual(late: Sequence[Found]) -> str:
    """Return the one of River's classifiers that errs least on average over the streams."""
    return max(late[0].beside, key=lambda name: float(np.mean([x.beside[name][0] for x in late])))


def coverage(streams: Sequence[Found]) -> dict[str, float]:
    """Return, for each set, the share of track records whose interval held throughout."""
    sets = dict.fromkeys(stream.case.data for stream in streams)
    totals = {
        name: np.sum([stream.records for stream in streams if stream.case.data == name], axis=0)
        for name in sets
    }
    return {name: float(covered / records) for name, (records, covered) in totals.items()}


def _errors(streams: Sequence[Found]) -> Table:
    rows: list[Row] = [
        [str(stream.case), stream.error, stream.river_error, stream.river.removeprefix("River "),
         stream.gap.mean, stream.gap.patients_se, stream.sure_error, stream.river_sure_error,
         stream.told_error, stream.told_sure_error,
         stream.calibration, stream.river_calibration, stream.calibration_gap,
         stream.calibration_se, stream.calibration_floor, stream.long_calibration]
        for stream in streams
    ]  # fmt: skip
    columns = [
        "stream", "error", "River's error", "River's best", "difference", "±",
        "least sure tenth referred", "River's", "told everything", "least sure tenth referred",
        "calibration error", "River's", "difference", "±",
        "of true chances", "whole stream",
    ]  # fmt: skip
    title = "First pass: errors (percent) and calibration errors, beside River's best in hindsight"
    return Table(title, columns, rows, digits=3)


def _scores(streams: Sequence[Found]) -> Table:
    rows: list[Row] = [
        [str(stream.case), stream.log_loss, stream.river_log_loss,
         stream.log_loss - stream.river_log_loss, stream.brier, stream.river_brier,
         stream.brier - stream.river_brier]
        for stream in streams
    ]  # fmt: skip
    columns = [
        "stream", "log loss", "River's", "difference", "Brier score", "River's", "difference",
    ]  # fmt: skip
    title = "First pass: what the chances are worth, beside River's classifier with fewest errors"
    return Table(title, columns, rows, digits=3)


def _promises(streams: Sequence[Found]) -> Table:
    rows: list[Row] = [
        [str(stream.case), stream.steps, ", ".join(f"{miss:.2f}" for miss in stream.misses),
         stream.miss_gap, stream.referred, f"{stream.records[1]} of {stream.records[0]}"]
        for stream in streams
    ]  # fmt: skip
    columns = [
        "stream", "patients", "miss rates", "furthest from 5", "referred",
        "track records that held",
    ]  # fmt: skip
    return Table("Whole streams: miss rates by label (percent), and track records", columns, rows)


def _notes(f: Mapping[str, float], streams: Sequence[Found]) -> list[str]:
    low = [stream for stream in streams if stream.error < 10.0]
    halved = [stream for stream in low if stream.halved]
    latest = max(stream.case.late for stream in streams)
    late = [stream for stream in streams if stream.case.late == latest]
    return [
        (
            f"Track records: on the worst set the interval held throughout for"
            f" {100 * f['coverage_worst']:.1f} % of them ({_outcome(f['coverage_worst'] >= LEVEL)}:"
            f" at least {100 * LEVEL:.0f})."
        ),
        (
            "Miss rates: the furthest label is"
            f" {f['miss_gap_worst_points']:.2f} points from its target of 5 %"
            f" ({_outcome(f['miss_gap_worst_points'] <= 1.0)}: within one point)."
        ),
        (
            "Calibration: the error exceeds River's by"
            f" {f['calibration_error_over_river_worst']:+.3f} at worst"
            f" ({_outcome(f['calibration_error_over_river_worst'] <= 0)}: no larger), with a"
            f" standard error of {f['calibration_error_over_river_worst_se']:.3f} over patients,"
            f" and by more than chance explains on {f['calibration_streams_behind']:.0f} of"
            f" {len(streams)} streams. Had our chances been true, it would be"
            f" {f['true_chances_over_river_worst']:+.3f} at worst. Over whole"
            f" streams it is {f['calibration_error_long_worst']:.3f} at worst"
            f" ({_outcome(f['calibration_error_long_worst'] <= 0.03)}: at most 0.03). On average"
            f" over the streams it is {f['calibration_error_over_river_mean']:+.3f} beside River's,"
            f" and {f['calibration_error_over_floor_mean']:+.3f} beside what true chances would"
            " have: with some fifty patients in a bin, that is far from zero."
        ),
        (
            f"Log loss: {f['log_loss_over_river_mean']:+.3f} nats beside River's on average,"
            f" {f['log_loss_over_river_worst']:+.3f} on the worst stream; Brier score:"
            f" {f['brier_over_river_mean']:+.3f} and {f['brier_over_river_worst']:+.3f}."
        ),
        (
            f"Referring the least sure tenth halves the error on {len(halved)} of {len(low)}"
            f" streams with an error below 10 % ({_outcome(len(halved) == len(low))}: on all);"
            f" River's best on {100 * f['halved_share_of_river']:.0f} % of its own. A logistic"
            " regression with all features, fitted to all these patients with their labels and told"
            f" of the change, halves its own on {sum(stream.told_halves for stream in low)} of them"
            f"{_except([stream for stream in low if not stream.told_halves])}."
        ),
        (
            f"Late labels: {f['late_error_over_river_points']:+.2f} points beside River's best,"
            f" mean of {f['late_streams']:.0f} streams, standard error"
            f" {f['late_error_over_river_se']:.2f} over patients;"
            f" {f['late_error_over_river_worst_points']:+.2f} on the worst, and"
            f" {f['late_streams_behind']:.0f} streams on which the 95 % interval lies above zero"
            f" ({_outcome(f['late_streams_behind'] == 0)}: none)."
        ),
        (
            f"Beside the one of River's classifiers that errs least on average over these streams,"
            f" {_usual(late)}, it is {f['late_error_over_one_river_points']:+.2f} points, standard"
            f" error {f['late_error_over_one_river_se']:.2f}: one setting for all streams on either"
            " side, ours chosen on other orders."
        ),
        (
            f"River's best is the classifier with the fewest errors on the same stream, chosen in"
            f" hindsight out of {len(CANDIDATES)}: logistic regression at three rates, a Hoeffding"
            " tree, naive Bayes. Its calibration error is that of the same classifier."
        ),
    ]


def _except(streams: Sequence[Found]) -> str:
    """Name the streams on which even one that was told everything does not halve its error."""
    named = [
        f"{stream.case}: {stream.told_error:.2f} to {stream.told_sure_error:.2f}"
        for stream in streams
    ]
    return f" (not on {'; '.join(named)})" if named else ""


def _outcome(holds: bool) -> str:
    return "as promised" if holds else "missed"
