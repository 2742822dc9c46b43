"""The paper's tables with our numbers beside the published ones, and the files ``tables/NAME.{md,tex,csv}``.

Budgets are never mixed: every table of accuracies is of one budget, which is part of its name ("lra-cpu"). A published
number stands only beside the published task; small relatives and stand-ins have columns of their own.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from synvolution.experiments.outcomes import Outcome
from synvolution.experiments.overview_tables import attention_table, kernel_table
from synvolution.experiments.published import PublishedRow, PublishedTable, published
from synvolution.experiments.results_folder import Results, by_row_and_column, read_results
from synvolution.experiments.run_table import hardware, run_table, why_failed
from synvolution.experiments.tables import Cell, Column, Row, Table
from synvolution.training.checkpoints import write_whole

TABLES = "tables"
NOT_RUN, NOT_PUBLISHED, FAILED = "–", "not published", "failed"

#: Rows that are ours alone, in order; others follow by name.
OWN = {
    "kernelution": "Converter",
    "synvolution": "Converter, Synvolution",
    "plus": "Converter plus",
    "none": "no mixer (control)",
    "nope-none": "neither mixer nor RPE (control)",
    "gru": "GRU alone (control)",
    "s4d": "S4D",
}


class Footnotes:
    """Numbers footnotes; the same text keeps its number.

    Example:
        >>> notes = Footnotes()
        >>> notes.mark("a"), notes.mark("b"), notes.mark("a")
        ((1,), (2,), (1,))
    """

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> tuple[int, ...]:
        """The mark of a footnote."""
        if text not in self.texts:
            self.texts.append(text)
        return (self.texts.index(text) + 1,)


def all_tables(results: Results) -> list[Table]:
    """Every table of a folder: accuracies by budget, costs, kernels, runs."""
    names = [(name, budget) for name in published().accuracy for budget in results.budgets(name)]
    tables = [accuracy_table(name, budget, results.of(name, budget)) for name, budget in names]
    tables += [attention_table(results.complexity), kernel_table()]
    return [*tables, run_table(results.outcomes)] if results.outcomes else tables


def write_tables(folder: Path, out: Path | None = None) -> list[Path]:
    """Write ``tables/NAME.md``, ``.tex`` and ``.csv`` from the results in a folder.

    Args:
        folder: of results.
        out: where ``tables`` is made; by default in the folder itself.

    Returns:
        The files, none ever half written.
    """
    tables = all_tables(read_results(folder))
    place = (out or folder) / TABLES
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for table in tables:
        for suffix, text in (("md", table.to_markdown()), ("tex", table.to_latex()), ("csv", table.to_csv())):
            written.append(place / f"{table.name}.{suffix}")
            write_whole(written[-1], text)
    return written


def accuracy_table(name: str, budget: str, outcomes: Sequence[Outcome]) -> Table:
    """One of the paper's tables of accuracies, with the runs of one budget.

    Args:
        name: "lra", "longdoc", "dna" or "ablations".
        budget: of all the outcomes.
        outcomes: runs of this table.

    Example:
        >>> table = accuracy_table("dna", "cpu", [])
        >>> table.name, table.rows[-1].cells[1].published, table.rows[-1].cells[1].value
        ('dna-cpu', '84.59', '–')
    """
    cells = by_row_and_column(outcomes)
    printed, notes = _printed(name, cells.keys()), Footnotes()
    own_columns = sorted({column for _, column in cells} - printed.tasks.keys())
    columns = [Column("Model", "text"), *(Column(label, "compared") for label in printed.tasks.values())]
    columns += [Column("Avg.", "compared")] if printed.averaged else []
    columns += [Column(label) for label in own_columns]
    rows = []
    for section, entry in _entries(printed, {run.row for run in outcomes}):
        numbers = ((cells.get((entry.row, task), []), entry.values.get(task)) for task in printed.tasks)
        row = [
            Cell(entry.name.removesuffix(" (ours)")),
            *(_cell(runs, notes, _percent(value)) for runs, value in numbers),
        ]
        row += [_average(entry, printed, cells, notes)] if printed.averaged else []
        row += [_cell(cells.get((entry.row, task), []), notes) for task in own_columns]
        rows.append(Row(tuple(row), section))
    title = f"{printed.title}: {'published and ours' if printed.tasks else 'relatives of its tasks'}, budget {budget}"
    note = _note(budget, outcomes, own_columns, bool(printed.tasks))
    return Table(f"{name}-{budget}", title, tuple(columns), tuple(rows), note, tuple(notes.texts))


def _printed(name: str, found: Collection[tuple[str, str]]) -> PublishedTable:
    """The paper's table; without its tasks, and with the rows that were run, if none of its tasks was run."""
    printed, rows = published().accuracy[name], {row for row, _ in found}
    if not found or any(column in printed.tasks for _, column in found):
        return printed
    kept = tuple(PublishedRow(entry.row, entry.name, {}) for entry in printed.rows if entry.row in rows)
    return PublishedTable(printed.label, printed.title, {}, kept)


def _entries(printed: PublishedTable, found: set[str]) -> list[tuple[str, PublishedRow]]:
    """Section and row, in order: the paper's, ours, those of other papers."""
    known = {entry.row for entry in (*printed.rows, *printed.elsewhere)}
    own = [*(name for name in OWN if name in found), *sorted(found - OWN.keys())]
    return [
        *(("", entry) for entry in printed.rows),
        *(("ours alone", PublishedRow(name, OWN.get(name, name), {})) for name in own if name not in known),
        *(("not in the paper: as published elsewhere", entry) for entry in printed.elsewhere),
    ]


def _percent(value: float | None) -> str:
    return NOT_PUBLISHED if value is None else f"{value:.2f}"


def _cell(runs: Sequence[Outcome], notes: Footnotes, beside: str = "") -> Cell:
    """The runs of one row on one task: one with its interval, several with mean and standard deviation."""
    marks: list[int] = []
    for run in runs:
        if run.results is None:
            marks += notes.mark(f"{run.row} on {run.task}, seed {run.seed} failed: {why_failed(run)}")
    scores = [100 * run.accuracy for run in runs if run.accuracy is not None]
    if not scores:
        beside = beside if runs or beside != NOT_PUBLISHED else ""
        return Cell(FAILED if runs else NOT_RUN, published=beside, marks=tuple(marks))
    if len(scores) > 1:
        detail = f"± {statistics.stdev(scores):.2f}, {len(scores)} seeds"
    else:
        low, high = next(run.interval for run in runs if run.interval is not None)
        detail = f"{100 * low:.2f}–{100 * high:.2f}"
    return Cell(f"{statistics.mean(scores):.2f}", detail, beside, tuple(marks))


def _average(
    entry: PublishedRow, printed: PublishedTable, cells: dict[tuple[str, str], list[Outcome]], notes: Footnotes
) -> Cell:
    """The mean over the tasks, ours only where all of them were run."""
    marks = notes.mark(f"{entry.name}: {entry.average_remark}") if entry.average_remark else ()
    means = []
    for task in printed.tasks:
        found = [run.accuracy for run in cells.get((entry.row, task), []) if run.accuracy is not None]
        means += [100 * statistics.mean(found)] if found else []
    value = f"{statistics.mean(means):.2f}" if len(means) == len(printed.tasks) else NOT_RUN
    beside = _percent(entry.average) if entry.average is not None or value != NOT_RUN else ""
    return Cell(value, published=beside, published_marks=marks)


def _note(budget: str, outcomes: Sequence[Outcome], own_columns: Sequence[str], compared: bool) -> tuple[str, ...]:
    finished = [run.results for run in outcomes if run.results is not None]
    rules = _listed((run.get("selection") or {}).get("rule") for run in finished)
    commits = _listed(run.get("commit") or "an installed package" for run in finished)
    seeds = _listed(str(run.seed) for run in sorted(outcomes, key=lambda run: run.seed))
    paragraphs = [
        f"{'In each cell the published number and ours' if compared else 'Ours'}, budget {budget}; with ours the 95 % "
        "interval of one run over its test rows, or standard deviation and number of seeds. – not run; not published: "
        "nobody printed such a number; failed: the footnote says why. Ours is averaged only where all tasks were run.",
    ]
    if own_columns:
        paragraphs.append(
            f"{', '.join(own_columns)}: small relatives, parts or stand-ins of the published tasks, or other settings; "
            "no published number can be compared with them."
        )
    paragraphs.append(
        f"Selected by: {rules or 'unknown'}. Seeds: {seeds or 'none'}. Commit: {commits or 'unknown'}. Hardware: "
        f"{_listed(map(hardware, finished)) or 'unknown'}. Steps, epochs, minutes and commands: table runs."
    )
    return tuple(paragraphs)


def _listed(values: Iterable[str | None]) -> str:
    return "; ".join(dict.fromkeys(str(value) for value in values if value))
