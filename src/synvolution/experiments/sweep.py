"""``synvolution sweep``: Bayesian optimisation of a recipe's settings, on validation accuracy, under a memory limit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from filelock import FileLock
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from synvolution.data.base import DataOptions, Prepared
from synvolution.experiments.search_space import Value, chosen, described, grid, start_of
from synvolution.models.options import ModelOptions
from synvolution.recipes import Recipe
from synvolution.training.callbacks import console as make_console
from synvolution.training.checkpoints import write_whole
from synvolution.training.commands import folder_name, parse_recipe, prepare_for
from synvolution.training.options import TrainingOptions
from synvolution.training.run import difference

if TYPE_CHECKING:
    import optuna

    from synvolution.experiments.sweep_worker import Plan

STUDY = "study.json"
#: Trials if nothing else is said.
TRIALS = 20


@dataclass(frozen=True, kw_only=True)
class SweepArguments:
    """Search better settings for a recipe: Bayesian optimisation of the validation accuracy; the test rows stay unseen.

    The first trial is the recipe itself. The same command again goes on where it was interrupted; run it several times
    at once, or on several machines with one --storage, and they share the study. Options of --data, --model and
    --training change the recipe that the search starts from.
    """

    origin: Annotated[str | None, tyro.conf.arg(name="data")] = None
    """Your own data, a file, folder or hub name; for a task, where its files lie."""
    out: Path | None = None
    """Folder for best.json, trials.csv and pictures; by default outputs/sweep- and the name of the recipe or data."""
    trials: int | None = None
    """Trials in all, those of other workers and earlier runs included; by default 20, or the whole grid."""
    search: tuple[str, ...] = ()
    """What to search: NAME, NAME=A,B,C or NAME=LOW:HIGH, several; by default the paper's hyperparameters."""
    sampler: Literal["tpe", "gp", "random", "grid"] = "tpe"
    """How values are found: tree-structured Parzen estimator, Gaussian process, at random, or every combination."""
    pruner: Literal["median", "hyperband", "none"] = "median"
    """Which trials are stopped early: those below the median of the others, successive halving, or none."""
    startup: int = 5
    """Trials at random before the sampler uses what it saw, and before the median is told."""
    seed: int = 0
    """Decides what is tried; the seed of the trainings themselves is --training.seed."""
    memory: float = 16.0
    """GiB that a trial may take beyond the program itself (the paper: 16); one that takes more is given up."""
    storage: str | None = None
    """Address of a database for several machines (postgresql://…, mysql://…); by default a file in the folder."""
    study: str | None = None
    """Name of the study in the database; by default the folder's."""
    engine: Literal["local", "ray"] = "local"
    """Where workers run: on this machine, or as tasks of a Ray cluster."""
    ray_address: str | None = None
    """Of the cluster, e.g. auto or ray://HOST:10001; by default the one of RAY_ADDRESS, else this machine alone."""
    workers: int = 1
    """Trials at the same time, started by this command."""
    baseline: str | None = None
    """A baseline's name: its settings in the paper (long documents, Ensembl), else the recipe's with that mixer."""
    options: Annotated[DataOptions, tyro.conf.arg(name="data")] = field(default_factory=DataOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)

    def __post_init__(self) -> None:
        for name in ("trials", "workers", "startup"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"--{name} {value}: expected at least 1")
        if not self.memory > 0:
            raise ValueError(f"--memory {self.memory}: expected more than 0 GiB")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"--seed {self.seed}: expected a number from 0 to 2^31 − 1")
        if self.ray_address is not None and self.engine != "ray":
            raise ValueError("--ray-address is for --engine ray: give both")


def sweep(argv: list[str]) -> None:
    """``synvolution sweep``."""
    console = make_console()
    name, recipe, arguments = parse_recipe(argv, "sweep", SweepArguments)
    recipe = replace(recipe, data=arguments.options, model=arguments.model, training=arguments.training)
    recipe.model.check()
    _need_optuna()
    from synvolution.experiments.sweep_study import heartbeats_allowed

    name = folder_name(arguments.origin if recipe.task is None else name)
    out = arguments.out or Path("outputs") / "-".join(filter(None, ("sweep", name, arguments.baseline)))
    space = chosen(arguments.search, recipe)
    points = grid(space) if arguments.sampler == "grid" else []
    _check_folder(out, None)
    prepared = prepare_for(recipe, arguments.origin, console)
    with heartbeats_allowed():
        plan = _plan(arguments, recipe, prepared, out, space, points)
        study = _claim(out, plan, embedded=arguments.storage is None)
        try:
            _follow(plan, study, _started(plan, arguments), out, console)
        except KeyboardInterrupt:
            console.print("interrupted: the same command goes on with the study")
            raise
        _conclude(plan, study, prepared, out, console)


def _need_optuna() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise ValueError("sweeps need Optuna: pip install 'synvolution[sweep]'") from error


def _plan(
    arguments: SweepArguments,
    recipe: Recipe,
    prepared: Prepared,
    out: Path,
    space: dict[str, Any],
    points: list[dict[str, Value]],
) -> Plan:
    """Everything the workers must know."""
    from synvolution.experiments.sweep_study import Place
    from synvolution.experiments.sweep_worker import Plan

    start = {name: start_of(name, dimension, recipe) for name, dimension in space.items()}
    settings = {
        "recipe": json.loads(recipe.to_json()),
        "data": prepared.fingerprint,
        "search": described(space),
        **{name: getattr(arguments, name) for name in ("sampler", "pruner", "startup", "seed", "memory")},
    }
    url = arguments.storage or f"sqlite:///{(out / 'study.db').absolute().as_posix()}"
    return Plan(
        recipe=recipe,
        origin=arguments.origin if arguments.origin is None else _absolute(arguments.origin),
        space=space,
        place=Place(url, arguments.study or out.name),
        settings=settings,
        first=[start, *(point for point in points if point != start)],
        trials=min(arguments.trials or len(points), len(points)) if points else arguments.trials or TRIALS,
        memory=arguments.memory,
        share=arguments.workers,
    )


def _absolute(origin: str) -> str:
    """A path that holds in other processes, too; a hub's name is left alone."""
    return str(Path(origin).absolute()) if Path(origin).exists() else origin


# The folder


def _claim(out: Path, plan: Plan, embedded: bool) -> optuna.Study:
    """Make the folder this study's, or refuse; its study. A database is tried first, so that nothing is left of a wrong
    address."""
    state = {"study": plan.place.name, "storage": None if embedded else plan.place.shown, "settings": plan.settings}
    state = json.loads(json.dumps(state))
    _check_folder(out, state)
    study = None if embedded else plan.open()
    try:
        out.mkdir(parents=True, exist_ok=True)
        with FileLock(out / ".lock"):
            _check_folder(out, state)
            if not (out / STUDY).exists():
                write_whole(out / STUDY, json.dumps(state, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise ValueError(f"{out} cannot be written ({error.strerror}): give another --out") from error
    return study or plan.open()


def _check_folder(out: Path, state: dict[str, Any] | None) -> None:
    """Refuse a folder with other files or another study; without a state, only the first."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file: give a folder")
    if (out / STUDY).exists():
        held = json.loads((out / STUDY).read_text(encoding="utf-8"))
        if state is not None and held != state:
            raise ValueError(f"{out} holds another study, give another --out. What differs: {difference(held, state)}")
    elif out.exists() and any(path.name != ".lock" for path in out.iterdir()):
        raise ValueError(f"{out} exists and holds other files: give another --out")


# The work


def _started(plan: Plan, arguments: SweepArguments) -> Callable[[], bool]:
    """Start the workers; what is returned tells whether all have ended, and raises what made one fail."""
    if arguments.engine == "ray":
        from synvolution.experiments.sweep_ray import start

        return start(plan, arguments.workers, arguments.ray_address)
    from synvolution.experiments.sweep_worker import work

    # threads are enough: each waits for the process of its trial
    pool = ThreadPoolExecutor(arguments.workers)
    studies = [plan.open() for _ in range(arguments.workers)]
    futures = [pool.submit(work, plan, study) for study in studies]

    def ended() -> bool:
        for future in futures:
            if future.done():
                future.result()
        return all(future.done() for future in futures)

    return ended


def _follow(plan: Plan, study: optuna.Study, ended: Callable[[], bool], out: Path, console: Console) -> None:
    """Tell of every trial that ends, whoever ran it, until the workers end; ``trials.csv`` and ``best.json`` follow."""
    from synvolution.experiments.sweep_report import best_of, finished, line_of, write_files
    from synvolution.experiments.sweep_study import trials_of

    told = {trial.number for trial in finished(trials_of(study))}
    again = f", {len(told)} of them done before" if told else ""
    console.print(f"{plan.trials} trials over {', '.join(plan.space)}{again} → {out}", highlight=False, soft_wrap=True)
    with ExitStack() as stack:
        bar = _bar(console)
        if bar is not None:
            stack.enter_context(bar)
            task = bar.add_task("trials", total=plan.trials, completed=len(told))
        over = False
        while not over:
            over = ended()
            trials = trials_of(study)
            new = [trial for trial in finished(trials) if trial.number not in told]
            best = best_of(trials)
            for trial in new:
                console.print(line_of(trial, trial is best), highlight=False, soft_wrap=True)
            told |= {trial.number for trial in new}
            if new:
                write_files(out, plan, trials)
                if bar is not None:
                    bar.update(task, completed=len(told))
            if not over:
                time.sleep(0.3)


def _bar(console: Console) -> Progress | None:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True) if console.is_terminal else None


def _conclude(plan: Plan, study: optuna.Study, prepared: Prepared, out: Path, console: Console) -> None:
    """The last table, the pictures, and the command that trains the best."""
    from synvolution.experiments.sweep_plots import draw_history, draw_importances, importances
    from synvolution.experiments.sweep_report import BEST, best_of, finished, own_of, table_of, write_files
    from synvolution.experiments.sweep_study import REASON, trials_of

    trials = finished(trials_of(study))
    write_files(out, plan, trials)
    start, best = own_of(trials, plan.first[0]), best_of(trials)
    draw_history(trials, None if start is None else start.value, out / "history.png")
    draw_importances(importances(trials), out / "importances.png")
    if best is None:
        reasons = dict.fromkeys(str(trial.user_attrs.get(REASON)) for trial in trials)
        raise ValueError(f"none of {len(trials)} trials came to an end: {'; '.join(reasons)}")
    console.print(table_of(start, best, list(plan.space), len(prepared.splits["validation"])))
    stopped = sum(trial.state.name == "PRUNED" for trial in trials)
    failed = sum(trial.state.name == "FAIL" for trial in trials)
    console.print(f"{len(trials)} trials, {stopped} stopped early, {failed} failed; all in {out}", highlight=False)
    data = f" --data {plan.origin}" if plan.origin else ""
    console.print(f"synvolution train {out / BEST}{data}", highlight=False, soft_wrap=True)
