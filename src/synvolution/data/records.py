"""Raw records for prediction, one by one, from any file, folder or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from synvolution.data import fasta, folders, tables
from synvolution.data.files import kind_of, lines_of, text_of
from synvolution.data.options import DataOptions


def stream_records(
    path: str | Path, options: DataOptions | None = None, kind: str | None = None
) -> Iterator[dict[str, Any]]:
    """Records {"text", "pair", "id", "label", "place"} of a file, folder or standard input ("-"), in constant memory.

    "text" is the sequence (for images the path of the file), "pair" the second one or None, "id" its name or number
    from 0, "label" the class if the source has it, else None, "place" where it stands, for messages. Tables may lack a
    label; a .txt file has one text per line; an unlabelled folder gives one record per text or image in it.

    Args:
        path: file, folder, or "-".
        options: names of columns, and what happens with bad rows.
        kind: what standard input holds (".csv", ".tsv", ".jsonl", ".fa", ".txt"); by default told by its first line.

    Example:
        >>> from tempfile import mkdtemp
        >>> file = Path(mkdtemp()) / "new.csv"
        >>> _ = file.write_text("text,other\\nhello,1\\n")
        >>> [record["text"] for record in stream_records(file)]
        ['hello']
    """
    options = options or DataOptions()
    if str(path) == "-":
        return _of_stream(kind, options)
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if path.is_dir():
        return _of_folder(path, options)
    return _of_file(path, kind or kind_of(path), options)


def _record(text: str, number: int, place: str, **rest: Any) -> dict[str, Any]:
    return {"text": text, "pair": None, "id": number, "label": None, "place": place} | {
        name: value for name, value in rest.items() if value is not None
    }


def _of_file(
    path: Path | str, kind: str, options: DataOptions, lines: Iterator[str] | None = None
) -> Iterator[dict[str, Any]]:
    if kind in fasta.KINDS:
        for number, (line, name, sequence) in enumerate(fasta.records_of(path, lines)):
            yield _record(sequence, number, f"{path}: line {line}", id=name or None)
    elif kind in tables.KINDS:
        yield from _of_table(path, kind, options, lines)
    elif kind in folders.IMAGES:
        yield _record(str(path), 0, str(path))
    elif kind in folders.TEXTS:
        for number, text in enumerate(lines_of(path) if lines is None else lines):
            yield _record(text.rstrip("\r\n"), number, f"{path}: line {number + 1}")
    else:
        known = (*tables.KINDS, *fasta.KINDS, *folders.TEXTS, *folders.IMAGES)
        raise ValueError(f"{path}: unknown kind of file {kind!r}: expected one of {', '.join(known)}")


def _of_table(
    path: Path | str, kind: str, options: DataOptions, lines: Iterator[str] | None
) -> Iterator[dict[str, Any]]:
    def reject(problem: str, reason: str) -> None:
        if options.bad_rows == "error":
            raise ValueError(f"{problem} (bad_rows=skip leaves such rows out)")
        print(f"left out: {problem}", file=sys.stderr)

    records = tables.records_of(path, reject, kind, lines)
    head = list(islice(records, 100))
    if not head:
        return
    columns = tables.columns_of(head, options, labelled=False)
    for number, (place, record) in enumerate(chain(head, records)):
        present = tables.Columns(columns.text, None, columns.pair, None, columns.identity)
        row = tables.row_of(place, record, present)
        if isinstance(row, tuple):
            reject(*row)
            continue
        label = None if columns.label is None or record.get(columns.label) in (None, "") else str(record[columns.label])
        assert isinstance(row.content, str)
        yield _record(row.content, number, place, pair=row.pair, id=row.identity, label=label)


def _of_stream(kind: str | None, options: DataOptions) -> Iterator[dict[str, Any]]:
    lines = lines_of("-")
    first = next(lines, None)
    if first is None:
        raise ValueError("standard input is empty")
    if kind is None:
        kind = ".fa" if first.startswith(">") else ".jsonl" if first.lstrip().startswith("{") else ".txt"
    yield from _of_file("-", kind if kind.startswith(".") else f".{kind}", options, chain([first], lines))


def _of_folder(path: Path, options: DataOptions) -> Iterator[dict[str, Any]]:
    number = 0
    for file in sorted(path.rglob("*"), key=lambda file: file.relative_to(path).as_posix()):
        kind = kind_of(file)
        name = file.relative_to(path).as_posix()
        label = file.parent.name if file.parent != path else None
        if not file.is_file() or not (kind in folders.TEXTS or kind in folders.IMAGES or kind in fasta.KINDS):
            continue
        if kind in fasta.KINDS:
            for record in _of_file(file, kind, options):
                yield record | {"label": label}
        else:
            text = text_of(file) if kind in folders.TEXTS else str(file)
            yield _record(text, number, str(file), id=name, label=label)
        number += 1
    if number == 0:
        raise ValueError(f"{path} holds no texts, images or FASTA files")
