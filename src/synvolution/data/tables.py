"""Tables: csv, tsv, jsonl, json, parquet; compressed or not; columns guessed by name and look."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet

from synvolution.data.files import kind_of, lines_of
from synvolution.data.options import DataOptions
from synvolution.data.rows import Reading, Row, SplitName

#: A row of a table: where it stands and its cells.
Record = tuple[str, dict[str, Any]]
Reject = Callable[[str, str], None]
Reader = Callable[[Path | str, Iterator[str], Reject], Iterator[Record]]

LABEL_NAMES = ("label", "labels", "class", "target", "category", "species", "genus", "sentiment", "y")
TEXT_NAMES = ("text", "sequence", "sentence", "content", "document", "review", "source", "seq", "abstract", "body")
PAIR_NAMES = (
    ("text1", "text2"),
    ("sentence1", "sentence2"),
    ("sequence1", "sequence2"),
    ("text_a", "text_b"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("text", "pair"),
)

csv.field_size_limit(2**31 - 1)  # the default, 131,072 characters, is shorter than many a sequence


@dataclass(frozen=True)
class Columns:
    """Which column holds what."""

    text: str
    label: str | None = None
    pair: str | None = None
    group: str | None = None
    identity: str | None = None


def records_of(
    path: Path | str, reject: Reject, kind: str | None = None, lines: Iterator[str] | None = None
) -> Iterator[Record]:
    """The rows of a table, one by one, in constant memory (json apart). Rows that do not fit go to ``reject``.

    Lines that were read elsewhere (standard input) take the place of the file's.
    """
    kind = kind or kind_of(Path(path))
    if kind not in KINDS:
        raise ValueError(f"{path}: unknown kind of table {kind!r}: expected one of {', '.join(KINDS)}")
    if kind == ".parquet":
        if lines is not None:
            raise ValueError("parquet cannot be read from standard input: give a file")
        return _parquet(path)
    return READERS[kind](path, lines_of(path) if lines is None else lines, reject)


def _separated(separator: str, quoting: Literal[0, 3]) -> Reader:
    def read(path: Path | str, lines: Iterator[str], reject: Reject) -> Iterator[Record]:
        reader = csv.reader(lines, delimiter=separator, quoting=quoting, strict=True)
        names: list[str] | None = None
        try:
            for cells in reader:
                place = f"{path}: line {reader.line_num}"
                if names is None:
                    names = cells
                    if not names or len(set(names)) != len(names) or not all(names):
                        raise ValueError(f"{place}: the names of the columns {names} must be there and differ")
                elif len(cells) != len(names):
                    if cells:
                        problem = f"{place}: {len(cells)} columns: expected {len(names)}: {', '.join(names)}"
                        reject(problem, "wrong number of columns")
                else:
                    yield place, dict(zip(names, cells, strict=True))
        except csv.Error as error:
            raise ValueError(f"{path}: line {reader.line_num}: {error}") from error
        if names is None:
            raise ValueError(f"{path} is empty: expected names of columns in its first line")

    return read


def _json_lines(path: Path | str, lines: Iterator[str], reject: Reject) -> Iterator[Record]:
    number = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{path}: line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reject(f"{place}: no JSON ({error})", "no JSON")
            continue
        if isinstance(record, dict):
            yield place, record
        else:
            reject(f"{place}: {type(record).__name__}: expected an object {{…}} in each line", "no JSON object")
    if number == 0:
        raise ValueError(f"{path} is empty: expected a JSON object in each line")


def _json(path: Path | str, lines: Iterator[str], reject: Reject) -> Iterator[Record]:
    text = "".join(lines)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: no JSON ({error}); one object in each line goes into a .jsonl file") from error
    if not isinstance(content, list):
        raise ValueError(f"{path}: {type(content).__name__}: expected a list of objects")
    for number, record in enumerate(content, 1):
        if isinstance(record, dict):
            yield f"{path}: entry {number}", record
        else:
            reject(f"{path}: entry {number}: expected an object", "no JSON object")


def _parquet(path: Path | str) -> Iterator[Record]:
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} does not exist")
    number = 0
    try:
        with pa.parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=256):
                for record in batch.to_pylist():
                    number += 1
                    yield f"{path}: row {number}", record
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: damaged, or no parquet file, after row {number} ({error})") from error


#: Readers of lines by the end of the file's name. tsv has no quotes (its registered definition), csv has.
READERS: dict[str, Reader] = {
    ".csv": _separated(",", csv.QUOTE_MINIMAL),
    ".tsv": _separated("\t", csv.QUOTE_NONE),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json,
}

#: Every kind of table, by the end of the file's name.
KINDS = (*READERS, ".parquet")


def columns_of(records: list[Record], options: DataOptions, labelled: bool = True) -> Columns:
    """The columns: as the options name them, else by known names, else the longest text and what is left.

    Example:
        >>> columns_of([("x: line 2", {"species": "Bos", "sequence": "ACGT"})], DataOptions())
        Columns(text='sequence', label='species', pair=None, group=None, identity=None)
    """
    place, first = records[0]
    for option in ("text_column", "label_column", "pair_column", "group_column", "id_column"):
        wanted = getattr(options, option)
        if wanted is not None and wanted not in first and (labelled or option in ("text_column", "pair_column")):
            raise ValueError(f"{place}: no column {wanted!r} ({option}): there are {', '.join(first)}")
    lower = {name.lower(): name for name in first}
    text, pair = options.text_column, options.pair_column
    if text is None and pair is None:
        known = [(lower[a], lower[b]) for a, b in PAIR_NAMES if a in lower and b in lower]
        text, pair = known[0] if known else (None, None)
    label = options.label_column if options.label_column in first else None
    taken = {pair, label, options.group_column, options.id_column}
    label = label or next(
        (lower[name] for name in LABEL_NAMES if name in lower and lower[name] not in {text, pair}), None
    )
    taken.add(label)
    text = text or next((lower[name] for name in TEXT_NAMES if name in lower and lower[name] not in taken), None)
    text = text or _longest(records, [name for name in first if name not in taken])
    rest = [name for name in first if name not in taken and name != text]
    if label is None and labelled and len(rest) == 1:
        label = rest[0]
    if text is None or (label is None and labelled):
        what = "text_column" if text is None else "label_column"
        raise ValueError(f"{place}: cannot tell the {what} among {', '.join(first)}: name it")
    twice = [name for name in (text, label, pair) if name is not None and (text, label, pair).count(name) > 1]
    if twice:
        raise ValueError(f"{place}: column {twice[0]!r} is named for two things: text, class and pair differ")
    group, identity = (name if name in first else None for name in (options.group_column, options.id_column))
    return Columns(text, label, pair, group, identity)


def _longest(records: list[Record], names: list[str]) -> str | None:
    """The column with the longest text on average."""
    sizes = {
        name: sum(len(record[name]) for _, record in records if isinstance(record.get(name), str)) for name in names
    }
    return max(sizes, key=lambda name: sizes[name]) if any(sizes.values()) else None


def split_of(path: Path) -> SplitName | None:
    """The split a file's or folder's name speaks of.

    Example:
        >>> split_of(Path("imdb/train.csv")), split_of(Path("dev.tsv.gz")), split_of(Path("genes.tsv"))
        ('train', 'validation', None)
    """
    name = path.name.lower().split(".")[0].split("-0")[0]
    if name.startswith("train"):
        return "train"
    if name.startswith(("valid", "dev", "eval")) or name in ("val",):
        return "validation"
    return "test" if name.startswith("test") else None


def tables_in(source: Path) -> list[tuple[Path, SplitName | None]]:
    """The tables of a file or folder, with the splits their names speak of; if some do, the others are left out."""
    if source.is_file():
        return [(source, None)]
    found = [(path, split_of(path)) for path in sorted(source.iterdir()) if path.is_file() and kind_of(path) in KINDS]
    return [(path, split) for path, split in found if split is not None] or found


def labelled_rows(source: Path, reading: Reading, options: DataOptions) -> Iterator[Row]:
    """Rows of one's own tables; the columns found are noted in the facts."""
    tables = tables_in(source)
    if not tables:
        raise ValueError(f"{source} has no table: expected files {', '.join('*' + kind for kind in KINDS)}")

    def reject(problem: str, reason: str) -> None:
        reading.reject(problem, reason, options.bad_rows)

    columns: Columns | None = None
    for path, split in tables:
        records = records_of(path, reject)
        head = list(islice(records, 100))
        if head and columns is None:
            columns = columns_of(head, options)
            reading.pair = columns.pair is not None
            reading.facts["columns"] = {name: value for name, value in vars(columns).items() if value is not None}
        for place, record in chain(head, records):
            assert columns is not None
            row = row_of(place, record, columns)
            if isinstance(row, Row):
                row.split = split
                yield row
            else:
                reject(*row)


def row_of(place: str, record: dict[str, Any], columns: Columns) -> Row | tuple[str, str]:
    """A row of a record, or the problem with it and its kind."""
    cells = {}
    for name, column in vars(columns).items():
        if column is not None:
            value = record.get(column)
            if value is None or (value == "" and name in ("label", "group")):
                return f"{place}: nothing in column {column!r}", f"no {name}"
            if isinstance(value, list | dict):
                return f"{place}: column {column!r} holds {type(value).__name__}: expected one value", f"no {name}"
            if name in ("text", "pair") and not isinstance(value, str):
                return f"{place}: column {column!r} holds {type(value).__name__}: expected text", "no text"
            cells[name] = value if isinstance(value, str) else str(value)
    return Row(
        cells["text"],
        cells.get("label", ""),
        pair=cells.get("pair"),
        group=cells.get("group"),
        identity=cells.get("identity"),
        place=place,
    )
