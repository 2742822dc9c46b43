"""Time and peak memory of a training step for every mixer, each in a process of its own under limits.

A mixer that runs out of memory or time is reported as such and does not take the run down. With three lengths, the
exponents of time and memory in N show the paper's table of complexities as measured.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from synvolution.info import describe
from synvolution.nn.mixers import MIXERS

LENGTHS = (1024, 4096, 16384)
OUT_OF_MEMORY, OUT_OF_TIME = "out of memory", "out of time"


@dataclass(frozen=True)
class Settings:
    """What is trained, and the limits of one measurement."""

    batch: int = 1
    dim: int = 128
    hidden: int = 512
    num_heads: int = 2
    num_layers: int = 1
    position: str = "rpe"
    """Position embedding of the model; "none" leaves the recurrent layer, the same for all, out of the time."""
    repeats: int = 3
    """Timed steps, after one that warms up and tells the memory; the median counts."""
    memory: float = 8.0
    """GiB that a step may take beyond what the process holds when it begins (on systems that can limit it)."""
    seconds: float = 600.0
    """For a whole measurement, start of the process included."""


@dataclass(frozen=True)
class Measurement:
    """A training step of one mixer at one length: numbers if the status is "ok"."""

    mixer: str
    length: int
    status: str
    ms: float | None = None
    peak_bytes: int | None = None
    """Beyond the model and its tokens, at the worst moment of a step."""


@dataclass(frozen=True)
class Growth:
    """Exponents of time and memory in N, fitted over the lengths that were measured; None with fewer than two."""

    mixer: str
    time: float | None
    memory: float | None


def measure(mixer: str, length: int, settings: Settings) -> Measurement:
    """Train some steps in this process, without limits.

    Example:
        >>> measure("fnet", 32, Settings(dim=8, hidden=16, repeats=1)).status
        'ok'
    """
    from synvolution.experiments.mixer_step import run

    ms, peak = run(mixer, length, settings, limit=None)
    return Measurement(mixer, length, "ok", statistics.median(ms), peak)


def measure_in_child(mixer: str, length: int, settings: Settings) -> Measurement:
    """:func:`measure` in a fresh process under the limits of ``settings``."""
    order = json.dumps({"mixer": mixer, "length": length, "settings": asdict(settings)})
    command = [sys.executable, "-m", "synvolution.experiments.mixer_step", order]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=settings.seconds)
    except subprocess.TimeoutExpired:
        return Measurement(mixer, length, OUT_OF_TIME)
    if done.returncode == 0:
        found = json.loads(done.stdout.splitlines()[-1])
        return Measurement(mixer, length, "ok", statistics.median(found["ms"]), found["peak_bytes"])
    return Measurement(mixer, length, _why(done.returncode, done.stderr))


def _why(returncode: int, stderr: str) -> str:
    """What ended a child: memory (an error, an abort, or the system's killer), or the last line of its error."""
    signs = ("can't allocate memory", "MemoryError", "bad_alloc", "not enough memory", "Cannot allocate memory")
    if returncode == -9 or any(sign in stderr for sign in signs):
        return OUT_OF_MEMORY
    return f"failed: {(stderr.strip().splitlines() or [f'exit code {returncode}'])[-1]}"


def measurements(
    mixers: Iterable[str] | None = None, lengths: Sequence[int] = LENGTHS, settings: Settings | None = None
) -> Iterator[Measurement]:
    """Every mixer at every length; one that ran out at a length is not tried at longer ones and reported the same.

    Args:
        mixers: names; None for all of the table.
        lengths: N.
        settings: what is trained, and the limits.
    """
    names = list(MIXERS) if mixers is None else list(mixers)
    unknown = [name for name in names if name not in MIXERS]
    if unknown:
        raise ValueError(f"unknown mixer {unknown[0]!r}: choose among {', '.join(MIXERS)}")
    if not lengths or min(lengths) < 1:
        raise ValueError(f"lengths are {tuple(lengths)}: expected one or more, each at least 1")
    for name in names:
        status = "ok"
        for length in sorted(lengths):
            if status in (OUT_OF_MEMORY, OUT_OF_TIME):
                yield Measurement(name, length, status)
                continue
            found = measure_in_child(name, length, settings or Settings())
            status = found.status
            yield found


def growths(found: Iterable[Measurement]) -> list[Growth]:
    """Least-squares slopes of log time and log memory over log N, for each mixer.

    Example:
        >>> steps = [Measurement("fnet", n, "ok", ms=n / 10, peak_bytes=n * n) for n in (10, 100)]
        >>> [(round(growth.time, 3), round(growth.memory, 3)) for growth in growths(steps)]
        [(1.0, 2.0)]
    """
    by_mixer: dict[str, list[Measurement]] = {}
    for measurement in found:
        by_mixer.setdefault(measurement.mixer, []).append(measurement)
    return [
        Growth(name, _slope([(m.length, m.ms) for m in own]), _slope([(m.length, m.peak_bytes) for m in own]))
        for name, own in by_mixer.items()
    ]


def _slope(points: list[tuple[int, float | None]]) -> float | None:
    known = [(math.log(n), math.log(value)) for n, value in points if value]
    if len({x for x, _ in known}) < 2:
        return None
    return statistics.linear_regression(*zip(*known, strict=True)).slope


def faster_than(mixer: str, length: int, found: Iterable[Measurement]) -> dict[str, float]:
    """Which mixers take a step at that length in less time, and how many times less, the fastest first.

    Example:
        >>> steps = [Measurement("fnet", 9, "ok", 1.0, 1), Measurement("vanilla", 9, "ok", 2.0, 1)]
        >>> faster_than("vanilla", 9, steps)
        {'fnet': 2.0}
    """
    times = {m.mixer: m.ms for m in found if m.length == length and m.ms is not None}
    if mixer not in times:
        return {}
    ratios = {name: times[mixer] / ms for name, ms in times.items() if ms < times[mixer]}
    return dict(sorted(ratios.items(), key=lambda item: -item[1]))


def table_of(found: Sequence[Measurement], title: str = "") -> Table:
    """Milliseconds and MiB per mixer and length, and the exponents.

    Example:
        >>> table_of([Measurement("fnet", 32, "ok", 1.5, 2**20)]).row_count
        1
    """
    lengths = sorted({m.length for m in found})
    table = Table(title=title)
    table.add_column("mixer", no_wrap=True)
    for unit in ("ms", "MiB"):
        for n in lengths:
            table.add_column(f"{unit}, N = {n}", justify="right")
        table.add_column(f"{unit} grow as", justify="right")
    for growth in growths(found):
        own = {m.length: m for m in found if m.mixer == growth.mixer}
        times = [_cell(own.get(n), lambda m: m.ms) for n in lengths]
        memory = [_cell(own.get(n), lambda m: m.peak_bytes and m.peak_bytes / 2**20) for n in lengths]
        exponents = ["" if value is None else f"N^{value:.2f}" for value in (growth.time, growth.memory)]
        table.add_row(growth.mixer, *times, exponents[0], *memory, exponents[1])
    return table


def _cell(measurement: Measurement | None, value: Any) -> str:
    if measurement is None:
        return ""
    return f"{value(measurement):.1f}" if measurement.status == "ok" else measurement.status


def write_json(path: Path, found: Sequence[Measurement], settings: Settings) -> None:
    """Settings, machine, measurements and exponents to a file."""
    content = {
        "settings": asdict(settings),
        "machine": describe(),
        "measurements": [asdict(m) for m in found],
        "growth": [asdict(g) for g in growths(found)],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> list[Measurement]:
    """The measurements of a file, e.g. to plot them again."""
    return [Measurement(**row) for row in json.loads(path.read_text(encoding="utf-8"))["measurements"]]


def plot(path: Path, found: Sequence[Measurement]) -> None:
    """Time and memory over N, both axes logarithmic, a line per mixer; Converter's own are thick."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    axes = figure.subplots(1, 2)
    names = list(dict.fromkeys(m.mixer for m in found))
    for place, (axis, label) in enumerate(zip(axes, ("time of a step, ms", "peak memory, MiB"), strict=True)):
        for i, name in enumerate(names):
            own = [m for m in found if m.mixer == name and m.status == "ok"]
            values = [(m.ms or 0.0) if place == 0 else (m.peak_bytes or 0) / 2**20 for m in own]
            width = 2.5 if name in ("kernelution", "synvolution") else 1.0
            style = ("-", "--", ":")[i // 10 % 3]
            axis.plot([m.length for m in own], values, style, marker=".", linewidth=width, label=name)
        axis.set(xscale="log", yscale="log", xlabel="positions N", ylabel=label)
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    figure.savefig(path, dpi=150)


def quick(settings: Settings) -> Settings:
    """The same with a tiny model, to see that it works: its numbers mean nothing."""
    return replace(settings, batch=1, dim=8, hidden=16, repeats=1)
