"""The table "runs": one line per run, with all that is needed to judge it or do it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from synvolution.experiments.outcomes import Outcome
from synvolution.experiments.tables import Cell, Column, Row, Table, plain

#: Longest reason of a failure that is shown.
LONGEST = 300

COLUMNS = (
    *(Column(label, "text") for label in ("table", "task", "row")),
    *(Column(label) for label in ("seed", "budget", "steps", "epochs", "CPU minutes", "parameters")),
    *(Column(label) for label in ("validation", "test", "interval", "test rows", "selected")),
    *(Column(label, "text") for label in ("commit", "hardware", "command")),
)


def run_table(outcomes: Sequence[Outcome]) -> Table:
    """Every run, failed ones too.

    Example:
        >>> run = Outcome(table="lra", task="text", row="fnet", seed=3, budget="cpu", command="again", error="why")
        >>> table = run_table([run])
        >>> [cell.value for cell in table.rows[0].cells][:5], table.footnotes
        (['lra', 'text', 'fnet', '3', 'cpu'], ('why',))
    """
    footnotes: list[str] = []
    rows = []
    for run in outcomes:
        marks: tuple[int, ...] = ()
        if run.results is None:
            footnotes.append(why_failed(run))
            marks = (len(footnotes),)
        head = (run.table, run.task, run.row, str(run.seed), run.budget)
        minutes = "–" if run.cpu_seconds is None else f"{run.cpu_seconds / 60:.1f}"
        cells = [*map(Cell, head), *_numbers(run.results or {}, minutes), Cell(run.command)]
        if marks:
            cells[10] = Cell("failed", marks=marks)
        rows.append(Row(tuple(cells)))
    note = (
        "Accuracies in percent; CPU minutes are processor time over all threads, from reading the data to the test. "
        "Selected: the step whose model was tested, of those trained.",
    )
    return Table("runs", "The runs", COLUMNS, tuple(rows), note, tuple(footnotes))


def _numbers(results: dict[str, Any], minutes: str) -> list[Cell]:
    """The cells from steps to hardware."""
    selection, scores = results.get("selection") or {}, results.get("scores") or {}
    test, validation = scores.get("test") or {}, scores.get("validation") or {}
    interval = "–".join(f"{100 * bound:.2f}" for bound in test.get("interval", ())) or "–"
    texts = [
        _shown(selection.get("steps"), ","),
        _shown(selection.get("epochs"), ".1f"),
        minutes,
        _shown(results.get("parameters"), ","),
        _shown(validation.get("accuracy"), ".2f", 100),
        _shown(test.get("accuracy"), ".2f", 100),
        interval,
        _shown(test.get("rows"), ","),
        _shown(selection.get("step"), ","),
        str(results.get("commit") or "–"),
        hardware(results) or "–",
    ]
    return list(map(Cell, texts))


def _shown(value: Any, form: str, factor: int = 1) -> str:
    return format(factor * value, form) if isinstance(value, (int, float)) else "–"


def hardware(results: dict[str, Any]) -> str:
    """Processor, threads and devices of a run.

    Example:
        >>> hardware({"machine": {"processor": "a CPU", "threads": "2", "devices": "cpu"}})
        'a CPU, 2 threads, cpu'
    """
    machine = results.get("machine") or {}
    parts = (machine.get("processor"), f"{machine.get('threads', '?')} threads", machine.get("devices"))
    return ", ".join(filter(None, parts)) if machine else ""


def why_failed(outcome: Outcome) -> str:
    """The last line of what a failed run said.

    Example:
        >>> said = "Traceback\\n\\nb: c\\n"
        >>> why_failed(Outcome(table="lra", task="text", row="fnet", seed=0, budget="cpu", command="", error=said))
        'b: c'
    """
    lines = [plain(line) for line in str(outcome.error or "").splitlines()]
    reason = next((line for line in reversed(lines) if line), "no reason was recorded")
    return reason if len(reason) <= LONGEST else f"{reason[: LONGEST - 1]}…"
