"""A folder of results as ``synvolution reproduce`` leaves it, with made numbers; hostile names among them if asked."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from synvolution.experiments.bench_mixers import write_json
from synvolution.experiments.mixer_step import Measurement, Settings
from synvolution.experiments.outcomes import Outcome, write_outcome
from synvolution.experiments.published import published
from synvolution.training.metrics import wilson_interval

HOSTILE = (
    "<script>document.title='owned'</script>",
    "a|b & c_d",
    "\\input{x} 100% $5$ ^~#",
    '"><img src=x onerror=f()>',
)


def results_of(accuracy: float, rows: int = 2000, **rest: Any) -> dict[str, Any]:
    """The part of ``results.json`` that tables and report read."""
    right = round(accuracy * rows)
    scores = {
        "validation": {"rows": rows, "accuracy": accuracy + 0.01, "interval": [0, 1]},
        "test": {"rows": rows, "accuracy": right / rows, "interval": list(wilson_interval(right, rows))},
    }
    return {
        "scores": scores,
        "parameters": 33_624,
        "selection": {"rule": "best accuracy on validation", "step": 900, "steps": 1000, "epochs": 4.0},
        "machine": {"processor": "AMD EPYC", "threads": "2", "devices": "cpu"},
        "commit": "d9e6df7",
        "recipe": {"task": None, "data": {}},
        **rest,
    }


def run_of(task: str, row: str, accuracy: float | None, *, table: str = "lra", seed: int = 0, **rest: Any) -> Outcome:
    """An outcome with a learning curve; without accuracy a failed one."""
    found = None
    if accuracy is not None:
        found = results_of(accuracy, recipe={"task": task, "data": {}})
    noise = random.Random(f"{task} {row} {seed}")
    curve = [(step, (accuracy or 0.5) * (1 - math.exp(-step / 250))) for step in range(100, 1001, 100)]
    history: list[dict[str, float]] = [{"step": 50, "epoch": 0.2, "loss": 2.0}]
    history += [
        {"step": step, "epoch": step / 250, "validation_accuracy": value + noise.gauss(0, 0.005)}
        for step, value in curve
    ]
    usual: dict[str, Any] = {
        "budget": "cpu",
        "command": f"synvolution train {task} --model.mixer {row} --training.seed {seed}",
        "results": found,
        "history": history,
        "cpu_seconds": 600.0 + noise.uniform(0, 3000),
        "error": None if found else "Traceback (most recent call last):\nRuntimeError: out of memory",
    }
    return Outcome(table=table, task=task, row=row, seed=seed, **{**usual, **rest})


def write_costs(folder: Path, mixers: list[str]) -> None:
    """A made complexity.json."""
    steps = []
    for k, mixer in enumerate(mixers):
        power = 2 if mixer in ("vanilla", "synthesizer") else 1
        for n in (1024, 4096, 16384):
            over = mixer == "synthesizer" and n > 4096
            time = None if over else (20 + k) * (n / 1024) ** (power * 0.95)
            memory = None if over else int((30 + k) * 2**20 * (n / 1024) ** power)
            steps.append(Measurement(mixer, n, "out of memory" if over else "ok", time, memory))
    write_json(folder / "complexity.json", steps, Settings())


def small(folder: Path) -> Path:
    """A few runs: several tasks, seeds and budgets, a failed one, a stand-in, hostile names."""
    runs = [run_of(task, "kernelution", 0.5 + k / 20) for k, task in enumerate(published().accuracy["lra"].tasks)]
    runs += [run_of("listops", "vanilla", 0.36, seed=seed) for seed in (0, 1)]
    runs += [run_of("listops", "vanilla", 0.39, seed=2), run_of("listops", "none", 0.41)]
    runs += [run_of("listops", "fnet", None), run_of("listops-quick", "kernelution", 0.61)]
    runs += [run_of("listops-quick", "kernelution", 0.44, budget="quick", seed=7)]
    runs += [run_of("listops", row, 0.3 + k / 10, table="ablations") for k, row in enumerate(("kernelution", "nope"))]
    runs += [run_of(" ".join(HOSTILE), name, 0.5, command=name) for name in HOSTILE]
    runs += [run_of("text", HOSTILE[0], None, error=" ".join(HOSTILE))]
    for run in runs:
        write_outcome(folder, run)
    write_costs(folder, ["kernelution", "vanilla", "synthesizer", "s4d"])
    return folder


def realistic(folder: Path) -> Path:
    """Every row of every table, as a long reproduction would leave it."""
    noise = random.Random(0)
    for name, table in published().accuracy.items():
        rows = {row.row: row.values for row in table.rows}
        for extra, like in {"none": "linear", "gru": "luna", "s4d": "luna", "plus": "kernelution"}.items():
            rows |= {} if name == "ablations" else {extra: rows.get(like, rows["vanilla"])}
        tasks = [*table.tasks, *{"lra": ["listops-quick"], "longdoc": ["arxiv-cs"], "dna": ["yeast"]}.get(name, [])]
        for task in tasks:
            for row, values in rows.items():
                likely = values.get(task, next(iter(values.values()))) / 100 + noise.gauss(0, 0.03)
                for seed in range(3 if row == "kernelution" and name == "lra" else 1):
                    run = run_of(task, row, min(0.95, likely + seed / 100), table=name, seed=seed)
                    size = {**(run.results or {}), "parameters": int(33_000 * 2 ** noise.uniform(0, 2))}
                    write_outcome(folder, replace(run, results=size))
        write_outcome(folder, run_of("retrieval", "synthesizer", None))
    write_outcome(folder, run_of("listops-quick", "kernelution", 0.55, budget="quick", seed=5))
    write_costs(folder, [*dict.fromkeys(row.row for row in published().accuracy["lra"].rows), "none", "gru", "s4d"])
    return folder
