"""``synvolution bench model --mixers …``: time and peak memory of a training step for every mixer.

Each mixer and length is measured in a process of its own under limits: one that runs out of memory or time is reported
as such and does not take the run down. The exponents of time and memory in N show the paper's table of complexities
as measured. ``python -m synvolution.experiments.bench_mixers FILE.json`` prints the results of a run as Markdown.
"""

from __future__ import annotations

import difflib
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from synvolution.experiments.mixer_step import (
    GRU,
    OK,
    OUT_OF_MEMORY,
    OUT_OF_TIME,
    Measurement,
    Settings,
    measure_in_child,
)
from synvolution.info import describe
from synvolution.nn.mixers import MIXERS
from synvolution.training.checkpoints import write_whole

LENGTHS, QUICK_LENGTHS = (1024, 4096, 16384), (32, 64)
ALL, PICTURES = "all", (".png", ".pdf", ".svg")
#: What can be measured: every mixer, and the model without blocks.
ROWS = (*MIXERS, GRU)

#: Laws of growth in N, by the words for them.
LAWS: dict[str, Callable[[int], float]] = {
    "N": lambda n: n,
    "N log N": lambda n: n * math.log(n),
    "N log² N": lambda n: n * math.log(n) ** 2,
    "N√N": lambda n: n**1.5,
    "N²": lambda n: n**2,
}
#: Time and memory in N, all else fixed: of the paper's table of complexities, else of the method's own paper. |E| is
#: N√N for the Sparse Transformer (stride √N) and N for windows and blocks of fixed size.
STATED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(ROWS, ("N", "N")),
    **dict.fromkeys(("kernelution", "synvolution", "fnet", "s4d"), ("N log N", "N")),
    **dict.fromkeys(("vanilla", "synthesizer"), ("N²", "N²")),
    "sparse": ("N√N", "N√N"),
    "reformer": ("N log N", "N log N"),
    "sinkhorn": ("N²", "N²"),  # of N/64 blocks
    "paramixer": ("N log² N", "N log² N"),
}


@dataclass(frozen=True)
class MixerOptions:
    """The options of ``synvolution bench model --mixers …``."""

    mixers: tuple[str, ...] = ()
    """With "model": measure each of these mixers instead, as time and peak memory of a training step: names, or "all".
    "gru" is the model without blocks."""
    lengths: tuple[int, ...] = LENGTHS
    """With --mixers: numbers of positions N."""
    batch: int = Settings.batch
    """With --mixers: sequences in a step."""
    position: Literal["rpe", "none"] = "rpe"
    """With --mixers: the position embedding; "none" leaves the recurrent layer, the same for all, out."""
    memory: float = Settings.memory
    """With --mixers: GiB that a step may take; what needs more is reported as out of memory."""
    seconds: float = Settings.seconds
    """With --mixers: the most that one mixer may take at one length, its start included."""
    plot: Path | None = None
    """With --mixers: also draw time and memory over N (.png, .pdf, .svg); with --json, by default beside it."""


@dataclass(frozen=True)
class Growth:
    """Exponents of time and memory in N, fitted over the lengths that were measured; None with fewer than two."""

    mixer: str
    time: float | None
    memory: float | None


def rows_named(names: Sequence[str]) -> list[str]:
    """The rows to measure, each once; "all" stands for every one.

    Example:
        >>> rows_named(["fnet", "gru", "fnet"])
        ['fnet', 'gru']
        >>> rows_named(["all"])[-1]
        'gru'
    """
    for name in names:
        if name not in (*ROWS, ALL):
            near = difflib.get_close_matches(name, (*ROWS, ALL), 2)
            hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            raise ValueError(f"unknown mixer {name!r}: {hint}Mixers: {', '.join((ALL, *ROWS))}")
    return list(ROWS if ALL in names else dict.fromkeys(names))


def measurements(
    mixers: Sequence[str] = (ALL,),
    lengths: Sequence[int] = LENGTHS,
    settings: Settings | None = None,
    begin: Callable[[str, int], None] = lambda mixer, length: None,
) -> Iterator[Measurement]:
    """Every mixer at every length; one that ran out at a length is not tried at longer ones and reported the same.

    Args:
        mixers: names, "gru", or "all".
        lengths: N; the shortest is measured first, for all mixers.
        settings: what is trained, and the limits.
        begin: told of each measurement before it starts.
    """
    names, settings = rows_named(mixers), settings or Settings()
    if not lengths or min(lengths) < 1:
        raise ValueError(f"lengths are {tuple(lengths)}: expected one or more, each at least 1")
    ran_out: dict[str, str] = {}
    for length in sorted(set(lengths)):
        for name in names:
            if name in ran_out:
                yield Measurement(name, length, ran_out[name])
                continue
            begin(name, length)
            found = measure_in_child(name, length, settings)
            if found.status in (OUT_OF_MEMORY, OUT_OF_TIME):
                ran_out[name] = found.status
            yield found


def settings_of(options: MixerOptions, repeats: int, quick: bool) -> tuple[list[str], tuple[int, ...], Settings]:
    """Rows, lengths and settings of a command, or an error that says what is wrong with it.

    Example:
        >>> settings_of(MixerOptions(mixers=("fnet",)), 7, quick=True)[:2]
        (['fnet'], (32, 64))
    """
    names, lengths = rows_named(options.mixers), options.lengths
    if not lengths or min(lengths) < 1:
        raise ValueError(f"--lengths {' '.join(map(str, lengths))}: one or more, each at least 1")
    for name in ("batch", "memory", "seconds"):
        if not (value := getattr(options, name)) > 0:
            raise ValueError(f"--{name} {value}: expected more than 0")
    if options.plot is not None and options.plot.suffix not in PICTURES:
        raise ValueError(f"--plot {options.plot}: expected a name that ends in {', '.join(PICTURES)}")
    limits = {name: getattr(options, name) for name in ("batch", "position", "memory", "seconds")}
    settings = Settings(**limits, repeats=repeats)
    if options.position == "none":
        if GRU in options.mixers:
            raise ValueError("--mixers gru --position none: the row 'gru' is the recurrent position embedding alone")
        names = [name for name in names if name != GRU]
    if not quick:
        return names, lengths, settings
    return names, QUICK_LENGTHS if lengths == LENGTHS else lengths, replace(settings, dim=8, hidden=16, repeats=1)


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
        Growth(name, slope([(m.length, m.ms) for m in own]), slope([(m.length, m.peak_bytes) for m in own]))
        for name, own in by_mixer.items()
    ]


def slope(points: Iterable[tuple[int, float | None]]) -> float | None:
    """The exponent p of value ≈ c N^p, by least squares of the logarithms; None with fewer than two known points.

    Example:
        >>> round(slope([(n, LAWS["N log N"](n)) for n in LENGTHS]), 2)
        1.12
    """
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


def write_json(path: Path, found: Sequence[Measurement], settings: Settings) -> None:
    """Settings, machine, measurements and exponents to a file that is never half written."""
    content = {
        "settings": asdict(settings),
        "machine": describe(),
        "measurements": [asdict(m) for m in found],
        "growth": [asdict(g) for g in growths(found)],
    }
    write_whole(path, json.dumps(content, indent=1) + "\n")


def read_json(path: Path) -> list[Measurement]:
    """The measurements of a file, e.g. to plot them again."""
    return [Measurement(**row) for row in json.loads(path.read_text(encoding="utf-8"))["measurements"]]


def lines_of(found: Sequence[Measurement], part: Literal["time", "memory"]) -> list[list[str]]:
    """A line for each mixer: its name, ms or MiB at each length, the fitted exponent, the stated law and its exponent.

    Example:
        >>> steps = [Measurement("vanilla", n, "ok", n / 10, 2**20) for n in (10, 100)]
        >>> lines_of(steps, "time")
        [['vanilla', '1.0', '10.0', '1.00', '2.00 (N²)']]
    """
    lengths, lines = sorted({m.length for m in found}), []
    for growth in growths(found):
        own = {m.length: m for m in found if m.mixer == growth.mixer}
        values = [_cell(own[n], part) if n in own else "" for n in lengths]
        fitted, law = getattr(growth, part), STATED[growth.mixer][part == "memory"]
        stated = slope([(n, LAWS[law](n)) for n in lengths])
        fit = "" if fitted is None else f"{fitted:.2f}"
        lines.append([growth.mixer, *values, fit, law if stated is None else f"{stated:.2f} ({law})"])
    return lines


def _cell(measurement: Measurement, part: str) -> str:
    if measurement.status != OK:
        return measurement.status.split(":")[0]
    value = measurement.ms if part == "time" else (measurement.peak_bytes or 0) / 2**20
    return f"{value:.1f}"


def markdown(found: Sequence[Measurement]) -> str:
    """The results as a Markdown table, and who is faster than Kernelution at the longest length.

    Example:
        >>> print(markdown([Measurement("kernelution", 1024, "ok", 2.0, 2**20)]))
        | mixer | ms, N = 1,024 | fitted | stated | MiB, N = 1,024 | fitted | stated |
        |---|---:|---:|---:|---:|---:|---:|
        | kernelution | 2.0 |  | N log N | 1.0 |  | N |
        <BLANKLINE>
        Faster than kernelution at N = 1,024: nobody.
    """
    lengths = sorted({m.length for m in found})
    head = ["mixer", *(name for unit in ("ms", "MiB") for name in _head(unit, lengths))]
    both = zip(lines_of(found, "time"), lines_of(found, "memory"), strict=True)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *([*time, *memory[1:]] for time, memory in both)]
    table = [f"| {' | '.join(line)} |" for line in lines]
    table[1] = table[1].replace(" ", "")
    return "\n".join([*table, "", f"{sentence_of(found)}."])


def _head(unit: str, lengths: Sequence[int]) -> list[str]:
    return [*(f"{unit}, N = {n:,}" for n in lengths), "fitted", "stated"]


def sentence_of(found: Sequence[Measurement], mixer: str = "kernelution") -> str:
    """Who is faster than a mixer at the longest length, and how many times.

    Example:
        >>> sentence_of([Measurement("fnet", 9, "ok", 1.0, 1), Measurement("kernelution", 9, "ok", 2.0, 1)])
        'Faster than kernelution at N = 9: fnet (2.00×)'
    """
    length = max((m.length for m in found), default=0)
    if not any(m.mixer == mixer and m.length == length and m.status == OK for m in found):
        return f"{mixer} was not measured at N = {length:,}"
    faster = [f"{name} ({ratio:.2f}×)" for name, ratio in faster_than(mixer, length, found).items()]
    return f"Faster than {mixer} at N = {length:,}: {', '.join(faster) or 'nobody'}"


def plot(path: Path, found: Sequence[Measurement]) -> None:
    """Time and memory over N, both axes logarithmic, a line per mixer; Converter's own are thick."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    axes = figure.subplots(1, 2)
    for place, (axis, label) in enumerate(zip(axes, ("time of a step, ms", "peak memory, MiB"), strict=True)):
        for i, name in enumerate(dict.fromkeys(m.mixer for m in found)):
            own = [m for m in found if m.mixer == name and m.status == OK]
            values = [(m.ms or 0.0) if place == 0 else (m.peak_bytes or 0) / 2**20 for m in own]
            width = 2.5 if name in ("kernelution", "synvolution") else 1.0
            style = ("-", "--", ":")[i // 10 % 3]
            axis.plot([m.length for m in own], values, style, marker=".", linewidth=width, label=name)
        axis.set(xscale="log", yscale="log", xlabel="positions N", ylabel=label)
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    print(markdown(read_json(Path(sys.argv[1]))))
