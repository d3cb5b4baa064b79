"""*Pipeline*: does it run, how fast, and where does it wait? For engineers on call."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana.page import FIRING, alerts_firing, page, variable
from deploy.grafana.panels import Panel, columns_named, figure, lines, sheet, spread
from deploy.grafana.queries import COUNT, GREEN, ORANGE, RED, SECONDS, Q, Step, rising
from deploy.grafana.workers import CHOSEN, OF_CHOSEN, worker_panels

PER_SECOND = "cps"


def pipeline() -> Dashboard:
    """Return the dashboard."""
    return page(
        "hb-pipeline",
        "Pipeline",
        "Does it run? From top to bottom: what needs attention, throughput, latency, lag, and the"
        " workers themselves.",
        {
            "": [alerts_firing(), *_at_a_glance(), _alerts()],
            "Flow": _flow(),
            "Time": _time(),
            "Waiting": _waiting(),
            "Batches and transactions": _transactions(),
            "Workers": worker_panels(),
        },
        variables=[
            variable(
                "worker",
                "Worker",
                "The workers to show in panels about single workers",
                'label_values(up{job="hb"}, instance)',
            )
        ],
        span="now-1h",
    )


def _at_a_glance() -> list[Panel]:
    return [
        figure(
            "Workers down",
            "Workers that are configured in Prometheus and cannot be reached.",
            Q('count(up{job="hb"} == 0) or vector(0)'),
            COUNT,
            steps=(Step(GREEN), Step(RED, 1)),
            decimals=0,
        ),
        figure(
            "Diagnoses per second",
            "Over the last five minutes, all workers together.",
            Q("sum(system:hb_diagnoses:rate5m)"),
            PER_SECOND,
        ),
        figure(
            "Latency (p99)",
            "From the publication of an instance to its committed diagnosis: 99 % took less.",
            Q("system:hb_end_to_end_seconds:p99_rate5m"),
            SECONDS,
            steps=rising(1, 5),
            empty="no patients",
        ),
        figure(
            "Behind",
            "Upper limit for the age of the oldest record that an agent has not committed.",
            Q("max(agent:hb_lag_seconds:max)"),
            SECONDS,
            steps=rising(5, 30),
        ),
        figure(
            "Dead letters per minute",
            "Records that could not be used, in the last five minutes. `hb deadletters` shows why.",
            Q("60 * sum(agent:hb_dead_letters:rate5m)"),
            COUNT,
            steps=rising(0.1, 60),
            empty="0",
        ),
    ]


def _alerts() -> Panel:
    return sheet(
        "Alerts firing now",
        "docs/runbook.md has a section for each: what it means and what to do.",
        [Q(FIRING)],
        COUNT,
        transformations={
            "filterFieldsByName": columns_named(
                "alertname", "severity", "instance", "agent", "partition", "learner", "comparator"
            )
        },
        empty="none",
        width=24,
        height=5,
    )


def _flow() -> list[Panel]:
    return [
        lines(
            "Instances and predictions",
            "What each learner receives and what it sends. The two lines should coincide.",
            [
                Q("learner:hb_instances:rate5m", "in: {{learner}}"),
                Q("learner:hb_predictions:rate5m", "out: {{learner}}"),
            ],
            PER_SECOND,
            width=8,
        ),
        lines(
            "Diagnoses",
            "Complete: all learners took part. Incomplete: at least one missed fusion_timeout.",
            [
                Q('system:hb_diagnoses:rate5m{complete="true"}', "complete", GREEN),
                Q('system:hb_diagnoses:rate5m{complete="false"}', "incomplete", ORANGE),
            ],
            PER_SECOND,
            stacked=True,
            width=8,
        ),
        lines(
            "Dead letters",
            "Records that could not be used, by the agent that rejected them and the reason"
            " (docs/records.md).",
            [Q("agent:hb_dead_letters:rate5m > 0", "{{agent}}: {{reason}}")],
            PER_SECOND,
            stacked=True,
            width=8,
        ),
    ]


def _time() -> list[Panel]:
    return [
        lines(
            "From instance to diagnosis",
            "Median and 99th percentile of what a caller waits for: labels and learning are not"
            " part of it.",
            [
                Q("system:hb_end_to_end_seconds:p50_rate5m", "median", GREEN),
                Q("system:hb_end_to_end_seconds:p99_rate5m", "p99", ORANGE),
            ],
            SECONDS,
        ),
        spread(
            "From instance to diagnosis, distribution",
            "The darker, the more diagnoses took that long. A second band means that something"
            " waits, often for a learner, up to fusion_timeout.",
            Q("sum by (le) (rate(hb_end_to_end_seconds_bucket[$__rate_interval]))", "{{le}}"),
        ),
    ]


def _waiting() -> list[Panel]:
    return [
        lines(
            "Records waiting",
            "Published but not yet processed, by agent. It should return to zero after a burst.",
            [Q("agent:hb_lag_records:sum", "{{agent}}")],
            COUNT,
            width=8,
        ),
        lines(
            "Lag",
            "Upper limit for the age of the oldest record that an agent has not committed.",
            [Q("agent:hb_lag_seconds:max", "{{agent}}")],
            SECONDS,
            steps=(Step(GREEN), Step(RED, 30)),
            width=8,
        ),
        lines(
            "Processed, not committed",
            "How long the oldest processed record has waited for its commit, which makes it"
            " visible." + OF_CHOSEN,
            [
                Q(
                    f"max by (agent, partition) (hb_uncommitted_seconds{{{CHOSEN}}})",
                    "{{agent}} {{partition}}",
                )
            ],
            SECONDS,
            steps=(Step(GREEN), Step(RED, 30)),
            width=8,
        ),
    ]


def _slow(metric: str) -> Q:
    rate = f"rate({metric}_bucket{{{CHOSEN}}}[$__rate_interval])"
    return Q(f"histogram_quantile(0.95, sum by (agent, le) ({rate}))", "{{agent}}")


def _transactions() -> list[Panel]:
    size = (
        f"sum by (agent) (rate(hb_batch_records_sum{{{CHOSEN}}}[$__rate_interval]))"
        f" / (sum by (agent) (rate(hb_batch_records_count{{{CHOSEN}}}[$__rate_interval])) > 0)"
    )
    commits = f"sum by (agent) (rate(hb_commits_total{{{CHOSEN}}}[$__rate_interval]))"
    return [
        lines(
            "Batch size",
            "Average number of records per transaction. It grows with the load, which is how"
            " throughput rises." + OF_CHOSEN,
            [Q(size, "{{agent}}")],
            COUNT,
            width=6,
        ),
        lines(
            "Batch time",
            "From the first record processed to the end of the commit; 95 % of batches took less."
            + OF_CHOSEN,
            [_slow("hb_batch_seconds")],
            SECONDS,
            width=6,
        ),
        lines(
            "Transaction time",
            "The broker's part of it: sending and committing; 95 % took less." + OF_CHOSEN,
            [_slow("hb_transaction_seconds")],
            SECONDS,
            width=6,
        ),
        lines(
            "Commits",
            "Committed transactions." + OF_CHOSEN,
            [Q(commits, "{{agent}}")],
            PER_SECOND,
            width=6,
        ),
    ]
