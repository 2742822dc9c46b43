"""Timings as ratios: both sides of a comparison in turn, in one run, medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


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
            start = time.perf_counter()
            function()
            found.append(1e3 * (time.perf_counter() - start))
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
