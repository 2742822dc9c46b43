"""How good predictions are: accuracy with its interval, and per class precision, recall and F1."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def wilson_interval(right: int, total: int, z: float = 1.959964) -> tuple[float, float]:
    """95 % interval of a share (Wilson, 1927): never outside [0, 1], sensible at 0 and 100 %.

    Example:
        >>> [round(bound, 3) for bound in wilson_interval(1200, 2000)]
        [0.578, 0.621]
    """
    if total == 0:
        return 0.0, 1.0
    share, spread = right / total, z * z / total
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class ClassScore:
    """One class: of what was called it, the share that is (precision); of what is it, the share called so (recall)."""

    name: str
    precision: float
    recall: float
    f1: float
    rows: int


@dataclass(frozen=True)
class Scores:
    """Results on one split.

    Example:
        >>> scores = score(np.array([0, 1, 1, 1]), np.array([0, 1, 1, 0]), ["no", "yes"])
        >>> scores.accuracy, scores.confusion, round(scores.balanced_accuracy, 3)
        (0.75, [[1, 1], [0, 2]], 0.75)
    """

    rows: int
    accuracy: float
    interval: tuple[float, float]
    balanced_accuracy: float
    macro_f1: float
    classes: list[ClassScore]
    confusion: list[list[int]]
    """Rows are the true classes, columns the predicted ones."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return asdict(self)


def score(predicted: Array, labels: Array, classes: list[str]) -> Scores:
    """Compare predicted classes with the labels, both (rows,) of class numbers."""
    if predicted.shape != labels.shape or predicted.ndim != 1:
        raise ValueError(f"{predicted.shape} predictions for {labels.shape} labels: expected as many, one per row")
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(confusion, (labels, predicted), 1)
    right = np.diag(confusion)
    precision, recall = _share(right, confusion.sum(0)), _share(right, confusion.sum(1))
    f1 = _share(2 * precision * recall, precision + recall)
    present = confusion.sum(1) > 0
    return Scores(
        rows=len(labels),
        accuracy=float(right.sum() / max(1, len(labels))),
        interval=wilson_interval(int(right.sum()), len(labels)),
        balanced_accuracy=float(recall[present].mean()) if present.any() else 0.0,
        macro_f1=float(f1[present].mean()) if present.any() else 0.0,
        classes=[
            ClassScore(name, float(p), float(r), float(f), int(n))
            for name, p, r, f, n in zip(classes, precision, recall, f1, confusion.sum(1), strict=True)
        ],
        confusion=confusion.tolist(),
    )


def _share(part: Array, whole: Array) -> Array:
    """part / whole, 0 where there is nothing."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
