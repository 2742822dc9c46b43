"""Runs of the grid as tasks of a Ray cluster whose machines share the folders of results and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from rich.console import Console

from synvolution.experiments.cell import NotHere, outcome_head, run_cell
from synvolution.experiments.grid import Cell
from synvolution.experiments.outcomes import Outcome, write_outcome
from synvolution.experiments.ray_cluster import connect, last_line


def run_on_ray(
    todo: Sequence[Cell], folder: Path, data: Path | None, minutes: float, address: str | None, workers: int
) -> Iterator[tuple[Cell, Outcome | str]]:
    """Start all runs, so many at a time; each with its outcome, or why it was not run, as they end."""
    ray = connect(address)
    resources = ray.cluster_resources()
    each = {"num_cpus": max(1, int(resources.get("CPU", 1)) // workers), "num_gpus": int("GPU" in resources)}
    task = ray.remote(_work).options(**each, max_retries=2)
    place = (folder.resolve(), None if data is None else data.resolve(), minutes, each["num_cpus"])
    running = {task.remote(cell, *place): cell for cell in todo}
    try:
        while running:
            (ready,), _ = ray.wait(list(running))
            cell = running.pop(ready)
            try:
                yield cell, ray.get(ready)
            except ray.exceptions.RayError as error:
                outcome = Outcome(**outcome_head(cell, minutes), error=f"its task on Ray died: {last_line(error)}")
                write_outcome(folder, outcome)
                yield cell, outcome
    finally:
        ray.shutdown()


def _work(cell: Cell, folder: Path, data: Path | None, minutes: float, threads: int) -> Outcome | str:
    """What one task does, on the machine it runs on."""
    torch.set_num_threads(threads)
    try:
        return run_cell(cell, folder, data, minutes, Console(quiet=True))
    except NotHere as error:
        return str(error)
