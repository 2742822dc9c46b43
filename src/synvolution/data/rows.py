"""What every reader gives: rows in a common shape, and what it has to say about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")

#: What the content of a row is: text for one of the tokenizers ("auto": characters or DNA, by the look of it), finished
#: ids, or grey images as arrays.
Encoding = Literal["auto", "characters", "bytes", "dna", "listops", "pixels"]


@dataclass(slots=True)
class Row:
    """One sample as read.

    Args:
        content: the text, finished token ids, or an image (height, width) of bytes.
        label: name of the class, or its number where the reader knows the classes.
        pair: the second text of a pair.
        split: where the source puts it; None if the split is ours to make.
        group: rows of one group stay in one split.
        identity: name of the row in its source.
        place: where it stands ("file: line 3"), for error messages.
        whole: length of the text before the reader cut it, if it did.
    """

    content: str | NDArray[np.uint8]
    label: str | int
    pair: str | None = None
    split: SplitName | None = None
    group: str | None = None
    identity: str | None = None
    place: str = ""
    whole: int | None = None


@dataclass
class Reading:
    """A source, ready to be read once.

    Args:
        rows: makes the rows, one by one.
        encoding: what their content is.
        classes: names of the classes, or None to take them from the labels.
        pair: whether rows have two texts.
        facts: what is to be kept about the source; readers may add to it while they read.
        skipped: rows left out, by reason; readers count here while they read.
    """

    rows: Callable[[], Iterator[Row]]
    encoding: Encoding
    classes: list[str] | None = None
    pair: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)

    def reject(self, problem: str, reason: str, bad_rows: str) -> None:
        """A row that cannot be used: an error that says where, or a counted skip.

        Example:
            >>> reading = Reading(rows=lambda: iter(()), encoding="auto")
            >>> reading.reject("a.csv: line 3: no label", "no label", "skip")
            >>> reading.skipped
            Counter({'no label': 1})
        """
        if bad_rows == "error":
            raise ValueError(f"{problem} (bad_rows=skip leaves such rows out and counts them)")
        self.skipped[reason] += 1
