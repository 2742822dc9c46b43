"""Random splits: stratified, seeded, and never with the same content on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from synvolution.data.rows import SPLITS, SplitName


def random_split(
    labels: NDArray[np.int64],
    units: NDArray[np.int64],
    shares: dict[SplitName, float],
    seed: int,
    stays: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """A split for each row: 0 train, 1 validation, 2 test.

    Rows of one unit (the same text, the same group) go together. Units are shuffled class by class and cut where the
    shares of the class's rows are reached, so that each class is split in the same proportions; units with rows of
    several classes form a class of their own.

    Args:
        labels: class of each row.
        units: number of the unit of each row, from 0.
        shares: share of the rows for "validation" and "test"; the rest is for training.
        stays: rows that stay in training, with their whole units (their equals are in a test set already).

    Shape:
        labels, units, stays (rows,) → (rows,)

    Example:
        >>> labels = np.array([0, 1] * 10)
        >>> split = random_split(labels, np.arange(20), {"validation": 0.2, "test": 0.2}, seed=0)
        >>> np.bincount(split).tolist(), np.bincount(split[labels == 0]).tolist()
        ([12, 4, 4], [6, 2, 2])
    """
    rows = len(labels)
    number = int(units.max()) + 1 if rows else 0
    lowest, highest = np.full(number, np.iinfo(np.int64).max), np.full(number, -1)
    np.minimum.at(lowest, units, labels)
    np.maximum.at(highest, units, labels)
    stratum = np.where(lowest == highest, lowest, -1)
    size = np.bincount(units, minlength=number)
    of_unit = np.zeros(number, np.int64)
    fixed = np.zeros(number, np.bool_)
    if stays is not None:
        fixed[units[stays]] = True
    draw = np.random.PCG64(np.random.SeedSequence(seed)).random_raw(number) if number else np.zeros(0, np.uint64)
    for one in np.unique(stratum):
        members = np.flatnonzero(stratum == one)
        members = members[np.lexsort((draw[members], fixed[members]))]
        middle = np.cumsum(size[members]) - size[members] / 2
        total = float(size[members].sum())
        for name in ("test", "validation"):
            ends = shares.get("test", 0.0) + (shares.get("validation", 0.0) if name == "validation" else 0.0)
            inside = (middle < round(ends * total)) & (of_unit[members] == 0) & ~fixed[members]
            of_unit[members[inside]] = SPLITS.index(name)
    return of_unit[units]


def connected(*keys: NDArray[Any]) -> NDArray[np.int64]:
    """Number of the unit of each row: rows that agree in any of the keys, directly or through others, are one unit.

    Shape:
        each key (rows,) → (rows,), numbered from 0

    Example:
        >>> connected(np.array(["a", "b", "a", "c"]), np.array([1, 2, 3, 2])).tolist()
        [0, 1, 0, 1]
    """
    units = np.unique(keys[0], return_inverse=True)[1].astype(np.int64)
    for key in keys[1:]:
        other = np.unique(key, return_inverse=True)[1]
        while True:  # each round gives every unit the lowest number it is connected with, until nothing changes
            before = units
            for numbers in (other, units.copy()):
                lowest = np.full(int(numbers.max()) + 1, len(units))
                np.minimum.at(lowest, numbers, units)
                units = lowest[numbers]
            if (units == before).all():
                break
    return np.unique(units, return_inverse=True)[1].astype(np.int64)


def random_part(labels: NDArray[np.int64], samples: int, seed: int) -> NDArray[np.int64]:
    """Indices of a random part with the same shares of classes (largest remainders), in the order of the source.

    Example:
        >>> random_part(np.array([0] * 30 + [1] * 10), 8, seed=0).tolist()
        [12, 14, 15, 16, 24, 25, 30, 34]
    """
    if samples >= len(labels):
        return np.arange(len(labels))
    classes, counts = np.unique(labels, return_counts=True)
    exact = counts * samples / len(labels)
    take = np.floor(exact).astype(np.int64)
    for index in np.argsort(take - exact, kind="stable")[: samples - int(take.sum())]:
        take[index] += 1
    draw = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(1,))).random_raw(len(labels))
    chosen = []
    for one, number in zip(classes, take, strict=True):
        members = np.flatnonzero(labels == one)
        chosen.append(members[np.argsort(draw[members], kind="stable")[:number]])
    return np.sort(np.concatenate(chosen))
