"""*Learners*: their weights, their accuracy with its uncertainty, and regret with its bounds."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana.page import page, variable
from deploy.grafana.panels import Panel, columns_named, lines, sheet
from deploy.grafana.queries import BLUE, COUNT, RED, SHARE, Q, changed

CHOSEN = 'learner=~"$learner"'
ERRORS = f'system:hb_prediction_error_rate:max{{{CHOSEN}, window="1000"}}'


def learners() -> Dashboard:
    """Return the dashboard."""
    return page(
        "hb-learners",
        "Learners",
        "The local learners one by one: their weight in the ensemble, their accuracy and how"
        " certain it is, how much each still explores, and regret with its bound.",
        {
            "": _weights(),
            "Accuracy, with confidence intervals": [_accuracy()],
            "Regret: errors beyond the best choice in hindsight": [_ensemble_regret(), *_regret()],
            "Learning": _learning(),
        },
        variables=[
            variable(
                "learner",
                "Learner",
                "The local learners to show",
                "label_values(hb_decisions_total, learner)",
            )
        ],
        span="now-24h",
    )


def _weights() -> list[Panel]:
    return [
        lines(
            "Weights",
            "Each expert's weight in the ensemble's vote; together they are 100 %. All start equal,"
            " and experts that are right more often gain weight. In committee mode the experts are"
            " fusion rules.",
            [Q("system:hb_weight:max", "{{expert}}")],
            SHARE,
            stacked=True,
            full=1,
            width=10,
        ),
        _now(),
    ]


def _now() -> Panel:
    weight = 'label_replace(system:hb_weight:max, "learner", "$1", "expert", "(.+)")'
    return sheet(
        "Now",
        "One row per learner. Error rate: among the last 1,000 labelled. Accuracy: since the start,"
        " with a 95 % confidence interval. Exploring: decisions by a rule other than the best"
        " known one. Little data: predictions in cubes with few labelled patients.",
        [
            Q(f"max by (learner) ({weight}) and on (learner) hb_cubes{{{CHOSEN}}}", ref="w"),
            Q(f"max by (learner) ({ERRORS})", ref="per"),
            Q(f"max by (learner) (system:hb_accuracy:max{{{CHOSEN}}})", ref="right"),
            Q(f"max by (learner) (system:hb_accuracy_low:max{{{CHOSEN}}})", ref="low"),
            Q(f"max by (learner) (system:hb_accuracy_high:max{{{CHOSEN}}})", ref="high"),
            Q(f"max by (learner) (system:hb_exploration_ratio:max{{{CHOSEN}}})", ref="tries"),
            Q(
                f"max by (learner) (learner:hb_thin_predictions:ratio_rate5m{{{CHOSEN}}})",
                ref="thin",
            ),
            Q(f"max by (learner) (learner:hb_decisions:rate5m{{{CHOSEN}}})", ref="rate"),
        ],
        SHARE,
        transformations={
            "joinByField": {"byField": "learner", "mode": "outer"},
            "filterFieldsByName": columns_named("learner", "Value.*"),
        },
        columns={
            "Value #w": ("Weight", SHARE),
            "Value #per": ("Error rate", SHARE),
            "Value #right": ("Accuracy", SHARE),
            "Value #low": ("at least", SHARE),
            "Value #high": ("at most", SHARE),
            "Value #tries": ("Exploring", SHARE),
            "Value #thin": ("Little data", SHARE),
            "Value #rate": ("Patients/s", COUNT),
        },
        empty="no learners yet",
        width=14,
    )


def _accuracy() -> Panel:
    panel = lines(
        "$learner",
        "The learner's accuracy with a 95 % confidence interval that holds at all times together."
        " It narrows as labels arrive; a wide one means that there are too few to tell.",
        [
            Q(f"max by (learner) (system:hb_accuracy_high:max{{{CHOSEN}}})", "at most"),
            Q(f"max by (learner) (system:hb_accuracy:max{{{CHOSEN}}})", "accuracy", BLUE),
            Q(f"max by (learner) (system:hb_accuracy_low:max{{{CHOSEN}}})", "at least"),
        ],
        SHARE,
        full=1,
        width=8,
    )
    faint = changed("color", {"mode": "fixed", "fixedColor": "super-light-blue"})
    thin = changed("custom.lineWidth", 1)
    band = [changed("custom.fillBelowTo", "at least"), changed("custom.fillOpacity", 20)]
    panel.override_by_name("at most", [faint, thin, *band])
    panel.override_by_name("at least", [faint, thin])
    return panel.repeat("learner").repeat_direction("h").max_per_row(3)


def _ensemble_regret() -> Panel:
    compared = 'comparator!="local_oracle"'
    return lines(
        "Of the ensemble",
        "Expected errors beyond always following the best learner (with contexts, the best one per"
        " context). Theory keeps its expectation below the bound; an alert fires if it is above.",
        [
            Q(f"system:hb_regret:max{{{compared}}}", "against {{comparator}}", BLUE),
            Q(f"system:hb_regret_bound:max{{{compared}}}", "bound: {{comparator}}", RED, True),
        ],
        COUNT,
    )


def _regret() -> list[Panel]:
    oracle = f'comparator="local_oracle", {CHOSEN}'
    return [
        lines(
            "Of the learners (estimated)",
            "Errors beyond always using the best rule in each cube, estimated from the counts. No"
            " bound is drawn: whether a label reached a learner before its next decision, as"
            " Theorem 1 needs, is not recorded.",
            [Q(f"system:hb_regret:max{{{oracle}}}", "{{learner}}")],
            COUNT,
        ),
    ]


def _learning() -> list[Panel]:
    return [
        lines(
            "Error rate",
            "Each learner alone, among the last 1,000 labelled patients.",
            [Q(ERRORS, "{{learner}}")],
            SHARE,
        ),
        lines(
            "Exploration",
            "The share of decisions that try a rule other than the best known one, to learn about"
            " it. High at first, then falling.",
            [Q(f"system:hb_exploration_ratio:max{{{CHOSEN}}}", "{{learner}}")],
            SHARE,
        ),
        lines(
            "Little data",
            "The share of predictions by a rule with fewer than ten labelled patients in the cube.",
            [Q(f"learner:hb_thin_predictions:ratio_rate5m{{{CHOSEN}}}", "{{learner}}")],
            SHARE,
        ),
        lines(
            "Cubes",
            "Cubes from which each learner has labels: the size of its table.",
            [Q(f"system:hb_cubes:max{{{CHOSEN}}}", "{{learner}}")],
            COUNT,
        ),
    ]
