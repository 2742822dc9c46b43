"""The charts of a report, as matplotlib figures; None where there is nothing to draw."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Literal, TypeGuard

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from synvolution.experiments.mixer_step import OK, Measurement
from synvolution.experiments.outcomes import Outcome
from synvolution.experiments.report_looks import Look
from synvolution.experiments.report_svg import FOREGROUND

SIZE = (4.6, 3.0)
PUBLISHED = "#808080"
BARS = "#0072B2"
Looks = dict[str, Look]


def short(value: float, _: object = None) -> str:
    """A number for an axis.

    Example:
        >>> short(0.5), short(20), short(33_000), short(2_500_000)
        ('0.5', '20', '33k', '2.5M')
    """
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def draw_curves(runs: Sequence[Outcome], looks: Looks, over: Literal["step", "epoch", "minutes"]) -> Figure | None:
    """Validation accuracy in training, a line per run; runs of one row look the same.

    Args:
        runs: of one task.
        looks: of the rows.
        over: steps, epochs, or minutes of the processor, a run's being shared out evenly over its steps.
    """
    lines = [(looks[run.row], curve) for run in runs if (curve := curve_of(run, over))]
    if not lines:
        return None
    figure, axes = _chart("validation accuracy, %")
    for look, curve in sorted(lines, key=lambda line: line[0].width):
        axes.plot(
            *zip(*curve, strict=True),
            color=look.colour,
            linewidth=look.width,
            dashes=look.dashes or (None, None),
            marker=look.marker,
            markersize=3,
            markevery=max(1, len(curve) // 6),
        )
    axes.set_xlabel({"step": "steps", "epoch": "epochs", "minutes": "CPU minutes, shared evenly over the steps"}[over])
    axes.xaxis.set_major_formatter(FuncFormatter(short))
    return figure


def curve_of(run: Outcome, over: str) -> list[tuple[float, float]]:
    """Places and validation accuracies in percent, where both are known.

    Example:
        >>> history = [{"step": 10, "validation_accuracy": 0.25}, {"step": 20, "loss": 1.0}]
        >>> run = Outcome(table="lra", task="t", row="r", seed=0, budget="cpu", command="", history=history)
        >>> curve_of(run, "step"), curve_of(run, "minutes")
        ([(10.0, 25.0)], [])
    """
    key, scale = over, 1.0
    if over == "minutes":
        steps = [entry["step"] for entry in run.history if _finite(entry.get("step"))]
        total = ((run.results or {}).get("selection") or {}).get("steps") or max(steps, default=0)
        if run.cpu_seconds is None or not total:
            return []
        key, scale = "step", run.cpu_seconds / 60 / total
    known = [(entry.get(key), entry.get("validation_accuracy")) for entry in run.history]
    return [(scale * float(x), 100 * float(y)) for x, y in known if _finite(x) and _finite(y)]


def draw_scatter(
    runs: Sequence[Outcome], looks: Looks, against: Literal["minutes", "parameters"], printed: float | None = None
) -> Figure | None:
    """Test accuracy against cost, a point per row (mean of its seeds) with its interval (one seed) or spread.

    Args:
        runs: of one task.
        looks: of the rows.
        against: minutes of the processor, or parameters.
        printed: the paper's accuracy of Converter in percent, a dashed line.
    """
    cost: dict[str, Callable[[Outcome], float | None]] = {
        "minutes": lambda run: None if run.cpu_seconds is None else run.cpu_seconds / 60,
        "parameters": lambda run: run.parameters,
    }
    rows: dict[str, list[tuple[float, Outcome]]] = {}
    for run in runs:
        place = cost[against](run)
        if run.accuracy is not None and place is not None and place > 0:
            rows.setdefault(run.row, []).append((place, run))
    if not rows:
        return None
    figure, axes = _chart("test accuracy, %")
    for row, found in rows.items():
        look, (middle, low, high) = looks[row], spread_of([run for _, run in found])
        place, bars = statistics.mean(x for x, _ in found), [[middle - low], [high - middle]]
        axes.errorbar(
            [place], [middle], yerr=bars, fmt=look.marker, color=look.colour, markersize=6, elinewidth=0.9, alpha=0.9
        )
    _published_line(axes, printed)
    _logarithmic(axes, {"minutes": "CPU minutes of the run", "parameters": "parameters"}[against])
    return figure


def spread_of(runs: Sequence[Outcome]) -> tuple[float, float, float]:
    """Accuracy in percent and its bounds: the interval of one run, else mean and standard deviation of several.

    Example:
        >>> scores = {"test": {"accuracy": 0.5, "interval": [0.4, 0.6]}}
        >>> results = {"scores": scores, "parameters": 1}
        >>> spread_of([Outcome(table="", task="", row="", seed=0, budget="", command="", results=results)])
        (50.0, 40.0, 60.0)
    """
    scores = [100 * run.accuracy for run in runs if run.accuracy is not None]
    if len(scores) == 1:
        low, high = next(run.interval for run in runs if run.interval is not None)
        return scores[0], min(scores[0], 100 * low), max(scores[0], 100 * high)
    middle, deviation = statistics.mean(scores), statistics.stdev(scores)
    return middle, middle - deviation, middle + deviation


def draw_bars(runs: Sequence[Outcome], looks: Looks, printed: dict[str, float]) -> Figure | None:
    """Test accuracies of the ablations of one task as bars, with interval or spread and the published numbers.

    Args:
        runs: of one task.
        looks: of the rows, in the order of the bars.
        printed: the paper's accuracies in percent by row; empty for a task that is not published.
    """
    rows = [row for row in looks if any(run.row == row and run.accuracy is not None for run in runs)]
    if not rows:
        return None
    figure = Figure(figsize=(SIZE[0], 0.9 + 0.32 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(rows):
        middle, low, high = spread_of([run for run in runs if run.row == row and run.accuracy is not None])
        axes.barh(place, middle, height=0.6, color=BARS, alpha=0.75)
        axes.errorbar(middle, place, xerr=[[middle - low], [high - middle]], color=FOREGROUND, capsize=3, linewidth=1)
        if row in printed:
            axes.plot(printed[row], place, "D", color=FOREGROUND, markersize=6, fillstyle="none")
    axes.set_yticks(range(len(rows)), [_cut(looks[row].name) for row in rows])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 100)
    axes.set_xlabel("test accuracy, %" + ("    ◇ published" if printed else ""))
    return figure


def draw_costs(found: Sequence[Measurement], looks: Looks, part: Literal["time", "memory"]) -> Figure | None:
    """Time or peak memory of a training step over N, both axes logarithmic, with the slopes of N and N²."""
    lines = {
        row: [(m.length, value) for m in found if m.mixer == row and m.status == OK and (value := _cost(m, part))]
        for row in dict.fromkeys(m.mixer for m in found)
    }
    lines = {row: sorted(line) for row, line in lines.items() if line}
    if not lines:
        return None
    figure, axes = _chart({"time": "time of a step, ms", "memory": "peak memory of a step, MiB"}[part])
    for row, line in sorted(lines.items(), key=lambda item: looks[item[0]].width):
        look = looks[row]
        axes.plot(
            *zip(*line, strict=True),
            color=look.colour,
            linewidth=look.width,
            dashes=look.dashes or (None, None),
            marker=look.marker,
            markersize=4,
        )
    _guides(axes, [point for line in lines.values() for point in line])
    _logarithmic(axes, "positions N")
    lengths = sorted({n for line in lines.values() for n, _ in line})
    axes.set_xticks(lengths, [f"{n:,}" for n in lengths])
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(short))
    axes.yaxis.set_minor_formatter(NullFormatter())
    return figure


def _guides(axes: Axes, points: list[tuple[int, float]]) -> None:
    """Grey lines from the cheapest point on, as N and N² would grow; they do not widen the axes."""
    first, last = min(n for n, _ in points), max(n for n, _ in points)
    base, top = min(value for n, value in points if n == first), 1.3 * max(value for _, value in points)
    if first == last:
        return
    axes.set_ylim(base / 2.2, top)
    for power, name in ((1, "N"), (2, "N²")):
        start = base / 1.6
        end = min(last, first * (top / start) ** (1 / power))
        value = start * (end / first) ** power
        axes.plot([first, end], [start, value], color=PUBLISHED, linewidth=0.9, linestyle=":")
        axes.annotate(name, (end, value), (3, -9), textcoords="offset points", color=PUBLISHED, fontsize=8)


def _cost(measurement: Measurement, part: str) -> float | None:
    if part == "time":
        return measurement.ms
    return None if measurement.peak_bytes is None else measurement.peak_bytes / 2**20


def _published_line(axes: Axes, printed: float | None) -> None:
    if printed is None:
        return
    axes.axhline(printed, color=PUBLISHED, linewidth=1, linestyle=(0, (4, 3)))
    where = axes.get_yaxis_transform()
    axes.text(0.01, printed, "Converter, published", color=PUBLISHED, fontsize=7.5, va="bottom", transform=where)


def _logarithmic(axes: Axes, label: str) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(short))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(label)


def _chart(label: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set_ylabel(label)
    return figure, axes


def _cut(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


def _finite(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and math.isfinite(value)
