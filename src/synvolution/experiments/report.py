"""``synvolution report``: one page with all tables and charts of a folder of results, that needs nothing but itself."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

import tyro
from matplotlib.figure import Figure

from synvolution.experiments.figure_gibbs import draw_gibbs
from synvolution.experiments.outcomes import Outcome
from synvolution.experiments.overview_tables import ORDER, attention_table, kernel_table
from synvolution.experiments.paper_tables import accuracy_table, write_tables
from synvolution.experiments.published import published
from synvolution.experiments.report_charts import Looks, draw_bars, draw_costs, draw_curves, draw_scatter
from synvolution.experiments.report_looks import legend, looks_of
from synvolution.experiments.report_svg import inline_svg
from synvolution.experiments.results_folder import Results, column_of, read_results
from synvolution.experiments.run_table import hardware, run_table
from synvolution.experiments.tables import plain
from synvolution.training.checkpoints import write_whole

TITLE = "Converter: published and reproduced"
#: The page may style itself and do nothing else: no scripts, no network, no forms.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

#: A caption and what is drawn under it.
Drawing = tuple[str, Callable[[], Figure | None]]


def report(results: tyro.conf.Positional[Path], out: Path | None = None) -> None:
    """Make one page of a folder of results: tables, learning curves, accuracy against cost, ablations, growth of costs.

    The page needs no network and no scripts. The tables are also written beside it, as tables/NAME.md, .tex and .csv.

    Args:
        results: Folder that reproduce wrote: runs/TABLE/TASK/ROW-SEED.json, and complexity.json if costs were measured.
        out: File of the page; by default report.html in that folder.
    """
    page = out or results / "report.html"
    found = read_results(results)
    if page.is_dir():
        raise ValueError(f"--out {page} is a folder: give a file, e.g. {page / 'report.html'}")
    page.parent.mkdir(parents=True, exist_ok=True)
    tables = write_tables(results, page.parent)
    write_whole(page, page_of(found))
    print(f"written: {page}")
    print(f"written: {len(tables)} files in {tables[0].parent}")


def page_of(results: Results) -> str:
    """The whole page; the same results give the same page.

    Args:
        results: outcomes and costs.
    """
    style = resources.files("synvolution.experiments").joinpath("report.css").read_text(encoding="utf-8")
    rows = [run.row for run in results.outcomes]
    rows += [] if results.complexity is None else [m.mixer for m in results.complexity.measurements]
    looks = looks_of(rows)
    parts: dict[str, tuple[str, str]] = {}
    for budget in results.budgets():
        parts[f"budget-{budget}"] = f"Budget {budget}", _budget(results, budget, looks)
    parts["costs"] = "Growth of costs", _costs(results, looks)
    parts["kernels"] = "Damping kernels", _kernels()
    if results.outcomes:
        parts["runs"] = "Runs", run_table(results.outcomes).to_html()
    links = "".join(f'<li><a href="#{key}">{html.escape(name)}</a></li>' for key, (name, _) in parts.items())
    sections = "".join(f'<h2 id="{key}">{html.escape(name)}</h2>\n{text}' for key, (name, text) in parts.items())
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{TITLE}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n<h1>{TITLE}</h1>\n"
        f"{_summary(results)}<nav><ul>{links}</ul></nav>\n{sections}</main>\n</body>\n</html>\n"
    )


def _summary(results: Results) -> str:
    runs = results.outcomes
    if not runs:
        return "<p>No runs yet: costs of mixers alone.</p>\n"
    failed = sum(run.results is None for run in runs)
    minutes = sum(run.cpu_seconds or 0.0 for run in runs) / 60
    finished = [run.results for run in runs if run.results is not None]
    places = "; ".join(dict.fromkeys(filter(None, map(hardware, finished)))) or "unknown hardware"
    commits = ", ".join(dict.fromkeys(str(found.get("commit") or "an installed package") for found in finished)) or "–"
    text = (
        f"{len(runs):,} runs, {failed:,} of them failed; {minutes / 60:,.1f} hours of processor time on {places}; "
        f"commit {commits}. Budgets are never mixed in a table or chart; stand-ins never stand beside published "
        "numbers."
    )
    return f"<p>{html.escape(plain(text))}</p>\n"


def _budget(results: Results, budget: str, looks: Looks) -> str:
    parts = []
    for name in published().accuracy:
        if runs := results.of(name, budget):
            parts.append(accuracy_table(name, budget, runs).to_html())
            parts.append(_charts_of(name, budget, runs, looks))
    return "".join(parts)


def _charts_of(name: str, budget: str, runs: Sequence[Outcome], looks: Looks) -> str:
    """The charts of every task of a table."""
    tasks, found = published().accuracy[name].tasks, {column_of(run) for run in runs}
    text, narrow = "", " three" if name == "ablations" else ""
    for place, task in enumerate([*(task for task in tasks if task in found), *sorted(found - tasks.keys())]):
        own = [run for run in runs if column_of(run) == task]
        label = f"{tasks.get(task, f'{task} (no published numbers)')}, budget {budget}"
        drawings = enumerate(_drawings(name, task, own, looks))
        charts = "".join(_chart(f"{name}-{budget}-{place}-{n}", label, *drawing) for n, drawing in drawings)
        if charts:
            text += f'<h4>{html.escape(plain(label))}</h4>\n<div class="charts{narrow}">\n{charts}</div>\n'
            text += legend((run.row for run in own), looks)
    return text


def _drawings(name: str, task: str, runs: Sequence[Outcome], looks: Looks) -> list[Drawing]:
    """Captions and drawings of one task's runs."""
    # nothing for a task that is not published
    printed = {row.row: row.values[task] for row in published().accuracy[name].rows if task in row.values}
    steps: Drawing = ("Validation accuracy over steps", lambda: draw_curves(runs, looks, "step"))
    if all(run.cpu_seconds is not None for run in runs if run.results is not None):
        curves = [steps, ("Validation accuracy over processor time", lambda: draw_curves(runs, looks, "minutes"))]
    else:
        curves = [steps, ("Validation accuracy over epochs", lambda: draw_curves(runs, looks, "epoch"))]
    if name == "ablations":
        return [("Test accuracy of the ablations", lambda: draw_bars(runs, looks, printed)), *curves]
    line = printed.get("kernelution")
    return [
        *curves,
        ("Test accuracy against processor time", lambda: draw_scatter(runs, looks, "minutes", line)),
        ("Test accuracy against parameters", lambda: draw_scatter(runs, looks, "parameters", line)),
    ]


def _costs(results: Results, looks: Looks) -> str:
    text, complexity = attention_table(results.complexity).to_html(), results.complexity
    if complexity is None:
        return text
    found = complexity.measurements
    charts = "".join(
        [
            _chart("costs-time", "Mixers", "Time of a training step", lambda: draw_costs(found, looks, "time")),
            _chart(
                "costs-memory", "Mixers", "Peak memory of a training step", lambda: draw_costs(found, looks, "memory")
            ),
        ]
    )
    return f'{text}<div class="charts">\n{charts}</div>\n{legend((m.mixer for m in found), looks)}'


def _kernels() -> str:
    title = f"A step under the seven damping kernels, degree K = {ORDER}: overshoot and steepness; numbers in the table"
    svg = inline_svg(lambda: draw_gibbs(ORDER), "gibbs", title, mathematics=True)
    return f'{kernel_table().to_html()}<figure class="wide">{svg}</figure>\n'


def _chart(key: str, what: str, caption: str, draw: Callable[[], Figure | None]) -> str:
    """A chart with its caption; nothing where there is nothing to draw."""
    svg = inline_svg(draw, key, plain(f"{what}: {caption}"))
    return f"<figure><figcaption>{html.escape(caption)}</figcaption>{svg}</figure>\n" if svg else ""
