"""What a sweep tells: a line per trial, a table of start and best, ``trials.csv`` and ``best.json``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock
from optuna.trial import FrozenTrial, TrialState
from rich.table import Table

from synvolution.experiments.search_space import Value, configured
from synvolution.experiments.sweep_study import REASON
from synvolution.experiments.sweep_worker import PEAK, Plan
from synvolution.training.callbacks import as_csv
from synvolution.training.checkpoints import write_whole
from synvolution.training.metrics import wilson_interval

BEST, TRIALS = "best.json", "trials.csv"


def shown(value: Any) -> str:
    """A value of a dimension, short.

    Example:
        >>> shown(0.00123456), shown(64), shown("spread")
        ('0.00123', '64', 'spread')
    """
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def line_of(trial: FrozenTrial, is_best: bool = False) -> str:
    """A finished trial in one line.

    Example:
        >>> import optuna
        >>> study = optuna.create_study(direction="maximize")
        >>> study.add_trial(optuna.create_trial(value=0.5))
        >>> line_of(study.trials[0], is_best=True)
        'trial   0   50.00%  best so far'
    """
    reason = str(trial.user_attrs.get(REASON, "lost with its worker"))
    if trial.state == TrialState.COMPLETE:
        head = f"{trial.value:8.2%}"
    else:
        last = trial.intermediate_values.get(trial.last_step or 0)
        head = " " * 8 if last is None else f"{last:8.2%}"
    notes = [] if trial.state == TrialState.COMPLETE else [reason]
    notes += ["best so far"] if is_best else []
    values = " ".join(f"{name}={shown(value)}" for name, value in trial.params.items())
    return "  ".join(filter(None, (f"trial {trial.number:3} {head}", ", ".join(notes), values)))


def finished(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Those that ended, however."""
    return [trial for trial in trials if trial.state.is_finished()]


def best_of(trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """The trial with the highest accuracy, of equal ones the first; None if none was completed.

    Example:
        >>> from optuna.trial import create_trial
        >>> best_of([create_trial(value=0.5), create_trial(value=0.7)]).value
        0.7
    """
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    return max(complete, key=lambda trial: trial.value or 0.0, default=None)


def own_of(trials: Sequence[FrozenTrial], start: dict[str, Value]) -> FrozenTrial | None:
    """The trial with the recipe's own values, if it ended; a completed one if there are several."""
    own = [trial for trial in finished(trials) if trial.params == start]
    return best_of(own) or next(iter(own), None)


def write_files(out: Path, plan: Plan, trials: Sequence[FrozenTrial]) -> None:
    """Write ``trials.csv``, and ``best.json`` if there is a best one; workers of one folder take turns."""
    best = best_of(trials)
    with FileLock(out / ".lock"):
        write_whole(out / TRIALS, as_csv([_row(trial) for trial in finished(trials)]))
        if best is not None:
            write_whole(out / BEST, configured(plan.recipe, best.params, plan.space).to_json())


def _row(trial: FrozenTrial) -> dict[str, Any]:
    seconds = "" if trial.duration is None else round(trial.duration.total_seconds(), 1)
    return {
        "trial": trial.number,
        "state": trial.state.name.lower(),
        "accuracy": trial.value if trial.value is not None else "",
        "validations": len(trial.intermediate_values),
        **trial.params,
        "seconds": seconds,
        PEAK: trial.user_attrs.get(PEAK, ""),
        "reason": trial.user_attrs.get(REASON, ""),
    }


def table_of(start: FrozenTrial | None, best: FrozenTrial, names: Sequence[str], rows: int) -> Table:
    """Start and best side by side.

    Args:
        start: trial of the recipe itself.
        best: the best trial.
        names: dimensions.
        rows: of validation, for the intervals.
    """
    table = Table(title="start and best")
    for name, place in (("", "left"), ("start", "right"), ("best", "right")):
        table.add_column(name, justify="right" if place == "right" else "left")
    pair = (start, best)
    table.add_row("trial", *("" if trial is None else str(trial.number) for trial in pair))
    table.add_row("validation accuracy", *(_accuracy(trial) for trial in pair))
    table.add_row(f"95 % interval, {rows:,} rows", *(_interval(trial, rows) for trial in pair))
    for name in names:
        table.add_row(name, *("" if trial is None else shown(trial.params.get(name, "")) for trial in pair))
    return table


def _accuracy(trial: FrozenTrial | None) -> str:
    if trial is None:
        return "not tried"
    return f"{trial.value:.2%}" if trial.state == TrialState.COMPLETE else str(trial.user_attrs.get(REASON, "failed"))


def _interval(trial: FrozenTrial | None, rows: int) -> str:
    if trial is None or trial.state != TrialState.COMPLETE or trial.value is None:
        return ""
    low, high = wilson_interval(round(trial.value * rows), rows)
    return f"{low:.2%} – {high:.2%}"
