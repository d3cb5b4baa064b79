"""The workers themselves: the tasks of each, whether it is ready, which versions it runs."""

from deploy.grafana.panels import Panel, columns_named, lines, sheet, states
from deploy.grafana.queries import COUNT, GREEN, ORANGE, RED, SECONDS, Q, Step

CHOSEN = 'instance=~"$worker"'
OF_CHOSEN = " For the selected workers."


def worker_panels() -> list[Panel]:
    """Return the row of the *Pipeline* dashboard about single workers."""
    return [*_tasks(), *_restoring(), *_state()]


def _tasks() -> list[Panel]:
    return [
        states(
            "Tasks",
            "Each partition of each agent, on the worker it is assigned to. Opening: its state is"
            " being restored, or its previous owner's transaction is being aborted.",
            Q(f"hb_task_owner{{{CHOSEN}}}", "{{agent}} {{partition}} on {{instance}}"),
            {"1": ("running", GREEN), "0": ("opening", ORANGE)},
        ),
        states(
            "Ready",
            "Whether each worker reports that its tasks are open and committing (/readyz).",
            Q(f"hb_ready{{{CHOSEN}}}", "{{instance}}"),
            {"1": ("ready", GREEN), "0": ("not ready", RED)},
            width=8,
        ),
        lines(
            "Tasks reopened",
            "After an error that leaves the outcome of a commit unknown, a task restarts from its"
            " last commit. A few after a broker's restart are normal." + OF_CHOSEN,
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
            "Age of the state metrics",
            "How old each worker's view of the whole system's state is. It is refreshed every few"
            " seconds; error rates and weights on the other dashboards come from it.",
            [Q(f"hb_state_age_seconds{{{CHOSEN}}}", "{{instance}}")],
            SECONDS,
            steps=(Step(GREEN), Step(RED, 60)),
            width=8,
            height=7,
        ),
        sheet(
            "Versions",
            "The versions that each worker runs.",
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
            "Average time to restore a task's state when it was opened." + OF_CHOSEN,
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
            "Changelog records that workers have read to restore state since they started."
            + OF_CHOSEN,
            [Q(f"sum by (agent) (hb_restored_records_total{{{CHOSEN}}})", "{{agent}}")],
            COUNT,
            width=8,
            height=7,
        ),
    ]
