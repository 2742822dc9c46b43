"""Pictures of a sweep: accuracy over the trials, and how much each dimension decided."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import optuna
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from optuna.trial import FrozenTrial, TrialState

#: Completed trials from which importances are told.
ENOUGH = 4


def draw_history(trials: Sequence[FrozenTrial], start: float | None, path: Path) -> None:
    """Accuracy of every trial, the best so far, and the recipe's own as a dashed line.

    Example:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "history.png"
        >>> draw_history([optuna.trial.create_trial(value=0.5)], 0.5, path)
        >>> path.stat().st_size > 1000
        True
    """
    figure = Figure(figsize=(8, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    complete = [(trial.number, trial.value or 0.0) for trial in trials if trial.state == TrialState.COMPLETE]
    stopped = [
        (trial.number, trial.intermediate_values[trial.last_step])
        for trial in trials
        if trial.state == TrialState.PRUNED and trial.last_step is not None
    ]
    without = [trial.number for trial in trials if trial.last_step is None and trial.value is None]
    if complete:
        numbers, values = zip(*complete, strict=True)
        axes.plot(numbers, values, "o", label="finished", color="C0")
        axes.step(numbers, list(itertools.accumulate(values, max)), where="post", label="best so far", color="C0")
    if stopped:
        axes.plot(*zip(*stopped, strict=True), "o", label="stopped early", color="C7", fillstyle="none")
    if without:
        axes.plot(without, [0.02] * len(without), "x", label="failed", color="C3", transform=axes.get_xaxis_transform())
    if start is not None:
        axes.axhline(start, linestyle="--", color="C1", label="start")
    axes.set(xlabel="trial", ylabel="validation accuracy")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def importances(trials: Sequence[FrozenTrial]) -> dict[str, float]:
    """Share of each dimension in what made trials good (PED-ANOVA); empty with too few trials or equal values.

    Example:
        >>> importances([])
        {}
    """
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if len(complete) < ENOUGH or len({trial.value for trial in complete}) == 1:
        return {}
    study = optuna.create_study(direction="maximize")
    study.add_trials(complete)
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(share) for name, share in found.items()}


def draw_importances(shares: dict[str, float], path: Path) -> None:
    """Bars, the most important on top.

    Example:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "importances.png"
        >>> draw_importances({"learning_rate": 0.8, "eta": 0.2}, path)
        >>> path.stat().st_size > 1000
        True
    """
    figure = Figure(figsize=(8, 1.2 + 0.35 * max(2, len(shares))), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    if shares:
        ordered = sorted(shares.items(), key=lambda item: item[1])
        bars = axes.barh([name for name, _ in ordered], [share for _, share in ordered])
        axes.bar_label(bars, fmt="{:.0%}", padding=3)
        axes.set(xlabel="importance (PED-ANOVA)", xlim=(0, 1.1 * max(max(shares.values()), 1e-9)))
    else:
        axes.text(0.5, 0.5, f"fewer than {ENOUGH} finished trials that differ", ha="center", va="center")
        axes.set_axis_off()
    figure.savefig(path, dpi=120)
