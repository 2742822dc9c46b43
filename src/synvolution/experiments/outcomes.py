"""Outcomes of runs: one JSON file per run, all that tables and report are made of.

A folder of results holds ``runs/TABLE/TASK/ROW-SEED.json`` (this module), ``complexity.json`` (the costs of the mixers,
as ``bench model --mixers`` writes them) and what is drawn from them. Nothing but these files is read again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from synvolution.training.checkpoints import write_whole

#: Names in a folder of results.
RUNS, SETTINGS, COMPLEXITY = "runs", "settings.json", "complexity.json"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One finished or failed run of a table.

    Args:
        table: "lra", "longdoc", "dna" or "ablations".
        task: name of the task in the table, e.g. "listops"; small relatives and stand-ins have their own names.
        row: which row of the table: a mixer's name, an ablation's ("nope", "spe", …), or a recipe's of ours ("plus").
        seed: of the training.
        budget: "quick", "cpu" or "full".
        command: what does this run again.
        results: content of the run's ``results.json``; None if it failed.
        history: the learning curve: dicts with step and epoch, and of loss, accuracy, validation_loss,
            validation_accuracy what was measured there.
        cpu_seconds: processor time of the run, over all threads, tests included; None if it was interrupted.
        error: why it failed.
    """

    table: str
    task: str
    row: str
    seed: int
    budget: str
    command: str
    results: dict[str, Any] | None = None
    history: list[dict[str, float]] = field(default_factory=list)
    cpu_seconds: float | None = None
    error: str | None = None

    @property
    def accuracy(self) -> float | None:
        """On test, from 0 to 1."""
        return None if self.results is None else self.results["scores"]["test"]["accuracy"]

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the accuracy on test."""
        return None if self.results is None else tuple(self.results["scores"]["test"]["interval"])

    @property
    def parameters(self) -> int | None:
        """Of the model."""
        return None if self.results is None else self.results["parameters"]


def outcome_path(folder: Path, table: str, task: str, row: str, seed: int) -> Path:
    """Where an outcome lies.

    Example:
        >>> outcome_path(Path("results"), "lra", "listops", "fnet", 0).as_posix()
        'results/runs/lra/listops/fnet-0.json'
    """
    return folder / RUNS / table / task / f"{row}-{seed}.json"


def write_outcome(folder: Path, outcome: Outcome) -> Path:
    """Write one file, never by halves."""
    path = outcome_path(folder, outcome.table, outcome.task, outcome.row, outcome.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asdict(outcome), indent=1, ensure_ascii=False) + "\n")
    return path


def read_outcome(path: Path) -> Outcome:
    """Read one file; what is none is refused with its name."""
    try:
        return Outcome(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} holds no outcome of a run ({error}): move it away") from error


def read_outcomes(folder: Path) -> list[Outcome]:
    """All outcomes below a folder, in the order of their names.

    Example:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> outcome = Outcome(table="lra", task="text", row="fnet", seed=0, budget="cpu", command="")
        >>> path = write_outcome(folder, outcome)
        >>> [outcome.row for outcome in read_outcomes(folder)]
        ['fnet']
    """
    return [read_outcome(path) for path in sorted((folder / RUNS).rglob("*.json"))]
