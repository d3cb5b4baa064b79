"""*Learners*: whom the ensemble trusts, how sure each is, and how far from the best it may be."""

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
        "The local learners one by one: whom the ensemble trusts, how often each is right and how"
        " sure that is, how much each still tries out, and regret beside its bound.",
        {
            "": _who_is_trusted(),
            "How often each is right, and how sure that is": [_accuracy()],
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


def _who_is_trusted() -> list[Panel]:
    return [
        lines(
            "Weights",
            "How much each expert counts in the ensemble's vote; together they are 100 %. Those"
            " that were right more often weigh more; all begin equal. In the mode committee the"
            " experts are fusion rules.",
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
        "A row per learner. Error: of the last 1000 labelled. Right: since the start, with an"
        " interval that holds the true value (95 %). Tries out: decisions by a rule that is not the"
        " best known one. Thin ground: predictions where it has seen few patients.",
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
            "Value #per": ("Error", SHARE),
            "Value #right": ("Right", SHARE),
            "Value #low": ("at least", SHARE),
            "Value #high": ("at most", SHARE),
            "Value #tries": ("Tries out", SHARE),
            "Value #thin": ("Thin ground", SHARE),
            "Value #rate": ("Patients/s", COUNT),
        },
        empty="no learners yet",
        width=14,
    )


def _accuracy() -> Panel:
    panel = lines(
        "$learner",
        "How often this learner was right, and an interval that holds the true value, at all times"
        " together, with 95 %. It narrows as labels come; a wide one means: too few to tell.",
        [
            Q(f"max by (learner) (system:hb_accuracy_high:max{{{CHOSEN}}})", "at most"),
            Q(f"max by (learner) (system:hb_accuracy:max{{{CHOSEN}}})", "right", BLUE),
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
        "Errors that the ensemble's weights cost beyond always following the best learner (or, with"
        " contexts, the best one per context). Theory keeps it under the bound; if it is above, an"
        " alert is raised.",
        [
            Q(f"system:hb_regret:max{{{compared}}}", "against {{comparator}}", BLUE),
            Q(f"system:hb_regret_bound:max{{{compared}}}", "bound: {{comparator}}", RED, True),
        ],
        COUNT,
    )


def _regret() -> list[Panel]:
    oracle = f'comparator="local_oracle", {CHOSEN}'
    labelled = f'system:hb_labelled_total:max{{scope="learner", {CHOSEN}}}'
    bound = f"system:hb_regret_bound:max{{{oracle}}}"
    return [
        lines(
            "Of the learners (estimated)",
            "Errors beyond always using the best rule in each corner of the data, estimated from"
            " what was seen. The bound is drawn once it says something: as long as it is above the"
            " number of labelled patients, any learner would keep it.",
            [
                Q(f"system:hb_regret:max{{{oracle}}}", "{{learner}}"),
                Q(
                    f"{bound} < on (learner) group_left () {labelled}",
                    "bound: {{learner}}",
                    RED,
                    True,
                ),
            ],
            COUNT,
        ),
        lines(
            "What the learners' bound says",
            "The bound on a learner's regret as a share of its labelled patients. Above 100 % it"
            " says nothing yet; it falls as labels come, slowly.",
            [Q(f"{bound} / on (learner) group_left () ({labelled} > 0)", "{{learner}}")],
            SHARE,
            width=24,
            height=7,
        ),
    ]


def _learning() -> list[Panel]:
    return [
        lines(
            "Wrong predictions",
            "Each learner alone, of the last 1000 labelled patients.",
            [Q(ERRORS, "{{learner}}")],
            SHARE,
        ),
        lines(
            "Tries out",
            "The share of decisions by a rule that is not the best known one, to learn about it."
            " High at first, then falling.",
            [Q(f"system:hb_exploration_ratio:max{{{CHOSEN}}}", "{{learner}}")],
            SHARE,
        ),
        lines(
            "Thin ground",
            "The share of predictions by a rule with fewer than ten labelled patients in the cube.",
            [Q(f"learner:hb_thin_predictions:ratio_rate5m{{{CHOSEN}}}", "{{learner}}")],
            SHARE,
        ),
        lines(
            "Cubes",
            "Corners of the data from which each learner has labels: the size of its table.",
            [Q(f"system:hb_cubes:max{{{CHOSEN}}}", "{{learner}}")],
            COUNT,
        ),
    ]
