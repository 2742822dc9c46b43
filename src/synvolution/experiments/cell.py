"""One run of the grid: from its cell to its outcome, continued where it was interrupted."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from synvolution.data.base import Prepared
from synvolution.experiments.grid import Cell, origin_of, recipe_of
from synvolution.experiments.outcomes import Outcome, outcome_path, read_outcome, write_outcome
from synvolution.experiments.pace import seconds_per_step
from synvolution.recipes import Recipe
from synvolution.training.callbacks import METRICS
from synvolution.training.commands import prepare_for
from synvolution.training.rows import Rows
from synvolution.training.run import RECIPE, run
from synvolution.training.trainer import TrainingError

WORK = "work"
#: Validations at most of a run whose length is given by its budget, and lines of its log.
VALIDATIONS, LOG_LINES = 4, 100
#: Tokens of a step at most where processor time is short.
CPU_TOKENS = 2**16
CURVES = ("loss", "accuracy")
#: Points of a learning curve that are kept.
POINTS = 200


class NotHere(ValueError):
    """The data of a run is not on this machine: it was not run, and may be run later."""


def run_cell(cell: Cell, folder: Path, data: Path | None, minutes: float, console: Console) -> Outcome:
    """Train and test one cell of the grid, and write its outcome.

    Args:
        cell: which run.
        folder: of the results.
        data: folder with the files of the tasks.
        minutes: processor minutes for training, with the budget "cpu".
        console: where progress is shown.
    """
    path = outcome_path(folder, cell.table, cell.task, cell.row, cell.seed)
    out = folder / WORK / path.relative_to(folder).with_suffix("").relative_to("runs")
    head = outcome_head(cell, minutes)
    begun, anew = time.process_time(), not (out / RECIPE).exists()
    try:
        recipe = recipe_of(cell)
        recipe.model.check()
        origin, prepared = _data(cell, recipe, data, folder, console)
        if cell.budget == "cpu":
            recipe = with_batch(recipe, prepared)
            recipe = with_steps(recipe, prepared, minutes, out)
        if recipe.training.max_steps is not None:
            recipe = with_validations(recipe, prepared)
        results = run(recipe, prepared, out, console=console, origin=_shown(origin, data), resume=not anew)
        spent = round(time.process_time() - begun, 1) if anew else None
        outcome = Outcome(**head, results=_portable(results, origin, data), history=history(out), cpu_seconds=spent)
    except NotHere:
        raise
    except (ValueError, TrainingError, MemoryError, RuntimeError) as error:
        outcome = Outcome(**head, error=str(error) or type(error).__name__)
    return read_outcome(write_outcome(folder, outcome))


def outcome_head(cell: Cell, minutes: float) -> dict[str, Any]:
    """What an outcome says of the run itself.

    Example:
        >>> outcome_head(Cell("dna", "yeast", "none", 0, "cpu"), 20)["command"]
        'synvolution reproduce dna --budget cpu --tasks yeast --mixers none --seeds 0 --minutes 20'
    """
    head: dict[str, Any] = {name: getattr(cell, name) for name in ("table", "task", "row", "seed", "budget")}
    return head | {"command": cell.command(f" --minutes {minutes:g}" if cell.budget == "cpu" else "")}


def _data(cell: Cell, recipe: Recipe, data: Path | None, folder: Path, console: Console) -> tuple[str | None, Prepared]:
    try:
        origin = origin_of(cell, data, folder / "made")
        return origin, prepare_for(recipe, origin, console)
    except (ValueError, OSError) as error:
        raise NotHere(str(error)) from error


def _shown(origin: str | None, data: Path | None) -> str | None:
    """The place of the data below its folder: where that lies is nobody's business."""
    if origin is None or data is None or not Path(origin).is_relative_to(data):
        return None if origin is None else Path(origin).name
    return Path(origin).relative_to(data).as_posix()


def _portable(results: dict[str, Any], origin: str | None, data: Path | None) -> dict[str, Any]:
    """The results without paths of this machine."""
    if origin is None:
        return results
    source = str(results["data"].get("source", "")).replace(origin, str(_shown(origin, data)))
    return {**results, "data": {**results["data"], "source": source}}


def with_steps(recipe: Recipe, prepared: Prepared, minutes: float, out: Path) -> Recipe:
    """The recipe with as many steps as the minutes buy; a run that was begun keeps its number."""
    settled = out / RECIPE
    if settled.exists():
        return Recipe.from_json(json.dumps(json.loads(settled.read_text(encoding="utf-8"))["recipe"]))
    steps = max(VALIDATIONS, round(60 * minutes / seconds_per_step(recipe, prepared)))
    training = replace(recipe.training, max_steps=steps, log_every=max(1, steps // LOG_LINES))
    return replace(recipe, training=training)


def with_batch(recipe: Recipe, prepared: Prepared) -> Recipe:
    """The recipe with fewer rows per step where they are long (a power of two), and as many as before to validate."""
    lengths, most = Rows(prepared.splits["train"]).lengths, recipe.training.batch_size
    fitting = max(1, int(CPU_TOKENS / (sum(lengths) / len(lengths))))
    batch = min(most, 2 ** (fitting.bit_length() - 1))
    return replace(recipe, training=replace(recipe.training, batch_size=batch, evaluation_batch_size=most))


def with_validations(recipe: Recipe, prepared: Prepared) -> Recipe:
    """A recipe of so many steps, validated a few times at equal distances, on no more rows than are trained on."""
    steps, batch = recipe.training.max_steps or 0, recipe.training.batch_size
    times = min(VALIDATIONS, steps * batch // max(1, len(prepared.splits["validation"])))
    per_epoch = max(1, len(prepared.splits["train"]) // batch)
    every = max(1, steps // max(1, times)) / per_epoch
    return replace(recipe, training=replace(recipe.training, validate_every=every))


def history(out: Path) -> list[dict[str, float]]:
    """The learning curve of a run: at most some hundred points, every validation among them."""
    names = {f"{old}{name}": f"{new}{name}" for old, new in (("", ""), ("eval_", "validation_")) for name in CURVES}
    points: dict[float, dict[str, float]] = {}
    for line in (out / METRICS).read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        point = points.setdefault(entry["step"], {"step": entry["step"], "epoch": round(entry["epoch"], 4)})
        point |= {new: round(entry[old], 5) for old, new in names.items() if old in entry}
    ordered = [points[step] for step in sorted(points)]
    every = -(-len(ordered) // POINTS)
    return [point for k, point in enumerate(ordered) if k % every == 0 or "validation_accuracy" in point]
