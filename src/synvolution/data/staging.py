"""First pass over a source: check every row, put its content on disk, keep what splitting needs in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synvolution.data.options import DataOptions
from synvolution.data.rows import SPLITS, Encoding, Reading, Row
from synvolution.data.vocabulary import IUPAC_AMBIGUOUS

Progress = Callable[[str, int], None]

_BASES = b"acgtuACGTU"
_CERTAIN = _BASES + b"nN"
_IUPAC = _CERTAIN + IUPAC_AMBIGUOUS.encode() + IUPAC_AMBIGUOUS.upper().encode()

#: Rows and bytes of one batch on disk: enough to be quick, little enough for any memory.
BATCH_ROWS, BATCH_BYTES = 2000, 4_000_000


@dataclass
class Staged:
    """The rows of a source: content in a file of batches, the rest in arrays."""

    path: Path
    encoding: Encoding
    classes: list[str] = field(default_factory=list)
    labels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    splits: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # −1: ours to make
    groups: NDArray[np.int64] | None = None
    digests: NDArray[np.bytes_] = field(default_factory=lambda: np.zeros(0, "S16"))
    has_identity: bool = False
    ambiguous_bases: int = 0

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Number of the first row of each batch, and the batch."""
        first = 0
        with pa.memory_map(str(self.path)) as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                yield first, batch
                first += batch.num_rows


def stage(reading: Reading, options: DataOptions, path: Path, progress: Progress | None = None) -> Staged:
    """Read everything once."""
    rows = _with_columns(reading, options)
    encoding, rows = _decide(reading, options, rows)
    staged = Staged(path, encoding)
    kind = pa.binary() if encoding in ("pixels", "listops") else pa.string()
    schema = pa.schema([("content", kind), ("pair", pa.string()), ("row_id", pa.string()), ("whole", pa.int64())])
    memory = _Memory()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for batch in _batched(
            _checked(rows, reading, options, staged), options.max_length if kind != pa.binary() else None
        ):
            memory.add(batch)
            columns = {
                "content": [_stored(row.content, options) for row in batch],
                "pair": [None if row.pair is None else row.pair[: options.max_length] for row in batch],
                "row_id": [row.identity for row in batch],
                "whole": [_whole(row) for row in batch],
            }
            writer.write_batch(pa.RecordBatch.from_pydict(columns, schema))
            if progress is not None:
                progress("rows read", len(memory.labels))
    memory.into(staged, reading)
    return staged


def _with_columns(reading: Reading, options: DataOptions) -> Iterator[Row]:
    """The rows; an error if a column is named where there are none: who names a group relies on it."""
    rows = reading.rows()
    first = next(rows, None)
    named = [
        name for name in ("text", "label", "pair", "group", "id") if getattr(options, f"{name}_column") is not None
    ]
    if named and first is not None and "columns" not in reading.facts:
        raise ValueError(
            f"{named[0]}_column goes with tables: {reading.facts.get('source', 'the source')} has no columns"
        )
    return rows if first is None else chain((first,), rows)


def _decide(reading: Reading, options: DataOptions, rows: Iterator[Row]) -> tuple[Encoding, Iterator[Row]]:
    """The encoding of the text: as asked for, as the task has it, or by the look of the first rows."""
    if reading.encoding in ("pixels", "listops", "dna"):
        if options.tokens not in ("auto", reading.encoding):
            raise ValueError(f"tokens is {options.tokens!r}: this data has tokens of its own ({reading.encoding})")
        return reading.encoding, rows
    if options.tokens != "auto":
        return options.tokens, rows
    if reading.encoding != "auto":
        return reading.encoding, rows
    head = list(islice(rows, 200))
    texts = [row.content for row in head if isinstance(row.content, str)]
    found: Encoding = "dna" if texts and all(_looks_like_dna(text) for text in texts) else "characters"
    reading.facts["tokens"] = f"{found}, by the look of the first {len(texts)} rows"
    return found, chain(head, rows)


def _looks_like_dna(text: str) -> bool:
    if len(text) < 20 or not text.isascii():
        return False
    letters = text.encode()
    return not letters.translate(None, _IUPAC) and len(letters.translate(None, _CERTAIN)) <= len(letters) // 10


def _checked(rows: Iterator[Row], reading: Reading, options: DataOptions, staged: Staged) -> Iterator[Row]:
    """The rows that can be used; the others are errors or counted skips."""
    known = None if reading.classes is None else {name: number for number, name in enumerate(reading.classes)}
    names: set[str] = set()
    for row in rows:
        problem = None
        if len(row.content) == 0 or (reading.pair and not row.pair):
            problem = "empty sequence", "the sequence is empty"
        elif known is not None and str(row.label) not in known:
            problem = "label outside the set", f"label {str(row.label)!r} is none of {', '.join(known)}"
        elif row.identity is not None and row.identity in names:
            problem = "duplicate id", f"id {row.identity!r} has occurred before"
        elif not _is_unicode(str(row.label)) or not _is_unicode(row.identity or ""):
            problem = "not Unicode", "the label or id has half of a surrogate pair, which is no Unicode text"
        elif isinstance(row.content, str):
            problem = _problem_of_text(row.content, staged) or (
                _problem_of_text(row.pair, staged) if row.pair else None
            )
        if problem is not None:
            reading.reject(f"{row.place}: {problem[1]}", problem[0], options.bad_rows)
            continue
        if row.identity is not None:
            names.add(row.identity)
        yield row


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _problem_of_text(text: str, staged: Staged) -> tuple[str, str] | None:
    try:
        letters = text.encode()
    except UnicodeEncodeError as error:
        return "not Unicode", f"character {error.start + 1} is half of a surrogate pair, which is no Unicode text"
    if staged.encoding == "dna":
        strange = letters.translate(None, _IUPAC)
        if strange:
            return "not DNA", f"{chr(strange[0])!r} is no base: expected letters of the IUPAC nucleotide code"
        staged.ambiguous_bases += len(letters.translate(None, _CERTAIN))
    return None


def _batched(rows: Iterator[Row], longest: int | None) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row.content) if longest is None else min(len(row.content), longest)
        if len(batch) == BATCH_ROWS or size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _stored(content: str | NDArray[np.uint8], options: DataOptions) -> str | bytes:
    """As little as is needed: no encoding has fewer tokens than characters, so a longer text need not be kept."""
    return content[: options.max_length] if isinstance(content, str) else content.tobytes()


def _whole(row: Row) -> int:
    return max(row.whole or len(row.content), 0 if row.pair is None else len(row.pair))


class _Memory:
    """What is kept in memory of every row."""

    def __init__(self) -> None:
        self.labels: list[int] = []
        self.splits: list[int] = []
        self.digests: list[bytes] = []
        self.groups: list[int] = []
        self.label_numbers: dict[str, int] = {}
        self.group_numbers: dict[str, int] = {}
        self.has_identity = False

    def add(self, batch: list[Row]) -> None:
        for row in batch:
            self.labels.append(self.label_numbers.setdefault(str(row.label), len(self.label_numbers)))
            self.splits.append(-1 if row.split is None else SPLITS.index(row.split))
            self.has_identity |= row.identity is not None
            if row.group is not None:
                self.groups.append(self.group_numbers.setdefault(row.group, len(self.group_numbers)))
            content = row.content.encode() if isinstance(row.content, str) else row.content.tobytes()
            second = b"" if row.pair is None else b"\0" + row.pair.encode()
            self.digests.append(blake2b(content + second, digest_size=16).digest())

    def into(self, staged: Staged, reading: Reading) -> None:
        if not self.labels:
            reasons = "".join(f", {number} × {reason}" for reason, number in reading.skipped.items())
            raise ValueError(f"{reading.facts.get('source', 'the source')} has no usable row{reasons}")
        staged.classes = reading.classes if reading.classes is not None else _in_order(list(self.label_numbers))
        if len(staged.classes) < 2:
            raise ValueError(
                f"{reading.facts.get('source', 'the source')} has one class only ({staged.classes[0]!r}): "
                "at least 2 are needed"
            )
        numbers = {name: number for number, name in enumerate(staged.classes)}
        renumbered = np.array([numbers[name] for name in self.label_numbers])
        staged.labels = renumbered[np.array(self.labels)]
        staged.splits = np.array(self.splits)
        staged.digests = np.array(
            [digest.hex() for digest in self.digests], dtype="S32"
        )  # hex: no zero bytes at the end
        staged.groups = np.array(self.groups) if self.groups else None
        staged.has_identity = self.has_identity


def _in_order(names: list[str]) -> list[str]:
    """Names of classes sorted, as numbers if all are."""
    if len(names) > 1000:
        raise ValueError(
            f"the label column has {len(names)} different values, such as {sorted(names)[0]!r}: these are no classes "
            "(at most 1000); name another label_column"
        )
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)
