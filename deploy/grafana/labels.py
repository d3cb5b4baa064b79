"""*Labels*: do labels arrive, when, and how many patients still wait for them?"""

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
        "Labels come late or never, and learning waits for them. How late they come, what happens"
        " to them, and how many patients wait.",
        {
            "": [*_wait(), *_came(), alerts_firing()],
            "When labels arrive": _delay(),
            "What happens to them": _outcomes(),
            "Waiting": _waiting(),
        },
        span="now-7d",
    )


def _wait() -> list[Panel]:
    return [
        figure(
            "Patients waiting",
            "Patients waiting for a learner, for their diagnosis or, in most cases, for their"
            " label.",
            Q(WAITING),
            COUNT,
        ),
        dial(
            "Share of the limit",
            "Waiting patients as a share of max_pending. At 100 % the oldest are dropped, and"
            " nothing is learned from their labels.",
            Q(f"{WAITING} / ({LIMIT} > 0)"),
            steps=rising(0.8, 0.95),
            empty="no data",
        ),
        figure(
            "Median delay",
            "Approximate median time from diagnosis to label, over the labels of the last hour.",
            Q("system:hb_label_delay_seconds:p50_rate1h"),
            SECONDS,
            empty="no labels",
        ),
    ]


def _came() -> list[Panel]:
    settled = 'sum(system:hb_labels_total:max{outcome="settled"})'
    return [
        figure(
            "Labels per day",
            "Labels of the last 24 hours that matched a diagnosis and were learned from.",
            Q("sum(system:hb_labels_settled:increase1d)"),
            COUNT,
            decimals=0,
            empty="no labels",
        ),
        figure(
            "Diagnoses with a label",
            "Since the start: the share of diagnoses whose label arrived. Error rates cover these"
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
            "From the diagnosis to its label, over the last hour: median, 90th and 99th percentile,"
            " and the median of the last day. Three times that median raises an alert.",
            [
                Q(f"histogram_quantile(0.5, {DELAYS})", "median", GREEN),
                Q(f"histogram_quantile(0.9, {DELAYS})", "p90", ORANGE),
                Q(f"histogram_quantile(0.99, {DELAYS})", "p99", RED),
                Q(
                    "system:hb_label_delay_seconds:p50_rate1d",
                    "median, last day",
                    BLUE,
                    dashed=True,
                ),
            ],
            SECONDS,
        ),
        spread(
            "Delay, distribution",
            "The darker, the more labels took that long.",
            Q("sum by (le) (rate(hb_label_delay_seconds_bucket[$__rate_interval]))", "{{le}}"),
        ),
    ]


def _outcomes() -> list[Panel]:
    return [
        lines(
            "Outcomes",
            "Settled: learned from. Duplicate: the same label again. Conflict: a different label"
            " came first and counts. Unknown: no prediction for this patient. Expired: the patient"
            " had already been dropped. Pending full: no room to wait.",
            [Q("system:hb_labels:rate5m", "{{outcome}}")],
            PER_SECOND,
            stacked=True,
            width=16,
        ),
        bars(
            "Outcomes since the start",
            "The same, counted since the first patient. Conflict and unknown point to a faulty"
            " producer, expired to a label_ttl that is too short.",
            [Q("sort_desc(system:hb_labels_total:max)", "{{outcome}}")],
            COUNT,
            width=8,
        ),
    ]


def _waiting() -> list[Panel]:
    return [
        lines(
            "Patients waiting over time",
            "In most cases for their label; and the limit (max_pending, all partitions together).",
            [Q(WAITING, "waiting", BLUE), Q(LIMIT, "limit", RED, dashed=True)],
            COUNT,
            width=8,
        ),
        lines(
            "Patients dropped",
            "Diagnosed, but no label came within label_ttl, or the limit was reached. The diagnosis"
            " stands; nothing is learned from it.",
            [Q("system:hb_expired:rate5m", "dropped", ORANGE)],
            PER_SECOND,
            width=8,
        ),
        lines(
            "Labels waiting over time",
            "Labels that came before their diagnosis. They are kept for a while; many of them mean"
            " that instances are late, or that ids do not match.",
            [Q("system:hb_parked_labels:max", "waiting", BLUE)],
            COUNT,
            width=8,
        ),
    ]
