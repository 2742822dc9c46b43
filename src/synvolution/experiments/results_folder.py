"""What a folder of results holds, read and checked: outcomes of runs, and the costs of mixers if they were measured."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synvolution.data.base import TASKS
from synvolution.data.options import DataOptions
from synvolution.experiments.mixer_step import Measurement
from synvolution.experiments.outcomes import COMPLEXITY, RUNS, SETTINGS, Outcome, read_outcome
from synvolution.experiments.published import published

#: Budgets in order; others come after them.
BUDGETS = ("quick", "cpu", "full")
#: Options of the data that make another task of it.
DECISIVE = ("samples", "max_length", "difficulty", "image_size")


@dataclass(frozen=True)
class Complexity:
    """Costs of mixers, as ``bench_mixers.write_json`` left them."""

    settings: dict[str, Any]
    machine: dict[str, str]
    measurements: tuple[Measurement, ...]


@dataclass(frozen=True)
class Results:
    """All that tables and report are made of."""

    outcomes: tuple[Outcome, ...]
    complexity: Complexity | None = None

    def budgets(self, table: str | None = None) -> list[str]:
        """The budgets of a table's runs, or of all, the smallest first."""
        found = {outcome.budget for outcome in self.outcomes if table in (None, outcome.table)}
        return sorted(found, key=lambda name: (BUDGETS.index(name) if name in BUDGETS else len(BUDGETS), name))

    def of(self, table: str, budget: str) -> list[Outcome]:
        """The outcomes of one table and budget."""
        return [outcome for outcome in self.outcomes if (outcome.table, outcome.budget) == (table, budget)]


def read_results(folder: Path) -> Results:
    """Read a folder; what is damaged is refused with its name.

    Example:
        >>> read_results(Path("nowhere"))
        Traceback (most recent call last):
        ...
        ValueError: nowhere is no folder: give the one that synvolution reproduce wrote
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder: give the one that synvolution reproduce wrote")
    outcomes: dict[tuple[str, str, str, int, str], tuple[Path, Outcome]] = {}
    for path in sorted((folder / RUNS).rglob("*.json")):
        outcome = read_outcome(path)
        if fault := _fault(outcome):
            raise ValueError(f"{path} holds no outcome of a run ({fault}): move it away")
        key = outcome.table, outcome.task, outcome.row, outcome.seed, outcome.budget
        if key in outcomes:
            raise ValueError(f"{path} holds the same run as {outcomes[key][0]}: move one away")
        outcomes[key] = path, outcome
    complexity = _complexity(folder / COMPLEXITY)
    if not outcomes and complexity is None and not (folder / SETTINGS).exists():
        raise ValueError(f"{folder} holds no results: neither {RUNS}/**/*.json nor {COMPLEXITY}")
    return Results(tuple(outcome for _, outcome in outcomes.values()), complexity)


def _complexity(path: Path) -> Complexity | None:
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        steps = tuple(Measurement(**row) for row in content["measurements"])
        if not all(isinstance(m.mixer, str) and m.length > 0 for m in steps):
            raise ValueError("a measurement without mixer or length")
        return Complexity(dict(content["settings"]), dict(content["machine"]), steps)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} holds no costs of mixers ({error!r}): move it away") from error


def _fault(outcome: Outcome) -> str:
    """What is wrong with an outcome; nothing if nothing is."""
    for name in ("table", "task", "row", "budget", "command"):
        if not isinstance(getattr(outcome, name), str):
            return f"{name} is no text"
    if outcome.table not in published().accuracy:
        return f"table {outcome.table!r} is none of {', '.join(published().accuracy)}"
    if not re.fullmatch(r"\w[\w.-]*", outcome.budget):
        return f"budget {outcome.budget!r} is no name"
    if not isinstance(outcome.seed, int):
        return f"seed {outcome.seed!r} is no whole number"
    if not isinstance(outcome.history, list) or not all(isinstance(entry, dict) for entry in outcome.history):
        return "history is no list of dicts"
    if outcome.cpu_seconds is not None and not _is_number(outcome.cpu_seconds):
        return f"cpu_seconds is {outcome.cpu_seconds!r}"
    return "" if outcome.results is None else _results_fault(outcome.results)


def _results_fault(results: Any) -> str:
    try:
        test = results["scores"]["test"]
        shares = [test["accuracy"], *test["interval"]]
        if len(shares) != 3 or not all(_is_number(share) and 0 <= share <= 1 for share in shares):
            return f"accuracy and interval on test are {shares}: expected shares"
        if not _is_number(results["parameters"]):
            return f"parameters is {results['parameters']!r}"
    except (KeyError, TypeError) as error:
        return f"results lack {error}"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def column_of(outcome: Outcome) -> str:
    """The task of a run, and what makes it another one than the published of that name: a part of the data, other data.

    Example:
        >>> part = {"recipe": {"task": "text", "data": {"samples": 5000, "max_length": 4096}}}
        >>> column_of(Outcome(table="lra", task="text", row="fnet", seed=0, budget="cpu", command="", results=part))
        'text (samples 5000)'
    """
    if outcome.results is None or outcome.task not in published().accuracy[outcome.table].tasks:
        return outcome.task
    recipe = outcome.results.get("recipe") or {}
    used = recipe.get("task", outcome.task)
    changes = [] if used == outcome.task else [f"data {used}"]
    usual, given = DataOptions().filled(TASKS[outcome.task].defaults), recipe.get("data") or {}
    others = [name for name in DECISIVE if given.get(name) not in (None, getattr(usual, name))]
    changes += [f"{name.replace('_', ' ')} {given[name]}" for name in others]
    return f"{outcome.task} ({', '.join(changes)})" if changes else outcome.task


def by_row_and_column(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], list[Outcome]]:
    """The runs (seeds) of every cell of a table."""
    cells: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        cells.setdefault((outcome.row, column_of(outcome)), []).append(outcome)
    return {key: sorted(runs, key=lambda run: run.seed) for key, runs in cells.items()}
