"""*Diagnosis quality*: are the diagnoses right? For clinicians first, then for tuning."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana.page import alerts_firing, page
from deploy.grafana.panels import Panel, bars, dial, figure, lines, sheet
from deploy.grafana.queries import BLUE, COUNT, GREEN, ORANGE, PURPLE, RED, SHARE, Q, rising

ENSEMBLE = 'scope="ensemble"'
RECENT, ALWAYS = 'window="1000"', 'window="all"'
ERRORS = "system:hb_prediction_error_rate:max"
MISSED = "system:hb_false_negative_rate:max"
FALSE_ALARMS = "system:hb_false_positive_rate:max"
PER_TARGET = 'system:hb_target:max{rate="per"}'
FNR_TARGET = 'system:hb_target:max{rate="fnr"}'
NO_LABELS = "no labels yet"
_OF_TARGET = " 100 % is the target itself. Empty if the settings have no target."


def quality() -> Dashboard:
    """Return the dashboard."""
    return page(
        "hb-quality",
        "Diagnosis quality",
        "Are the diagnoses right? Everything here is counted from labels that have arrived, except"
        " the last row, which shows early signs of trouble.",
        {
            "": [*_rates(), *_of_the_targets(), alerts_firing()],
            "Is it getting better?": _over_time(),
            "Errors in detail": _in_detail(),
            "Early signs, before labels arrive": _early_signs(),
        },
        span="now-24h",
    )


def _rates() -> list[Panel]:
    return [
        figure(
            "Error rate",
            "The share of wrong diagnoses among the last 1,000 patients whose true label is known.",
            Q(f"{ERRORS}{{{ENSEMBLE}, {RECENT}}}"),
            SHARE,
            empty=NO_LABELS,
            decimals=1,
        ),
        figure(
            "Miss rate",
            "Among those of them who have the condition: the share diagnosed as not having it"
            " (false negatives). The figure that must stay small.",
            Q(f"{MISSED}{{{ENSEMBLE}, {RECENT}}}"),
            SHARE,
            empty=NO_LABELS,
            decimals=1,
        ),
        figure(
            "False alarms",
            "Among those of them who do not have the condition: the share diagnosed as having it"
            " (false positives).",
            Q(f"{FALSE_ALARMS}{{{ENSEMBLE}, {RECENT}}}"),
            SHARE,
            empty=NO_LABELS,
            decimals=1,
        ),
    ]


def _of_the_targets() -> list[Panel]:
    return [
        dial(
            "Error rate, share of the target",
            "The error rate of the last 1,000 labelled, relative to per_target." + _OF_TARGET,
            Q(f"{ERRORS}{{{ENSEMBLE}, {RECENT}}} / on () group_left () {PER_TARGET}"),
            steps=rising(0.8, 1),
            empty="no target or labels",
        ),
        dial(
            "Miss rate, share of the target",
            "The miss rate of the last 1,000 labelled, relative to fnr_target." + _OF_TARGET,
            Q(f"{MISSED}{{{ENSEMBLE}, {RECENT}}} / on () group_left () {FNR_TARGET}"),
            steps=rising(0.8, 1),
            empty="no target or labels",
        ),
    ]


def _over_time() -> list[Panel]:
    best = f'min({ERRORS}{{scope="learner", {RECENT}}})'
    bound = 'system:hb_prediction_error_rate_bound:max{comparator="best_learner"} <= 1'
    return [
        lines(
            "Error rate over time",
            "The ensemble should settle at or below the best single learner. The bound is the best"
            " learner's errors plus the regret bound; it is drawn once it is below 100 %, and in"
            " modes that have one.",
            [
                Q(f"{ERRORS}{{{ENSEMBLE}, {RECENT}}}", "ensemble, last 1,000", BLUE),
                Q(f"{ERRORS}{{{ENSEMBLE}, {ALWAYS}}}", "ensemble, since the start", "light-blue"),
                Q(best, "best single learner, last 1,000", GREEN),
                Q(bound, "bound, since the start", PURPLE, dashed=True),
                Q(PER_TARGET, "target", RED, dashed=True),
            ],
            SHARE,
            width=14,
            height=10,
        ),
        lines(
            "Miss rate and false alarms over time",
            "Both among the last 1,000 labelled patients. Missing fewer positives costs more false"
            " alarms, and vice versa.",
            [
                Q(f"{MISSED}{{{ENSEMBLE}, {RECENT}}}", "miss rate", ORANGE),
                Q(f"{FALSE_ALARMS}{{{ENSEMBLE}, {RECENT}}}", "false alarms", BLUE),
                Q(FNR_TARGET, "target of the miss rate", RED, dashed=True),
            ],
            SHARE,
            width=10,
            height=10,
        ),
    ]


def _in_detail() -> list[Panel]:
    return [
        bars(
            "Error rate by learner",
            "Each learner alone and the ensemble, among the last 1,000 labelled.",
            [
                Q(f"{ERRORS}{{{ENSEMBLE}, {RECENT}}}", "ensemble"),
                Q(f'sort({ERRORS}{{scope="learner", {RECENT}}})', "{{learner}}"),
            ],
            SHARE,
        ),
        sheet(
            "Confusion matrix",
            "All labelled patients since the start: one row per true label, one column per"
            " diagnosis. Everything off the diagonal is an error.",
            [Q(f"system:hb_confusion_total:max{{{ENSEMBLE}}}")],
            COUNT,
            transformations={
                "groupingToMatrix": {
                    "rowField": "truth",
                    "columnField": "predicted",
                    "valueField": "Value",
                }
            },
            empty=NO_LABELS,
            width=8,
        ),
        lines(
            "Referred, and excluded wrongly",
            "The share of patients without an answer, which is the price of the miss targets; and,"
            " of each label with a target, the share of its patients for whom it had been"
            " excluded.",
            [
                Q(
                    'system:hb_answers:rate5m{outcome="referred"}'
                    " / ignoring (outcome) sum without (outcome) (system:hb_answers:rate5m)",
                    "referred",
                    PURPLE,
                ),
                Q("system:hb_miss_ratio:max", "excluded wrongly: {{label}}"),
                Q("system:hb_miss_target:max", "target: {{label}}"),
            ],
            SHARE,
            width=8,
        ),
    ]


def _early_signs() -> list[Panel]:
    predicted = f"system:hb_predicted:rate5m{{{ENSEMBLE}}}"
    return [
        lines(
            "Mix of diagnoses",
            "The share of each diagnosis. If it shifts while the patients do not, something is"
            " wrong with the inputs or the learners.",
            [Q(f"{predicted} / on () group_left () (sum({predicted}) > 0)", "{{label}}")],
            SHARE,
            stacked=True,
            full=1,
            width=8,
        ),
        lines(
            "Disagreement",
            "The share of diagnoses whose learners did not all agree. A rise means harder patients,"
            " or a learner that has gone wrong.",
            [Q("system:hb_disagreements:ratio_rate5m", "disagreement", ORANGE)],
            SHARE,
            width=8,
        ),
        lines(
            "Little data",
            "Diagnoses made without all learners, and predictions in cubes where the learner has"
            " few labelled patients.",
            [
                Q("system:hb_incomplete_fusions:ratio_rate5m", "incomplete diagnoses", RED),
                Q("learner:hb_thin_predictions:ratio_rate5m", "little data: {{learner}}"),
            ],
            SHARE,
            width=8,
        ),
    ]
