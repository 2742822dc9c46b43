"""The grid of runs behind the paper's tables: which rows on which tasks, and the recipe of each, by budget.

"full" is the paper's setting, for a machine with a GPU. "cpu" trains on the real tasks for so many minutes of processor
time each, the same for every row. "quick" is a tour of minutes on small relatives: it shows that all of it works.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from synvolution.data.options import DataOptions
from synvolution.experiments.relatives import MADE, make
from synvolution.nn.mixers import MIXERS
from synvolution.recipes import RECIPES, Recipe, baseline_recipe, plus

Budget = Literal["quick", "cpu", "full"]
#: Tables of accuracies.
TABLES = ("lra", "longdoc", "dna", "ablations")


@dataclass(frozen=True)
class GridTask:
    """A task as a table has it.

    Args:
        recipe: whose sizes and rates are used.
        places: where its files may lie in the folder of data, the first that exists is taken; none: it is generated,
            or fetched.
        own: whether the files are read as one's own data rather than as the benchmark's.
        task: data of another task than the recipe's.
        plus: whether every row has our settings (:func:`~synvolution.recipes.plus`) in place of the paper's.
        options: of the data, besides the recipe's.
    """

    recipe: str
    places: tuple[str, ...] = ()
    own: bool = False
    task: str | None = None
    plus: bool = False
    options: DataOptions = field(default_factory=DataOptions)


_LONG = DataOptions(max_length=16_384, validation=0.2, test=0.2)
_SHORT = DataOptions(max_length=1024)
_LRA = {
    "listops": GridTask("listops", ("listops",)),
    "text": GridTask("text", ("text", "imdb/aclImdb.tar.xz", "imdb", "aclImdb")),
    "retrieval": GridTask("retrieval", ("retrieval", "aan")),
    "image": GridTask("image", ("image", "cifar10/cifar10_gray.npz", "cifar10")),
    "pathfinder": GridTask("pathfinder", ("pathfinder",)),
}
_LRA_QUICK = {
    "listops-quick": GridTask("listops-quick", options=DataOptions(samples=3000)),
    "text-made": GridTask("text", own=True),
    "retrieval-made": GridTask("retrieval", own=True, options=DataOptions(pair_column="text2")),
    "image-made": GridTask("image", own=True, options=DataOptions(pixels="value")),
    "pathfinder-small": GridTask("pathfinder", options=DataOptions(samples=600, difficulty="easy", image_size=32)),
}
#: Tasks of each table by budget. Where the published data has no stand-in of its name, a relative has its own column.
GRID_TASKS: dict[str, dict[str, dict[str, GridTask]]] = {
    "quick": {
        "lra": _LRA_QUICK,
        "longdoc": {"longdoc-made": GridTask("longdoc16k", own=True, options=_SHORT)},
        "dna": {"dna-made": GridTask("ensembl-bs", own=True, options=_SHORT)},
        "ablations": {"listops-quick": _LRA_QUICK["listops-quick"]},
    },
    "cpu": {
        "lra": {
            **{name: task for name, task in _LRA.items() if name != "pathfinder"},
            "image-ends": replace(_LRA["image"], plus=True),
            "pathfinder-20k": GridTask("pathfinder", options=DataOptions(samples=20_000)),
        },
        "longdoc": {"arxiv-cs": GridTask("longdoc16k", ("longdoc/arxiv_cs.jsonl.xz",), own=True, options=_LONG)},
        "dna": {
            "yeast": GridTask(
                "ensembl-bs", ("dna/yeast_orthologs.tsv.xz",), own=True, options=replace(_LONG, group_column="ortholog")
            ),
            "bacteria": GridTask("ensembl-bs", ("dna/bacteria_phyla.tsv.xz",), own=True, options=_LONG),
        },
        "ablations": {
            "listops": _LRA["listops"],
            "listops-ends": replace(_LRA["listops"], plus=True),
            "listops-quick": GridTask("listops", task="listops-quick"),
        },
    },
    "full": {
        "lra": _LRA,
        "longdoc": {name: GridTask(name, (name, "longdoc")) for name in ("longdoc16k", "longdoc32k")},
        "dna": {name: GridTask(name, (name, "ensembl")) for name in ("ensembl-bs", "ensembl-mr")},
        "ablations": _LRA,
    },
}

_LRA_BASELINES = (
    *("vanilla", "sparse", "reformer", "longformer", "linformer", "bigbird", "linear", "sinkhorn", "performer"),
    *("synthesizer", "nystromformer", "luna", "fnet", "cosformer", "paramixer"),
)
_LONG_BASELINES = (
    *("vanilla", "linformer", "performer", "synthesizer", "nystromformer", "fnet", "cosformer", "paramixer"),
)
#: Rows of the table of ablations, as changes of the model.
ABLATIONS: dict[str, dict[str, Any]] = {
    "kernelution": {},
    "nope": {"position": "none"},
    "spe": {"position": "spe"},
    "ape": {"position": "ape"},
    "synvolution": {"mixer": "synvolution"},
    "no-kpl": {"eta": 0.0},
}
#: The control of "w/ NoPE": what is left without mixer and without GRU. Against it "w/ NoPE" shows the mixer alone.
CONTROLS: dict[str, dict[str, Any]] = {"nope-none": {"position": "none", "mixer": "none"}}
_FEW = ("kernelution", "none")
#: Rows of each table that are run if none are named.
GRID_ROWS: dict[str, dict[str, tuple[str, ...]]] = {
    "quick": {
        "lra": ("kernelution", "none", "vanilla", "fnet"),
        "longdoc": _FEW,
        "dna": _FEW,
        "ablations": tuple(ABLATIONS),
    },
    "cpu": {
        "lra": ("kernelution", "plus", "none", "vanilla", "fnet"),
        "longdoc": _FEW,
        "dna": _FEW,
        "ablations": (*ABLATIONS, "none", *CONTROLS),
    },
    "full": {
        "lra": (*_LRA_BASELINES, "kernelution", "plus", "none"),
        "longdoc": (*_LONG_BASELINES, "kernelution", "none"),
        "dna": (*_LONG_BASELINES, "kernelution", "none"),
        "ablations": (*ABLATIONS, "none", *CONTROLS),
    },
}
#: What a row can be: a mixer, an ablation, the recurrent layer alone, or our own settings.
ROWS = tuple(dict.fromkeys((*MIXERS, *ABLATIONS, *CONTROLS, "gru", "plus")))

#: Sequences per step where processor time is short: more and smaller steps.
CPU_BATCH = 32


@dataclass(frozen=True)
class Cell:
    """One run of the grid."""

    table: str
    task: str
    row: str
    seed: int
    budget: Budget

    def command(self, rest: str = "") -> str:
        """What does this run alone.

        Example:
            >>> Cell("lra", "image", "fnet", 1, "cpu").command()
            'synvolution reproduce lra --budget cpu --tasks image --mixers fnet --seeds 1'
        """
        which = f"--tasks {self.task} --mixers {self.row} --seeds {self.seed}"
        return f"synvolution reproduce {self.table} --budget {self.budget} {which}{rest}"


def cells(
    tables: Iterable[str],
    budget: Budget,
    tasks: Sequence[str] = (),
    rows: Sequence[str] = (),
    seeds: Sequence[int] = (0,),
) -> list[Cell]:
    """The runs asked for, one seed after the other, in the order of the tables.

    Example:
        >>> [cell.row for cell in cells(["dna"], "cpu", tasks=["yeast"])]
        ['kernelution', 'none']
    """
    tables = list(tables)
    known = [task for table in tables for task in GRID_TASKS[budget][table]]
    _check("task", tasks, known)
    _check("mixer", rows, ROWS)
    return [
        Cell(table, task, row, seed, budget)
        for seed in dict.fromkeys(seeds)
        for table in tables
        for task in GRID_TASKS[budget][table]
        if not tasks or task in tasks
        for row in rows or _rows(table, task, budget)
    ]


def _rows(table: str, task: str, budget: Budget) -> tuple[str, ...]:
    """The rows of a task if none are named: where all have our settings, "plus" would be Converter once more."""
    plus_everywhere = GRID_TASKS[budget][table][task].plus
    return tuple(row for row in GRID_ROWS[budget][table] if row != "plus" or not plus_everywhere)


def _check(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 2)
            hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            raise ValueError(f"unknown {what} {name!r}: {hint}Here: {', '.join(dict.fromkeys(known))}")


def recipe_of(cell: Cell) -> Recipe:
    """The recipe of a run; for "cpu" still without its number of steps, which depends on the machine.

    Example:
        >>> recipe_of(Cell("ablations", "listops", "spe", 0, "cpu")).model.position
        'spe'
    """
    task = GRID_TASKS[cell.budget][cell.table][cell.task]
    recipe = _row(task, cell.row, cell.budget)
    training = replace(recipe.training, seed=cell.seed)
    data = replace(task.options, seed=recipe.data.seed)
    recipe = replace(recipe, training=training, data=data, task=None if task.own else task.task or recipe.task)
    return {"full": lambda r: r, "cpu": _short_of_time, "quick": _tiny}[cell.budget](recipe)


def _row(task: GridTask, row: str, budget: Budget) -> Recipe:
    recipe = RECIPES[task.recipe]
    if task.plus or row == "plus":
        recipe = plus(recipe)
    if row == "plus":
        return recipe
    if row == "gru":
        return replace(recipe, model=replace(recipe.model, num_layers=0))
    if row in (changes := ABLATIONS | CONTROLS):
        return replace(recipe, model=replace(recipe.model, **changes[row]))
    if budget == "full":
        return baseline_recipe(task.recipe, row)
    return replace(recipe, model=replace(recipe.model, mixer=row))


def _short_of_time(recipe: Recipe) -> Recipe:
    batch = min(recipe.training.batch_size, CPU_BATCH)
    return replace(recipe, training=replace(recipe.training, batch_size=batch, patience=0))


def _tiny(recipe: Recipe) -> Recipe:
    heads = min(recipe.model.num_heads, 2)
    model = replace(recipe.model, hidden_size=16, intermediate_size=32, num_heads=heads)
    training = replace(recipe.training, batch_size=16, learning_rate=0.005, max_steps=160, patience=0, log_every=5)
    return replace(recipe, model=model, training=training)


def origin_of(cell: Cell, data: Path | None, folder: Path) -> str | None:
    """Where the data of a run is: made now, found below the folder of data, or None for the task's own way.

    Args:
        cell: the run.
        data: folder with the files of the tasks.
        folder: where made data is written.
    """
    if cell.task in MADE:
        return str(make(cell.task, folder))
    task = GRID_TASKS[cell.budget][cell.table][cell.task]
    for place in task.places if data is not None else ():
        assert data is not None
        if (data / place).exists():
            return str(data / place)
    if task.own:
        raise ValueError(f"{cell.task} needs {task.places[0]}: give the folder that holds it with --data")
    return None
