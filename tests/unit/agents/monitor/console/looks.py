"""Overviews for tests of the console."""

from agents.monitor.overview import Overview, TaskView
from agents.monitor.scores import Scores
from learners.join import AMENDMENTS, COUNTERS


def overview(
    left=0,
    right=0,
    learned=0,
    predictions=0,
    diagnosed=0,
    behind=(0, 0, 0),
    holders="www",
    **scores,
):
    """Return a system of two learners and an ensemble, in that order."""
    counts = dict.fromkeys((*COUNTERS, *AMENDMENTS), 0)
    counts |= {
        "prediction_taken": predictions,
        "diagnosed_complete": diagnosed,
        "label_matched": learned,
        "settled": learned,
    }
    agents = ("local.left", "local.right", "ensemble")
    tasks = [
        TaskView(agent, 0, "host w1" if holder == "w" else None, {"in": lag})
        for agent, lag, holder in zip(agents, behind, holders, strict=True)
    ]
    figures = {
        "labelled": learned,
        "instances": {"left": left, "right": right},
        "learned": {"left": learned, "right": learned},
        **scores,
    }
    return Overview([], ["host w1"], tasks, counts, Scores(**figures), limit=100)
