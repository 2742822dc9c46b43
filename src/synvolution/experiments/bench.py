"""``synvolution bench``: ratios of times, measured in one run on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from json import dumps
from pathlib import Path
from typing import Literal

import torch
import tyro
from rich.console import Console
from rich.table import Table

from synvolution.experiments import bench_gru, bench_layer, bench_model, bench_ops
from synvolution.experiments.paper_layers import paper_algorithm
from synvolution.experiments.timing import Row
from synvolution.info import describe

#: What can be measured. To add a benchmark, write a file with a function ``rows(repeats, quick)`` and add it here.
SUITES: dict[str, Callable[[int, bool], Iterator[Row]]] = {
    "ops": bench_ops.rows,
    "gru": bench_gru.rows,
    "layer": bench_layer.rows,
    "model": bench_model.rows,
}


def table_of(rows: list[Row], title: str) -> Table:
    """The results as a table.

    Example:
        >>> table_of([], "nothing measured").row_count
        0
    """
    table = Table(title=title)
    for name in ("measure", "size", "ours ms", "other ms", "value", "goal", ""):
        table.add_column(name, justify="left" if name in ("measure", "size") else "right")
    for row in rows:
        ours, other = ("" if ms is None else f"{ms:.2f}" for ms in (row.ours_ms, row.other_ms))
        verdict = "" if row.met is None else "[green]yes[/]" if row.met else "[red]no[/]"
        table.add_row(row.measure, row.size, ours, other, f"{row.value:.3g} {row.unit}".strip(), row.goal, verdict)
    return table


def bench(
    what: tyro.conf.Positional[Literal["ops", "gru", "layer", "model"]] = "ops",
    repeats: int = 7,
    quick: bool = False,
    json: Path | None = None,
) -> None:
    """Measure the operators against what they replace, as ratios of medians in one run.

    Args:
        what: What to measure: the unitary operator (ops), the recurrent layer (gru), the Kernelution layer (layer) or a
            whole training step (model).
        repeats: Timed runs of each side, after one warm-up; the median counts.
        quick: Tiny sizes, to see that it works: their numbers mean nothing.
        json: Also write the results, with the machine they come from, to this file.
    """
    if repeats < 1:
        raise ValueError(f"--repeats {repeats}: at least 1 run is needed")
    if json is not None and not json.absolute().parent.is_dir():
        raise ValueError(f"--json {json}: the folder {json.absolute().parent} does not exist")
    console = Console(width=None if sys.stdout.isatty() else 110)
    torch.manual_seed(0)
    rows: list[Row] = []
    with console.status("measuring …") as status:
        for row in SUITES[what](repeats, quick):
            rows.append(replace(row, goal="", met=None) if quick else row)
            status.update(f"measured {len(rows)}: {row.measure} {row.size}")
    machine = describe()
    console.print(table_of(rows, f"synvolution bench {what}: medians of {repeats}"))
    console.print("{processor}, {threads} threads, {instructions}, torch {torch}".format(**machine))
    if what != "gru" and paper_algorithm() is None:
        console.print("The paper's algorithm is measured only from a checkout (pip install -e .).")
    if json is not None:
        arguments = {"what": what, "repeats": repeats, "quick": quick}
        content = {"arguments": arguments, "machine": machine, "rows": [asdict(row) for row in rows]}
        json.write_text(dumps(content, indent=1) + "\n", encoding="utf-8")
        console.print(f"written: {json}")
