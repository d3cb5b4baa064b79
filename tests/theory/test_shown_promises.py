"""What a stream of patients leads to in every place: bounds and intervals only where they hold.

Patients go through all agents; then everything that is printed or exported is walked for what is
named like a bound or an interval and has a value. Which may have one is written down here once
more, by mode and settings, so that an error in `learners.theory.promises` is noticed too.
"""

import re
from dataclasses import asdict
from io import StringIO

import msgspec
import pytest
from rich.console import Console

from agents.monitor.console.activity import Activity
from agents.monitor.console.learner_details import learner_details
from agents.monitor.console.newest_records import NewestRecords
from agents.monitor.console.snapshot import diagnosis, snapshot
from agents.monitor.overview import figures
from agents.monitor.scores import Scorer
from agents.monitor.state_metrics import STATE, state_metrics
from audit.partition_tables import live_tables, sums
from audit.replay.replay import replayed
from cli.plan_bounds import plan
from cli.status_screen import report, screen
from learners.fusion.registry import MODES
from tests import inline_pipeline

REGRET = {
    "metric hb_regret_bound", "status regret_bound", "status screen", "console bound",
    "replay live regret_bound", "replay regret_bound",
}  # fmt: skip
ERRORS = {"metric hb_prediction_error_rate_bound"}
PLANNED = {"plan regret_bound_against_best_expert", "plan by_delay"}
ORACLE = {"plan regret_bound_against_best_local_oracle"}
LOCAL = {"plan regret_bound"}
ALWAYS = {
    "metric hb_accuracy_low", "metric hb_accuracy_high", "console accuracy", "console last",
    "track record low", "track record high", "details rules low", "details rules high",
    "details cubes low", "details cubes high",
}  # fmt: skip
RULE = {"prediction low", "prediction high", "console vote low", "console vote high"}
EPSILON = {"prediction epsilon"}

BOUNDED = {"ah", "wm", "ch", "ch-vote", "committee"}
_NAME = re.compile(r"(^|_)(low|high|epsilon|bounds?|interval|bound_against_\w+|by_delay)$")
PAPER = (
    'learners.b.rules={well={kind="constant",label="well"},ill={kind="constant",label="ill"}}',
    "defaults.exploration=1.0",
)
CONTEXT = 'ensemble.context.features=[{name="y",low=0.0,high=1.0}]'


def named(place, data):
    """Yield the place and name of everything that is named like a bound and has a value."""
    if isinstance(data, dict):
        for key, value in data.items():
            if _NAME.search(str(key)) and value is not None and value != {}:
                yield f"{place} {key}"
            yield from named(place, value)
    elif isinstance(data, list | tuple):
        for item in data:
            yield from named(place, item)


def shown(settings, live):
    """Yield every place in which a bound or an interval has a value."""
    observed = live.observed()
    overview = figures(settings, Scorer(settings), sums(settings, [live_tables(observed)]))
    for spec, metric in zip(STATE, state_metrics(overview), strict=True):
        if _NAME.search(spec.name) and metric.samples:
            yield f"metric {spec.name}"
    yield from named("status", report(settings, overview))
    text = Console(width=200, file=StringIO())
    text.print(screen(settings, overview))
    if "by theory" in text.file.getvalue():
        yield "status screen"
    page = snapshot(settings, overview, Activity(live.topics), NewestRecords(settings), [])
    yield from named("console", {"bound": page["bound"]})
    if any(low < high for _, low, high in page["accuracy"].values()):
        yield "console accuracy"
    if page["last"]["error"]:
        yield "console last"
    for decided in live.diagnoses[-20:]:
        yield from named("track record", msgspec.to_builtins(decided.track_record))
        yield from named("prediction", msgspec.to_builtins(decided.learners))
        yield from named("console vote", diagnosis(settings, decided)["votes"])
    for name in settings.learners:
        cells, rows = observed.state(f"local.{name}").counts["counts"].items()
        counts = dict(zip(cells.tolist(), rows, strict=True))
        details = learner_details(settings, name, counts, 60)
        yield from named("details rules", details["rules"])
        yield from named("details cubes", details["biggest"])
    again = replayed([live.logs()], settings)
    yield from named("replay live", again.live.report(1))
    yield from named("replay", again.replayed.report(1))
    planned = asdict(plan(settings, T=None, eps=0.5, delta=0.05))
    yield from named("plan", {"learners": planned["learners"], "ensemble": planned["ensemble"]})


CASES = {
    **{mode: ([f"ensemble.mode={mode}"], {}) for mode in MODES if not mode.startswith("ch")},
    **{mode: ([f"ensemble.mode={mode}", CONTEXT], {}) for mode in ("ch", "ch-vote")},
    "late": (["ensemble.mode=ah"], {"lag": 7}),
    "corrected": (["ensemble.mode=ah"], {}),
    "targets": (["ensemble.mode=ah", "ensemble.miss_target=0.1"], {}),
    "other rate": (["ensemble.mode=ah", "ensemble.eta_scale=2.0"], {}),
    "active": (["ensemble.mode=wm", "ensemble.active=true"], {}),
    "paper": (["ensemble.mode=ah", *PAPER], {}),
    "paper, active": (["ensemble.mode=ah", *PAPER, "ensemble.active=true"], {}),
    "paper, late": (["ensemble.mode=ah", *PAPER], {"lag": 7}),
    "back-off": (["ensemble.mode=stack", *PAPER, "defaults.backoff=2.0"], {}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_shown_is_what_holds(case, tmp_path):
    overrides, stream = CASES[case]
    settings = inline_pipeline.configured(tmp_path, "ensemble.min_labels=0", *overrides)
    live = inline_pipeline.lived(settings, 60, **stream)
    if case == "corrected":
        live.now = 1_001_000
        live.label("p3", "ill", amends=True)
        live.label("p3", "well", amends=True)
    paper, active = case.startswith("paper"), "active" in case
    theorem = settings.ensemble.mode in BOUNDED and case != "other rate"
    allowed = set(ALWAYS)
    if theorem:
        allowed |= PLANNED
        # Which learners explored is not among the columns that a replay reads of the live run.
        allowed |= (
            set()
            if case == "corrected"
            else REGRET - ({"replay live regret_bound"} if active else set())
        )
        allowed |= set() if case in {"corrected", "targets"} else ERRORS
    allowed |= set() if case == "back-off" else RULE  # of `a`, whose rules never learn
    if paper:
        allowed |= LOCAL | EPSILON | (set() if active else ORACLE)
    assert set(shown(settings, live)) == allowed
