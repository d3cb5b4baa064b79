"""*Diagnosis quality*: are the diagnoses right? For clinicians first, then for who tunes it."""

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
_OF_TARGET = " 100 % is all that the settings allow. Empty if they name no target."


def quality() -> Dashboard:
    """Return the dashboard."""
    return page(
        "hb-quality",
        "Diagnosis quality",
        "Are the diagnoses right? Everything here is counted from true labels that came in, except"
        " the last row, which shows signs of trouble before labels come.",
        {
            "": [*_rates(), *_of_what_is_allowed(), alerts_firing()],
            "Is it getting better?": _over_time(),
            "Who errs, and how": _in_detail(),
            "Early signs, before labels come": _early_signs(),
        },
        span="now-24h",
    )


def _rates() -> list[Panel]:
    return [
        figure(
            "Wrong diagnoses",
            "Of the last 1000 patients whose true label is known: the share that was diagnosed"
            " wrongly.",
            Q(f"{ERRORS}{{{ENSEMBLE}, {RECENT}}}"),
            SHARE,
            empty=NO_LABELS,
            decimals=1,
        ),
        figure(
            "Missed positives",
            "Of the patients among them who truly have the condition: the share that was told they"
            " do not (false negatives). The figure that must stay small.",
            Q(f"{MISSED}{{{ENSEMBLE}, {RECENT}}}"),
            SHARE,
            empty=NO_LABELS,
            decimals=1,
        ),
        figure(
            "False alarms",
            "Of the patients among them who do not have the condition: the share that was told they"
            " do (false positives).",
            Q(f"{FALSE_ALARMS}{{{ENSEMBLE}, {RECENT}}}"),
            SHARE,
            empty=NO_LABELS,
            decimals=1,
        ),
    ]


def _of_what_is_allowed() -> list[Panel]:
    return [
        dial(
            "Wrong, of what is allowed",
            "Wrong diagnoses of the last 1000 labelled, as a share of per_target." + _OF_TARGET,
            Q(f"{ERRORS}{{{ENSEMBLE}, {RECENT}}} / on () group_left () {PER_TARGET}"),
            steps=rising(0.8, 1),
            empty="no target or labels",
        ),
        dial(
            "Missed, of what is allowed",
            "Missed positives of the last 1000 labelled, as a share of fnr_target." + _OF_TARGET,
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
            "Wrong diagnoses over time",
            "The ensemble should come to lie at or below the best single learner. The bound is what"
            " theory promises in the long run: the best learner's errors plus the regret bound; it"
            " is drawn once it says something, below 100 %, and in modes that have one.",
            [
                Q(f"{ERRORS}{{{ENSEMBLE}, {RECENT}}}", "ensemble, last 1000", BLUE),
                Q(f"{ERRORS}{{{ENSEMBLE}, {ALWAYS}}}", "ensemble, since the start", "light-blue"),
                Q(best, "best single learner, last 1000", GREEN),
                Q(bound, "bound, since the start", PURPLE, dashed=True),
                Q(PER_TARGET, "target", RED, dashed=True),
            ],
            SHARE,
            width=14,
            height=10,
        ),
        lines(
            "Missed positives and false alarms over time",
            "Both of the last 1000 labelled patients. To miss fewer positives costs false alarms,"
            " and the other way round.",
            [
                Q(f"{MISSED}{{{ENSEMBLE}, {RECENT}}}", "missed positives", ORANGE),
                Q(f"{FALSE_ALARMS}{{{ENSEMBLE}, {RECENT}}}", "false alarms", BLUE),
                Q(FNR_TARGET, "target for missed positives", RED, dashed=True),
            ],
            SHARE,
            width=10,
            height=10,
        ),
    ]


def _in_detail() -> list[Panel]:
    return [
        bars(
            "Wrong, by learner",
            "Each learner alone, of the last 1000 labelled, beside the ensemble of them all.",
            [
                Q(f"{ERRORS}{{{ENSEMBLE}, {RECENT}}}", "ensemble"),
                Q(f'sort({ERRORS}{{scope="learner", {RECENT}}})', "{{learner}}"),
            ],
            SHARE,
        ),
        sheet(
            "What was said, and what was true",
            "All labelled patients since the start: a row per true label, a column per diagnosis."
            " Everything off the diagonal is an error.",
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
            "The bar for a positive diagnosis",
            "Where FNR control is on: how sure the ensemble must be before it says positive. It"
            " moves after each labelled positive, so that missed positives stay at their target."
            " Empty where it is off.",
            [Q("system:hb_threshold:max", "bar", PURPLE)],
            "none",
            width=8,
        ),
    ]


def _early_signs() -> list[Panel]:
    said = f"system:hb_predicted:rate5m{{{ENSEMBLE}}}"
    return [
        lines(
            "What is diagnosed",
            "The mix of diagnoses. If it moves while the patients are as before, something is wrong"
            " with the inputs or the learners.",
            [Q(f"{said} / on () group_left () (sum({said}) > 0)", "{{label}}")],
            SHARE,
            stacked=True,
            full=1,
            width=8,
        ),
        lines(
            "Learners disagree",
            "The share of diagnoses whose learners did not all say the same. A rise means harder"
            " patients, or a learner that went astray.",
            [Q("system:hb_disagreements:ratio_rate5m", "disagreement", ORANGE)],
            SHARE,
            width=8,
        ),
        lines(
            "Little to go by",
            "Diagnoses made without all learners, and predictions from a corner of the data where"
            " the learner has seen few patients.",
            [
                Q("system:hb_incomplete_fusions:ratio_rate5m", "incomplete diagnoses", RED),
                Q("learner:hb_thin_predictions:ratio_rate5m", "thin ground: {{learner}}"),
            ],
            SHARE,
            width=8,
        ),
    ]
