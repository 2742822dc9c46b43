"""Retrieval: pairs of articles of the ACL Anthology Network; does one cite the other?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from synvolution.data.files import lines_of
from synvolution.data.options import DataOptions
from synvolution.data.rows import Reading, Row, SplitName

CLASSES = ["no citation", "citation"]
FILES: dict[SplitName, str] = {
    "train": "new_aan_pairs.train.tsv",
    "validation": "new_aan_pairs.eval.tsv",
    "test": "new_aan_pairs.test.tsv",
}


def read(source: Path | None, options: DataOptions) -> Reading:
    """The published files: label, id1, id2, text1, text2 with tabs between; no header, no quotes."""
    if source is None:
        raise ValueError("retrieval needs its data")
    for name in FILES.values():
        if not (source / name).is_file():
            raise FileNotFoundError(f"{source / name} does not exist: expected {', '.join(FILES.values())} in {source}")
    reading = Reading(lambda: iter(()), "characters", CLASSES, pair=True, facts={"source": str(source)})
    reading.rows = lambda: (
        row for split, name in FILES.items() for row in _rows(source / name, split, reading, options)
    )
    return reading


def _rows(path: Path, split: SplitName, reading: Reading, options: DataOptions) -> Iterator[Row]:
    number = 0
    for number, line in enumerate(lines_of(path), 1):
        cells = line.rstrip("\r\n").split("\t")
        place = f"{path}: line {number}"
        if len(cells) != 5:
            problem = f"{place}: {len(cells)} columns: expected 5 with tabs between: label, id1, id2, text1, text2"
            reading.reject(problem, "wrong number of columns", options.bad_rows)
            continue
        label = cells[0].removesuffix(".0")
        name = CLASSES[int(label)] if label in ("0", "1") else cells[0]
        yield Row(cells[3], name, pair=cells[4], split=split, place=place)
    if number == 0:
        raise ValueError(f"{path} is empty: expected pairs of articles")
