"""Timings as ratios: both sides of a comparison in turn, in one run, medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch


class Goal(NamedTuple):
    """Which way a ratio points and what it should be: at most ours ÷ other, or at least other ÷ ours.

    Without a bound the ratio is only reported.
    """

    bound: float | None
    at_least: bool = False

    def __str__(self) -> str:
        return "" if self.bound is None else f"{'≥' if self.at_least else '≤'} {self.bound:g}"

    def met(self, ratio: float) -> bool | None:
        """Whether the ratio is on the right side; None without a goal."""
        if self.bound is None:
            return None
        return ratio >= self.bound if self.at_least else ratio <= self.bound


#: For numbers that are only reported.
NO_GOAL = Goal(None)


@dataclass(frozen=True)
class Row:
    """One line of a benchmark: two medians in milliseconds and their ratio, or a measured quantity alone."""

    measure: str
    size: str
    value: float
    unit: str = ""
    ours_ms: float | None = None
    other_ms: float | None = None
    goal: str = ""
    met: bool | None = None


def check_device(name: str) -> torch.device:
    """The device of that name, if torch can use it here.

    Example:
        >>> check_device("cpu")
        device(type='cpu')
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"--device {name}: no such kind of device; e.g. cpu, cuda, cuda:1, mps") from error
    if device.type == "cpu":
        return device
    kind = getattr(torch, device.type, None)
    count = kind.device_count() if kind is not None and hasattr(kind, "device_count") and kind.is_available() else 0
    if (device.index or 0) >= count:
        raise ValueError(
            f"--device {name}: torch sees {count} such devices here (synvolution info lists what there is)"
        )
    return device


def milliseconds(function: Callable[[], object]) -> float:
    """Time of one call on torch's default device: by its own events on CUDA, else waited for before and after."""
    device = torch.get_default_device()
    if device.type == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(device)
        start.record()
        function()
        end.record()
        torch.cuda.synchronize(device)
        return float(start.elapsed_time(end))
    wait = getattr(getattr(torch, device.type, None), "synchronize", lambda: None)
    wait()
    start_time = time.perf_counter()
    function()
    wait()
    return 1e3 * (time.perf_counter() - start_time)


def medians(repeats: int, *functions: Callable[[], object]) -> list[float]:
    """Median milliseconds of each function: one warm-up each, then in turn, so that a noisy moment hits all.

    Example:
        >>> len(medians(3, lambda: None, lambda: sum(range(10))))
        2
    """
    for function in functions:
        function()
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, found in zip(functions, times, strict=True):
            found.append(milliseconds(function))
    return [statistics.median(found) for found in times]


def compare(
    measure: str, size: str, ours: Callable[[], object], other: Callable[[], object], goal: Goal, repeats: int
) -> Row:
    """Time two functions against each other.

    Example:
        >>> compare("sum ÷ sum", "(9,)", lambda: sum(range(9)), lambda: sum(range(9)), Goal(1e9), repeats=1).met
        True
    """
    ours_ms, other_ms = medians(repeats, ours, other)
    ratio = other_ms / ours_ms if goal.at_least else ours_ms / other_ms
    return Row(measure, size, ratio, "", ours_ms, other_ms, str(goal), goal.met(ratio))


def quantity(measure: str, size: str, value: float, unit: str, goal: Goal = NO_GOAL) -> Row:
    """A measured number that is not a comparison of times."""
    return Row(measure, size, value, unit, goal=str(goal), met=goal.met(value))
