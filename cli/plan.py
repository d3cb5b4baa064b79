"""`hb plan`: the bounds that theory gives for a settings file, and where it gives none."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import JsonOption, err, out, print_json, table
from cli.settings import SetOption, SettingsOption, load

if TYPE_CHECKING:
    from cli.plan_bounds import Plan, Promise


def register(app: typer.Typer) -> None:
    """Add the command to `hb`."""
    app.command(rich_help_panel="Settings")(plan)


def plan(  # noqa: PLR0917 - options, which nobody passes by position
    settings: SettingsOption = None,
    set_: SetOption = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Patients to plan for.  [default: the learners' horizon, or first phase]",
            show_default=False,
        ),
    ] = None,
    eps: Annotated[
        float, typer.Option(help="How far a learner's accuracy may fall short of its best rule.")
    ] = 0.1,
    delta: Annotated[float, typer.Option(help="Probability that this bound may fail.")] = 0.05,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the curves as an image (.png, .svg, .pdf)."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print the regret bounds, memory and patients needed for a wanted confidence.

    Per learner: how its features are cut (m), the cubes and the memory that makes, its regret
    bound (Theorem 1), and the patients that Corollary 1 needs for `--eps` and `--delta`. For the
    ensemble: Theorems 2 to 4. A bound above the number of patients is marked as vacuous.
    """
    from cli.plan_bounds import plan as work_out

    made = work_out(load(settings, set_), horizon, eps, delta)
    if plot is not None:
        _draw(made, plot)
    if json:
        print_json({"figures": made.report()})
        return
    _print_learners(made)
    _print_ensemble(made)
    _print_curves(made)
    if plot is not None:
        err.print(f"wrote {plot}", highlight=False)


def _print_learners(made: "Plan") -> None:
    columns = ("learner", "features", "rules", "m", "cubes", "memory", "regret bound", "of T")
    rows = table(f"Local learners at T = {made.T:,} patients", *columns, right=columns[1:])
    for p in made.learners:
        share = "[yellow]vacuous[/yellow]" if p.vacuous else f"{p.regret_bound / made.T:.1%}"
        rows.add_row(
            p.learner, str(p.features), str(p.rules), str(p.m), _short(p.cubes),
            _bytes(p.table_bytes), f"{p.regret_bound:,.0f}", share,
        )  # fmt: skip
    out.print(rows)
    for p in made.learners:
        out.print(f"  [bold]{p.learner}[/bold]  {_words(p, made)}", highlight=False)


def _words(p: "Promise", made: "Plan") -> str:
    if p.useful_from is None:
        lines = ["the regret bound is vacuous for any horizon up to 10^12"]
    elif p.vacuous:
        lines = [f"the regret bound is vacuous before about {_short(p.useful_from)} patients"]
    else:
        lines = [f"the regret bound is meaningful from about {_short(p.useful_from)} patients"]
    if p.patients_per_cube is None or p.patients_total is None:
        lines.append(
            f"within {p.eps:g} of the best rule cannot be guaranteed: the partition alone may cost"
            f" {p.eps_floor:.3g}"
        )
    else:
        lines.append(
            f"within {p.eps:g} of the best rule, {1 - made.delta:.0%} sure: from"
            f" {p.patients_per_cube:,} patients in a cube on (at most {_short(p.patients_total)}"
            " in all)"
        )
    return "; ".join([*lines, *p.caveats])


def _print_ensemble(made: "Plan") -> None:
    rows = table("Ensemble", "against", "regret bound", "of T", right=("regret bound", "of T"))
    names = {
        "regret_bound_against_best_learner": "best learner in hindsight"
        if made.ensemble["context_cubes"] == 1
        else "best learner per context cube in hindsight",
        "regret_bound_against_best_local_oracle": "best local oracle",
    }
    for key, name in names.items():
        bound = made.ensemble[key]
        share = "[yellow]vacuous[/yellow]" if bound >= made.T else f"{bound / made.T:.1%}"
        rows.add_row(name, f"{bound:,.0f}", share)
    out.print(rows)


def _print_curves(made: "Plan") -> None:
    import numpy as np
    import plotext

    figure = plotext.figure
    figure.clear()
    figure.plot_size(min(out.width, 100), 22)
    lengths = np.log10(made.lengths)
    for name, curve in made.curves.items():
        figure.draw(figure.signal(lengths, np.log10(curve)).lines().label(name))
    figure.draw(figure.signal(lengths, lengths).lines().label("T itself: above it, vacuous"))
    figure.title("Regret bound over the number of patients T")
    for axis in ("x", "y"):
        decades = list(range(0, 13, 2))
        figure.ruler(axis).ticks(decades, [f"10^{decade}" for decade in decades])
    drawn = str(figure.build())
    out.file.write((drawn if out.is_terminal else plotext.uncolorize(drawn)) + "\n")


def _draw(made: "Plan", file: Path) -> None:
    from settings.errors import InputError

    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise InputError(
            "--plot needs matplotlib; install the extra: pip install 'hedged-bandits[experiments]'"
        ) from None
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for name, curve in made.curves.items():
        axes.plot(made.lengths, curve, label=name)
    axes.plot(made.lengths, made.lengths, "k--", label="T itself")
    axes.fill_between(made.lengths, made.lengths, max(made.lengths), alpha=0.08, label="vacuous")
    axes.axvline(made.T, color="grey", linewidth=0.8, label=f"T = {made.T:,}")
    axes.set(xscale="log", yscale="log", xlabel="patients T", ylabel="regret bound")
    axes.legend()
    try:
        figure.savefig(file)
    except (OSError, ValueError) as error:
        raise InputError(f"--plot {file}: {error}") from None


def _short(number: float) -> str:
    for limit, unit in ((1e6, ""), (1e9, " million"), (1e12, " billion"), (1e15, " trillion")):
        if number < limit:
            scaled = number / max(1.0, limit / 1e3) if unit else number
            return f"{scaled:,.0f}{unit}" if not unit else f"{scaled:,.3g}{unit}"
    return f"{number:.2g}"


def _bytes(number: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:,.0f} {unit}"
        number /= 1024
    return f"{number:,.0f} TiB"
