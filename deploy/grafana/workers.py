"""The workers themselves: what each holds, whether it is ready, what it runs."""

from deploy.grafana.panels import Panel, columns_named, lines, sheet, states
from deploy.grafana.queries import COUNT, GREEN, ORANGE, RED, SECONDS, Q, Step

CHOSEN = 'instance=~"$worker"'
OF_CHOSEN = " Of the chosen workers."


def worker_panels() -> list[Panel]:
    """Return the row of the *Pipeline* dashboard that is about single workers."""
    return [*_tasks(), *_restoring(), *_state()]


def _tasks() -> list[Panel]:
    return [
        states(
            "Who runs what",
            "Each partition of each agent, on the worker that holds it. Held: it is not open yet,"
            " for its state is being restored or its last owner's transaction is being ended.",
            Q(f"hb_task_owner{{{CHOSEN}}}", "{{agent}} {{partition}} on {{instance}}"),
            {"1": ("runs", GREEN), "0": ("held", ORANGE)},
        ),
        states(
            "Ready",
            "Whether each worker says that its tasks are open and commit (/readyz).",
            Q(f"hb_ready{{{CHOSEN}}}", "{{instance}}"),
            {"1": ("ready", GREEN), "0": ("not ready", RED)},
            width=8,
        ),
        lines(
            "Tasks opened again",
            "After an error that left the outcome of a commit open, a task goes back to what it has"
            " committed. A few after a broker's restart are normal." + OF_CHOSEN,
            [
                Q(
                    "sum by (agent, partition)"
                    f" (increase(hb_reopenings_total{{{CHOSEN}}}[$__rate_interval]))",
                    "{{agent}} {{partition}}",
                )
            ],
            COUNT,
            width=8,
            height=8,
        ),
    ]


def _state() -> list[Panel]:
    return [
        lines(
            "Age of the picture",
            "How old each worker's picture of the whole system's state is. It reads it every few"
            " seconds; the error rates and weights on the other pages come from there.",
            [Q(f"hb_state_age_seconds{{{CHOSEN}}}", "{{instance}}")],
            SECONDS,
            steps=(Step(GREEN), Step(RED, 60)),
            width=8,
            height=7,
        ),
        sheet(
            "Versions",
            "What each worker runs.",
            [Q(f"hb_build_info{{{CHOSEN}}}")],
            COUNT,
            transformations={
                "filterFieldsByName": columns_named("instance", "version", "python", "kafka_client")
            },
            width=8,
            height=7,
        ),
    ]


def _restoring() -> list[Panel]:
    return [
        lines(
            "Restoring",
            "How long it took to read a task's state back when it was opened, on average."
            + OF_CHOSEN,
            [
                Q(
                    f"sum by (agent) (hb_restore_seconds_sum{{{CHOSEN}}})"
                    f" / (sum by (agent) (hb_restore_seconds_count{{{CHOSEN}}}) > 0)",
                    "{{agent}}",
                )
            ],
            SECONDS,
            width=8,
            height=8,
        ),
        lines(
            "Restored records",
            "Changes of state that workers read back from the broker since they started."
            + OF_CHOSEN,
            [Q(f"sum by (agent) (hb_restored_records_total{{{CHOSEN}}})", "{{agent}}")],
            COUNT,
            width=8,
            height=7,
        ),
    ]
