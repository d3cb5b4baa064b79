"""A run as the product meets it: a settings file, instance records and labels.

So a run of an experiment can be streamed through the real pipeline and give the same predictions.
"""

from collections.abc import Iterator, Sequence

from experiments.data import Dataset
from experiments.paper.parallel_runs import LocalSettings
from experiments.paper.protocol import Runs
from learners.arrays.types import Ints
from learners.local.features import Real
from learners.local.scaling import ZLogistic
from schemas.records import Instance, Label


def settings_text(runs: Runs, run: int, settings: LocalSettings, h: float, mode: str = "wm") -> str:
    """Return the settings file of one run."""
    data = runs.data
    names = ", ".join(f'"{label}"' for label in data.labels)
    ties = "hash" if settings.preferred is None else data.labels[settings.preferred]
    m = settings.config(runs.columns(settings.learners)[0].shape[1]).cuts
    lines = [
        "version = 1",
        f'name = "{data.name}"',
        f"labels = [{names}]",
        f'positive = "{data.labels[1]}"',
        "[defaults]",
        f"horizon = {settings.horizon}",
        f"alpha = {settings.alpha}",
        f'feedback = "{settings.feedback}"',
        f"exploration = {settings.exploration!r}",
        f'ties = "{ties}"',
        f"cuts = {m}",
    ]
    for label, weight in zip(data.labels, (1.0, h), strict=True):
        lines += [f"[defaults.rules.{label}]", 'kind = "constant"', f'label = "{label}"']
        lines.append(f"weight = {float(weight)!r}")
    for i, columns in enumerate(runs.columns(settings.learners)):
        features = ", ".join(feature_lines(data, columns[run].tolist()))
        lines += [f"[learners.{learner_name(i)}]", f"features = [{features}]"]
    return "\n".join([*lines, "[ensemble]", f'mode = "{mode}"', ""])


def learner_name(i: int) -> str:
    """Return what the settings call the i-th local learner."""
    return f"ll{i + 1}"


def feature_lines(data: Dataset, columns: list[int]) -> Iterator[str]:
    """Return features as the settings file writes them."""
    space = data.space()
    for j in columns:
        feature = space.features[j]
        assert isinstance(feature, Real)
        assert isinstance(feature.scaling, ZLogistic)
        fitted = f"mean = {feature.scaling.mean!r}, std = {feature.scaling.std!r}"
        yield f'{{name = "{feature.name}", scale = "zlog", {fitted}}}'


def instance_id(seed: int, run: int, t: int) -> str:
    """Return the id that the run's seeds were made from."""
    return f"{seed}/{run}/{t}"


def instances(runs: Runs, seed: int, run: int, learners: int = 3) -> Iterator[dict[str, Instance]]:
    """Return, step by step, what each local learner is sent; times are the steps."""
    columns = [own[run] for own in runs.columns(learners)]
    for t, patient in enumerate(runs.draws[run].tolist()):
        yield split_up(runs.data, patient, columns, instance_id(seed, run, t), t)


def split_up(
    data: Dataset, patient: int, columns: Sequence[Ints], name: str, at: int
) -> dict[str, Instance]:
    """Return a patient's features, dealt out to the local learners."""
    names, row = [name for name, _ in data.features], data.rows[patient]
    return {
        learner_name(i): Instance(name, {names[j]: float(row[j]) for j in own.tolist()}, at)
        for i, own in enumerate(columns)
    }


def labels(runs: Runs, seed: int, run: int) -> Iterator[Label]:
    """Return the labels that come, in order."""
    for t, (label, silent) in enumerate(zip(runs.told[run], runs.silent[run], strict=True)):
        if not silent:
            yield Label(instance_id(seed, run, t), runs.data.labels[int(label)], t)
