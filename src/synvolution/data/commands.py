"""``synvolution data``: list, prepare, show and verify data sets."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress as Bars
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from synvolution.data import pathfinder_task
from synvolution.data.base import TASKS, DataOptions, Prepared, cache_folder, prepare
from synvolution.data.prepared import is_whole
from synvolution.data.rows import SPLITS
from synvolution.data.sheet import contact_sheet, is_image, rows_in_turn
from synvolution.data.staging import Progress
from synvolution.data.verify import checks

#: Options without a prefix: --max-length, not --options.max-length. As many processes as there are processors.
Options = Annotated[DataOptions, tyro.conf.arg(name="")]
DEFAULTS = DataOptions(workers=os.cpu_count() or 1)


def list_tasks(cache: Path | None = None) -> None:
    """Show the tasks: what they are, where their data comes from, and which are prepared.

    Args:
        cache: Folder of prepared data; by default SYNVOLUTION_CACHE or the system's place for caches.
    """
    folder = cache_folder(cache) / "prepared"
    table = Table(title="Tasks", show_lines=True)
    for name in ("task", "what", "classes", "data"):
        table.add_column(name, no_wrap=name == "task", justify="right" if name == "classes" else "left")
    for name, task in TASKS.items():
        ready = sum(is_whole(path) for path in folder.glob(f"{name}-????????????")) if folder.is_dir() else 0
        state = f"[green]prepared ({ready})[/]; " if ready else ""
        table.add_row(name, task.description, str(task.num_classes), state + task.obtain)
    console = _console()
    console.print(table)
    console.print(f"cache: {cache_folder(cache)}", soft_wrap=True)


def prepare_data(
    task: tyro.conf.Positional[str],
    source: str | None = None,
    options: Options = DEFAULTS,
    cache: Path | None = None,
    offline: bool = False,
    mirror: str | None = None,
    refresh: bool = False,
    export: Path | None = None,
) -> None:
    """Prepare a task, or one's own file, folder or hub data set, and say what is in it.

    Args:
        task: Name of a task (synvolution data list), a file, a folder, or a data set of the Hugging Face hub.
        source: Where the task's files lie, or hub:NAME for a copy on the hub.
        cache: Folder of prepared data; by default SYNVOLUTION_CACHE or the system's place for caches.
        offline: Never use the network.
        mirror: Address with copies of the files to download; SYNVOLUTION_MIRROR is one, too.
        refresh: Prepare again even if it is there.
        export: Pathfinder only: also write the images to this folder in the layout of the release.
    """
    if export is not None and (task != "pathfinder" or source is not None):
        raise ValueError("--export writes drawn Pathfinder images: it goes with the task pathfinder without --source")
    console = _console()
    with _progress(console) as progress:
        data = prepare(task, source, options, cache, offline, mirror, refresh, progress)
    _describe(data, console)
    if export is not None:
        number = pathfinder_task.export(export, options)
        console.print(f"written: {number:,} images below {export}", soft_wrap=True)


def show(
    task: tyro.conf.Positional[str],
    source: str | None = None,
    options: Options = DEFAULTS,
    cache: Path | None = None,
    offline: bool = False,
    number: int = 24,
    out: Path | None = None,
) -> None:
    """Show some rows; of images write a contact sheet. Generated tasks are shown on a small number of samples.

    Args:
        task: Name of a task, a file, a folder, or a data set of the hub.
        source: Where the task's files lie, or hub:NAME.
        cache: Folder of prepared data.
        offline: Never use the network.
        number: How many rows; texts show the first few only.
        out: The contact sheet, a PNG file; by default TASK.png in this folder.
    """
    if not 1 <= number <= 1000:
        raise ValueError(f"--number {number}: 1 to 1000 rows are shown")
    if task in TASKS and TASKS[task].generated and source is None and options.samples is None:
        options = replace(options, samples=max(10 * number, 100), workers=1)
    console = _console()
    with _progress(console) as progress:
        data = prepare(task, source, options, cache, offline, progress=progress)
    _describe(data, console)
    if is_image(data):
        path = out or Path(f"{data.name}.png")
        contact_sheet(data, number).save(path)
        console.print(f"written: {path}", soft_wrap=True)
        return
    for row in data.splits["train"].select(rows_in_turn(data, min(number, 5))):
        label = data.splits["train"].features["label"].int2str(row["label"])
        console.print(f"[bold]{escape(label)}[/] ({row['length']} tokens)")
        for column in ("input_ids", "input_ids_pair"):
            if column in row:
                console.print(_excerpt(data, row[column]), markup=False, highlight=False, soft_wrap=True)


def verify(
    task: tyro.conf.Positional[str],
    source: str | None = None,
    options: Options = DEFAULTS,
    cache: Path | None = None,
    offline: bool = False,
) -> None:
    """Check prepared data on disk: fingerprint, counts, ids, labels, overlap of the splits. Prepares it if needed.

    Args:
        task: Name of a task, a file, a folder, or a data set of the hub.
        source: Where the task's files lie, or hub:NAME.
        cache: Folder of prepared data.
        offline: Never use the network.
    """
    console = _console()
    with _progress(console) as progress:
        data = prepare(task, source, options, cache, offline, progress=progress)
        found = list(checks(data))
    table = Table(title=escape(f"{data.name}: {data.fingerprint[:16]}"))
    for name in ("check", "found", ""):
        table.add_column(name)
    for check in found:
        table.add_row(
            check.name, check.found, "" if check.holds is None else "[green]yes[/]" if check.holds else "[red]no[/]"
        )
    console.print(table)
    wrong = [check.name for check in found if check.holds is False]
    if wrong:
        raise ValueError(f"{data.name} does not pass: {', '.join(wrong)}: prepare it again with --refresh")


def data(
    command: Annotated[
        Annotated[Any, tyro.conf.subcommand("list", constructor=list_tasks)]
        | Annotated[Any, tyro.conf.subcommand("prepare", constructor=prepare_data)]
        | Annotated[Any, tyro.conf.subcommand("show", constructor=show)]
        | Annotated[Any, tyro.conf.subcommand("verify", constructor=verify)],
        tyro.conf.OmitSubcommandPrefixes,
        tyro.conf.OmitArgPrefixes,
    ],
) -> None:
    """List, prepare, show and verify the tasks and one's own data."""


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 110)


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    """A line that counts what is read and written, on terminals."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        line = bars.add_task("preparing …", total=None)
        yield lambda what, number: bars.update(line, description=f"{number:,} {what}")


def _describe(data: Prepared, console: Console) -> None:
    facts = data.facts
    table = Table(title=escape(f"{data.name}: {data.fingerprint[:16]}"))
    for name in ("", *SPLITS):
        table.add_column(name, justify="right" if name else "left")
    table.add_row("rows", *(f"{facts['rows'][split]:,}" for split in SPLITS), style="bold")
    for name in data.classes[:20]:
        table.add_row(escape(name), *(f"{facts['classes'][split][name]:,}" for split in SPLITS))
    if len(data.classes) > 20:
        table.add_row(f"and {len(data.classes) - 20} classes more")
    console.print(table)
    length = facts["length"]
    console.print(f"source: {facts['source']}", soft_wrap=True, highlight=False, markup=False)
    console.print(f"split: {facts['split']}", soft_wrap=True, markup=False)
    console.print(
        f"tokens: {facts.get('tokens', facts['encoding'])}; lengths {length['min']} to {length['max']}, "
        f"mean {length['mean']}, {length['rows cut']:,} rows cut at {data.max_length}",
        soft_wrap=True,
    )
    if "columns" in facts:
        columns = ", ".join(f"{name} = {column}" for name, column in facts["columns"].items())
        console.print(f"columns: {columns}", soft_wrap=True, markup=False)
    for name in ("letters read as n", "tags stripped", "files with bytes that are no UTF-8"):
        if facts.get(name):
            console.print(f"{name}: {facts[name]:,}")
    for name in ("skipped", "duplicates"):
        found = ", ".join(f"{number:,} {what}" for what, number in facts[name].items() if number)
        console.print(f"{name}: {found or 'none'}", soft_wrap=True)


def _excerpt(data: Prepared, ids: list[int], longest: int = 300) -> str:
    text = str(data.processor.decode(ids[:longest]))  # type: ignore[union-attr]  # images do not come here
    text = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)  # nothing that steers a terminal
    return text + (" …" if len(ids) > longest else "")
