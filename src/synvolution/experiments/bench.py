"""``synvolution bench``: ratios of times, measured in one run on this machine; with --mixers, times and memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from json import dumps
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from synvolution.experiments import bench_gru, bench_layer, bench_mixers, bench_model, bench_ops
from synvolution.experiments.bench_mixers import MixerOptions
from synvolution.experiments.mixer_step import Measurement
from synvolution.experiments.paper_layers import paper_algorithm
from synvolution.experiments.timing import Row, check_device
from synvolution.info import describe
from synvolution.ops._backends import automatic

#: What can be measured. To add a benchmark, write a file with a function ``rows(repeats, quick)`` and add it here.
SUITES: dict[str, Callable[[int, bool], Iterator[Row]]] = {
    "ops": bench_ops.rows,
    "gru": bench_gru.rows,
    "layer": bench_layer.rows,
    "model": bench_model.rows,
}

MACHINE = "{processor}, {threads} threads, {instructions}, torch {torch}"


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
    device: str = "cpu",
    options: Annotated[MixerOptions, tyro.conf.arg(name="")] = MixerOptions(),  # noqa: B008 - it is frozen
) -> None:
    """Measure the operators against what they replace, as ratios of medians in one run.

    With "model --mixers all": time and peak memory of a training step of every mixer, and how they grow with N.

    Args:
        what: What to measure: the unitary operator (ops), the recurrent layer (gru), the Kernelution layer (layer) or a
            whole training step (model).
        repeats: Timed runs of each side, after one warm-up; the median counts. With --mixers: fewer for slow ones.
        quick: Tiny sizes, to see that it works: their numbers mean nothing.
        json: Also write the results, with the machine they come from, to this file.
        device: Where to measure: cpu, cuda (timed with CUDA's events), cuda:1, mps, … The goals are those of the CPU.
        options: Of the comparison of mixers.
    """
    if repeats < 1:
        raise ValueError(f"--repeats {repeats}: at least 1 run is needed")
    for name, path in (("json", json), ("plot", options.plot)):
        if path is not None and not path.absolute().parent.is_dir():
            raise ValueError(f"--{name} {path}: the folder {path.absolute().parent} does not exist")
    where = check_device(device)
    console = Console(width=None if sys.stdout.isatty() else 110)
    if options.mixers:
        if where.type != "cpu":
            raise ValueError(
                f"--device {device} with --mixers: mixers are compared on the CPU, in processes under limits"
            )
        if what != "model":
            raise ValueError(f"bench {what} --mixers: mixers are compared by synvolution bench model --mixers")
        compare_mixers(options, repeats, quick, json, console)
        return
    given = [f"--{field.name}" for field in fields(options) if getattr(options, field.name) != field.default]
    if given:
        raise ValueError(f"{', '.join(given)} without --mixers: say which, e.g. synvolution bench model --mixers all")
    with where:  # where torch makes its tensors
        compare_operators(what, repeats, quick, json, console)


def compare_operators(what: str, repeats: int, quick: bool, json: Path | None, console: Console) -> None:
    """Run one of the suites on torch's default device, show its rows and write them."""
    torch.manual_seed(0)
    device = torch.get_default_device()
    rows: list[Row] = []
    with console.status("measuring …") as status:
        for row in SUITES[what](repeats, quick):
            rows.append(replace(row, goal="", met=None) if quick or device.type != "cpu" else row)
            status.update(f"measured {len(rows)}: {row.measure} {row.size}")
    machine = describe()
    console.print(table_of(rows, f"synvolution bench {what}: medians of {repeats}"))
    console.print(MACHINE.format(**machine))
    if device.type != "cpu":
        console.print(f"on {device}: {machine['devices']}; backend {automatic(device)}")
    if what != "gru" and paper_algorithm() is None:
        console.print("The paper's algorithm is measured only from a checkout (pip install -e .).")
    if json is not None:
        arguments = {"what": what, "repeats": repeats, "quick": quick, "device": str(device)}
        content = {"arguments": arguments, "machine": machine, "rows": [asdict(row) for row in rows]}
        json.write_text(dumps(content, indent=1) + "\n", encoding="utf-8")
        console.print(f"written: {json}")


def compare_mixers(options: MixerOptions, repeats: int, quick: bool, json: Path | None, console: Console) -> None:
    """Measure mixers one after the other; each result is shown and written as it comes, also if interrupted."""
    names, lengths, settings = bench_mixers.settings_of(options, repeats, quick)
    plot = options.plot or (None if json is None else json.with_suffix(".png"))
    total, found = len(names) * len(set(lengths)), list[Measurement]()
    try:
        with console.status("measuring …") as status:

            def begin(name: str, length: int) -> None:
                status.update(f"measuring {name} at N = {length:,}: {len(found) + 1} of {total}")

            for measurement in bench_mixers.measurements(names, lengths, settings, begin):
                found.append(measurement)
                if json is not None:
                    bench_mixers.write_json(json, found, settings)
                console.print(f"{len(found):>3} of {total}  {escape(_told(measurement))}", highlight=False)
    finally:
        if found:
            show_mixers(found, console)
            console.print(MACHINE.format(**describe()))
        if found and plot is not None:
            bench_mixers.plot(plot, found)
        for path in (json, plot):
            if found and path is not None:
                console.print(f"written: {path}", highlight=False)


def _told(measurement: Measurement) -> str:
    name = f"{measurement.mixer:14} N = {measurement.length:<8,}"
    if measurement.ms is None or measurement.peak_bytes is None:
        return f"{name} {measurement.status}"
    return f"{name} {measurement.ms:10.1f} ms {measurement.peak_bytes / 2**20:10.1f} MiB"


def show_mixers(found: Sequence[Measurement], console: Console) -> None:
    """Two tables, of time and of memory, with the fitted exponents of N beside the stated ones."""
    titles = {"time": "ms per training step", "memory": "MiB at the worst moment of a step"}
    parts: tuple[Literal["time", "memory"], ...] = ("time", "memory")
    for part in parts:
        table = Table(title=f"{titles[part]}; exponents of N, fitted and stated")
        table.add_column("mixer", no_wrap=True)
        for name in (*(f"N = {n:,}" for n in sorted({m.length for m in found})), "fitted", "stated"):
            table.add_column(name, justify="right")
        for line in bench_mixers.lines_of(found, part):
            table.add_row(*line)
        console.print(table)
    console.print(bench_mixers.sentence_of(found), highlight=False)
