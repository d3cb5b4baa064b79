"""A single pass as the product meets it: a settings file, instance records and labels."""

from collections.abc import Iterator

from experiments.single_pass.local_passes import Task
from experiments.single_pass.methods import Ours
from schemas.records import Instance, Label
from settings.render import inline
from tests.runs_as_records import feature_lines, instance_id, learner_name, split_up


def settings_text(task: Task, method: Ours) -> str:
    """Return the settings file of a pass."""
    order, recipe = task.order(), task.recipe
    data = order.data
    lines = [
        "version = 1",
        f'name = "{data.name}"',
        f"labels = {inline(list(data.labels))}",
        f"positive = {inline(data.labels[data.positive or 0])}",
        "[defaults]",
        f'feedback = "{recipe.feedback}"',
        f"exploration = {recipe.exploration!r}",
        f"cuts = {recipe.cuts}",
        f"backoff = {recipe.backoff!r}",
    ]
    for k, rule in enumerate(recipe.rules):
        lines.append(f"[defaults.rules.{rule.get('name', f'rule{k}')}]")
        lines += [f"{key} = {inline(value)}" for key, value in rule.items() if key != "name"]
    for i, columns in enumerate(order.columns):
        features = ", ".join(feature_lines(data, columns.tolist()))
        lines += [f"[learners.{learner_name(i)}]", f"features = [{features}]"]
    options = inline(dict(method.options))
    return "\n".join([*lines, "[ensemble]", f'mode = "{method.mode}"', f"options = {options}", ""])


def records(task: Task) -> Iterator[tuple[dict[str, Instance], Label]]:
    """Return, patient by patient, what each local learner is sent, and the label that follows."""
    order = task.order()
    for t, patient in enumerate(order.patients.tolist()):
        name = instance_id(task.seed, task.number, t)
        label = order.data.labels[int(order.told[t])]
        yield split_up(order.data, patient, order.columns, name, t), Label(name, label, t)
