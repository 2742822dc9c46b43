"""``synvolution reproduce``: the paper's tables rebuilt, run by run; the same command again goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console

from synvolution.experiments.bench_mixers import LENGTHS, measurements, write_json
from synvolution.experiments.cell_process import run_apart
from synvolution.experiments.figure_gibbs import draw_gibbs
from synvolution.experiments.grid import TABLES, Budget, Cell, cells
from synvolution.experiments.mixer_step import Settings
from synvolution.experiments.outcomes import COMPLEXITY, SETTINGS, Outcome, outcome_path, read_outcome
from synvolution.experiments.report import report
from synvolution.training.callbacks import console as make_console
from synvolution.training.checkpoints import write_whole

#: What the complexity of the mixers is measured on, in a tour of minutes.
QUICK_MIXERS, QUICK_LENGTHS = ("kernelution", "none", "vanilla", "fnet"), (256, 1024, 4096)


def reproduce(
    what: tyro.conf.Positional[Literal["lra", "longdoc", "dna", "ablations", "complexity", "gibbs", "all"]],
    budget: Budget = "quick",
    tasks: tuple[str, ...] = (),
    mixers: tuple[str, ...] = (),
    seeds: tuple[int, ...] = (0,),
    data: Path | None = None,
    out: Path | None = None,
    minutes: float = 20.0,
    engine: Literal["local", "ray"] = "local",
    ray_address: str | None = None,
    workers: int = 1,
) -> None:
    """Rebuild the paper's tables: train every row on every task, skip what is done, write tables and a report.

    One file of results per run, in runs/; then tables/ (Markdown, LaTeX, CSV) with the published numbers beside ours,
    and report.html. Interrupted, the same command goes on. What was not run is marked, and so is what failed.

    Args:
        what: A table of accuracies, the measured complexity of the mixers, the Gibbs figure, or all.
        budget: quick: minutes, on small relatives of the tasks; cpu: hours of two cores, on the real tasks, the same
            processor time for every row; full: the paper's settings, for a machine with a GPU.
        tasks: Columns to run; by default all of the table.
        mixers: Rows to run: mixers, ablations (nope, spe, ape, no-kpl), nope-none (neither mixer nor GRU), gru (no
            block at all), plus (our own settings).
        seeds: One run for each.
        data: Folder with the files of the tasks, e.g. imdb/, cifar10/; see docs/results.
        out: Folder of the results; by default outputs/reproduce- and the budget.
        minutes: Processor minutes for the training of each run, with --budget cpu.
        engine: Where runs are done: on this machine, or as tasks of a Ray cluster that shares the folder.
        ray_address: Of the cluster, e.g. auto or ray://HOST:10001.
        workers: Runs at the same time.
    """
    console = make_console()
    out = out or Path("outputs") / f"reproduce-{budget}"
    if not minutes > 0 or workers < 1:
        raise ValueError(f"--minutes {minutes:g} --workers {workers}: both must be more than 0")
    if ray_address is not None and engine != "ray":
        raise ValueError("--ray-address is for --engine ray: give both")
    if data is not None and not data.is_dir():
        raise ValueError(f"--data {data}: no such folder")
    tables = TABLES if what == "all" else tuple(name for name in TABLES if name == what)
    wanted = cells(tables, budget, tasks, mixers, seeds) if tables else []
    claim(out, budget, minutes)
    _run_all(wanted, out, data, minutes, engine, ray_address, workers, console)
    if what in ("complexity", "all"):
        measure_complexity(out, budget, mixers, console)
    if what in ("gibbs", "all"):
        for suffix in ("png", "svg"):
            draw_gibbs().savefig(out / f"gibbs.{suffix}", dpi=150)
    report(out)


def claim(out: Path, budget: str, minutes: float) -> None:
    """Make a folder of results ours, or refuse: one folder holds one budget, so that no table mixes two.

    Example:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> claim(folder, "quick", 20)
        >>> (folder / SETTINGS).read_text()
        '{"budget": "quick"}\\n'
    """

    def named(settings: dict[str, object]) -> str:
        return " ".join(f"--{name} {value}" for name, value in settings.items())

    settings: dict[str, object] = {"budget": budget, **({"minutes": f"{minutes:g}"} if budget == "cpu" else {})}
    path = out / SETTINGS
    if path.exists():
        held = json.loads(path.read_text(encoding="utf-8"))
        if held != settings:
            raise ValueError(f"{out} holds results of {named(held)}, not of {named(settings)}: give another --out")
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(settings) + "\n")
    except OSError as error:
        raise ValueError(f"{out} cannot be written ({error.strerror}): give another --out") from error


def _run_all(
    wanted: Sequence[Cell],
    out: Path,
    data: Path | None,
    minutes: float,
    engine: str,
    ray_address: str | None,
    workers: int,
    console: Console,
) -> None:
    todo = [cell for cell in wanted if not done(cell, out)]
    if wanted:
        console.print(f"{len(wanted)} runs, {len(wanted) - len(todo)} of them done before", highlight=False)
    if engine == "ray" and todo:
        from synvolution.experiments.reproduce_ray import run_on_ray

        for cell, found in run_on_ray(todo, out, data, minutes, ray_address, workers):
            say(cell, found, console)
        return

    def one(cell: Cell) -> None:
        console.rule(f"{cell.table}: {cell.task}, {cell.row}, seed {cell.seed}")
        say(cell, run_apart(cell, out, data, minutes, workers), console)

    with ThreadPoolExecutor(workers) as pool:
        try:
            for _ in pool.map(one, todo):
                pass
        except KeyboardInterrupt:
            pool.shutdown(wait=True, cancel_futures=True)
            console.print("interrupted: the same command goes on")
            raise


def done(cell: Cell, out: Path) -> bool:
    """Whether a run has a result; one that failed is tried again."""
    path = outcome_path(out, cell.table, cell.task, cell.row, cell.seed)
    return path.exists() and read_outcome(path).results is not None


def say(cell: Cell, found: Outcome | str, console: Console) -> None:
    """How a run ended, in a line."""
    name = f"{cell.table}: {cell.task}, {cell.row}, seed {cell.seed}"
    if isinstance(found, str):
        console.print(f"{name}: not run: {found}", style="yellow", markup=False, highlight=False)
    elif found.accuracy is None:
        console.print(f"{name}: failed: {found.error}", style="red", markup=False, highlight=False)
    else:
        assert found.interval is not None
        low, high = found.interval
        console.print(f"{name}: {found.accuracy:.2%} ({low:.2%} – {high:.2%})", style="bold", highlight=False)


def measure_complexity(out: Path, budget: str, mixers: Sequence[str], console: Console) -> None:
    """Time and memory of a training step for every mixer and length, once."""
    path = out / COMPLEXITY
    if path.exists():
        return
    quick = budget == "quick"
    settings = Settings(dim=32, hidden=64, repeats=3, enough=0.5) if quick else Settings()
    names = mixers or (QUICK_MIXERS if quick else ("all",))
    with console.status("measuring the mixers …") as status:

        def begin(mixer: str, length: int) -> None:
            status.update(f"measuring {mixer} at N = {length:,}")

        found = list(measurements(names, QUICK_LENGTHS if quick else LENGTHS, settings, begin))
    write_json(path, found, settings)
