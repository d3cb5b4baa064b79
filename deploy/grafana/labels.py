"""*Labels*: does the truth come in, when, and how much still waits for it?"""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana.page import alerts_firing, page
from deploy.grafana.panels import Panel, bars, dial, figure, lines, spread
from deploy.grafana.queries import BLUE, COUNT, GREEN, ORANGE, RED, SECONDS, SHARE, Q, rising

WAITING, LIMIT = "system:hb_pending:max", "system:hb_pending_limit:max"
DELAYS = "sum by (le) (rate(hb_label_delay_seconds_bucket[1h]))"
PER_SECOND = "cps"


def labels() -> Dashboard:
    """Return the dashboard."""
    return page(
        "hb-labels",
        "Labels",
        "The truth comes late or never, and learning waits for it. How late it comes, what becomes"
        " of it, and how many patients wait.",
        {
            "": [*_wait(), *_came(), alerts_firing()],
            "When labels come": _delay(),
            "What becomes of them": _outcomes(),
            "Who waits": _waiting(),
        },
        span="now-7d",
    )


def _wait() -> list[Panel]:
    return [
        figure(
            "Patients waiting",
            "Patients who wait for a learner, their diagnosis or, nearly always, their label.",
            Q(WAITING),
            COUNT,
        ),
        dial(
            "Room taken",
            "Waiting patients as a share of max_pending. At 100 % the oldest give way, and nothing"
            " is learned from their labels.",
            Q(f"{WAITING} / ({LIMIT} > 0)"),
            steps=rising(0.8, 0.95),
            empty="no data",
        ),
        figure(
            "Usual delay",
            "Half of the labels of the last hour took longer than about this, from the diagnosis to"
            " the label.",
            Q("system:hb_label_delay_seconds:p50_rate1h"),
            SECONDS,
            empty="no labels",
        ),
    ]


def _came() -> list[Panel]:
    settled = 'sum(system:hb_labels_total:max{outcome="settled"})'
    return [
        figure(
            "Labels in a day",
            "Labels of the last 24 hours that found their diagnosis and were learned from.",
            Q("sum(system:hb_labels_settled:increase1d)"),
            COUNT,
            decimals=0,
            empty="no labels",
        ),
        figure(
            "Diagnoses with a label",
            "Since the start: the share of diagnoses whose label came. Error rates speak of these"
            " patients only.",
            Q(f"{settled} / (sum(system:hb_fusions_total:max) > 0)"),
            SHARE,
            empty="no diagnoses",
        ),
    ]


def _delay() -> list[Panel]:
    return [
        lines(
            "Delay",
            "From the diagnosis to its label, over the last hour: half, nine of ten, and 99 of 100"
            " labels took less. Beside it the usual delay of the last day; three times that raises"
            " an alert.",
            [
                Q(f"histogram_quantile(0.5, {DELAYS})", "half", GREEN),
                Q(f"histogram_quantile(0.9, {DELAYS})", "nine of ten", ORANGE),
                Q(f"histogram_quantile(0.99, {DELAYS})", "99 of 100", RED),
                Q("system:hb_label_delay_seconds:p50_rate1d", "half, last day", BLUE, dashed=True),
            ],
            SECONDS,
        ),
        spread(
            "Delay, all of them",
            "The darker, the more labels took that long.",
            Q("sum by (le) (rate(hb_label_delay_seconds_bucket[$__rate_interval]))", "{{le}}"),
        ),
    ]


def _outcomes() -> list[Panel]:
    return [
        lines(
            "Outcomes",
            "Settled: learned from. Duplicate: said before. Conflict: another label came first, and"
            " holds. Unknown: no prediction for it. Expired: its patient was given up before."
            " Pending full: no room to wait.",
            [Q("system:hb_labels:rate5m", "{{outcome}}")],
            PER_SECOND,
            stacked=True,
            width=16,
        ),
        bars(
            "Outcomes since the start",
            "The same, counted since the first patient. Conflicts and unknowns point at a producer"
            " that errs; expired ones at a label_ttl that is too short.",
            [Q("sort_desc(system:hb_labels_total:max)", "{{outcome}}")],
            COUNT,
            width=8,
        ),
    ]


def _waiting() -> list[Panel]:
    return [
        lines(
            "Patients waiting over time",
            "Nearly all of them for their label, beside the room there is (max_pending, all"
            " partitions).",
            [Q(WAITING, "waiting", BLUE), Q(LIMIT, "room", RED, dashed=True)],
            COUNT,
            width=8,
        ),
        lines(
            "Patients given up",
            "Diagnosed, and no label within label_ttl, or the room was full. The diagnosis stands;"
            " nothing is learned from it.",
            [Q("system:hb_expired:rate5m", "given up", ORANGE)],
            PER_SECOND,
            width=8,
        ),
        lines(
            "Labels waiting over time",
            "Labels that came before their diagnosis. They are kept for a while; many of them mean"
            " that instances come late, or that ids do not match.",
            [Q("system:hb_parked_labels:max", "waiting", BLUE)],
            COUNT,
            width=8,
        ),
    ]
