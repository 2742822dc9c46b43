"""Text: IMDB reviews, positive or negative."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from synvolution.data import tables
from synvolution.data.archives import files_in, is_archive
from synvolution.data.options import DataOptions
from synvolution.data.rows import Reading, Row, SplitName

CLASSES = ["neg", "pos"]

#: train/pos/123_8.txt, below any folder.
_REVIEW = re.compile(r"(?:^|/)(train|test)/(neg|pos)/([^/]+\.txt)$")

#: How tables name the two classes.
_NAMES = {"0": "neg", "1": "pos", "negative": "neg", "positive": "pos", "neg": "neg", "pos": "pos"}


def read(source: Path | None, options: DataOptions) -> Reading:
    """IMDB from the official archive or folder, or from tables (train and test, columns text and label)."""
    if source is None:
        raise ValueError("text needs its data")  # base.py offers the download before it comes to this
    reading = Reading(lambda: iter(()), "characters", CLASSES, facts={"source": str(source)})
    if is_archive(source) or (source.is_dir() and _has_reviews(source)):
        reading.rows = lambda: _reviews(source, reading, options)
    else:
        reading.rows = lambda: _from_tables(source, reading, options)
    return reading


def _has_reviews(folder: Path) -> bool:
    return any((root / "train" / "pos").is_dir() for root in (folder, folder / "aclImdb"))


def _reviews(source: Path, reading: Reading, options: DataOptions) -> Iterator[Row]:
    number = 0
    for name, content in files_in(source, lambda name: _REVIEW.search(name) is not None):
        match = _REVIEW.search(name)
        assert match is not None
        number += 1
        split, label, file = match.groups()
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            problem = f"{source}: {name}: byte {error.start + 1} is not UTF-8"
            reading.reject(problem, "not UTF-8", options.bad_rows)
            continue
        yield Row(
            text, label, split=cast(SplitName, split), identity=f"{split}/{label}/{file}", place=f"{source}: {name}"
        )
    if number == 0:
        raise ValueError(f"{source} has no file train/pos/*.txt or the like: expected the layout of aclImdb")


def _from_tables(source: Path, reading: Reading, options: DataOptions) -> Iterator[Row]:
    for row in tables.labelled_rows(source, reading, options):
        row.label = _NAMES.get(str(row.label).lower(), row.label)
        yield row
