"""Checks of prepared data, from what lies on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from synvolution.data.encoding import ColumnHash, fingerprint_of
from synvolution.data.pixels import PixelProcessor
from synvolution.data.prepared import Prepared
from synvolution.data.rows import SPLITS
from synvolution.data.vocabulary import LISTOPS_TOKENS


@dataclass(frozen=True)
class Check:
    """One check: what was looked at, whether it holds (None: for information only), and what was found."""

    name: str
    holds: bool | None
    found: str


def checks(data: Prepared) -> Iterator[Check]:
    """Fingerprint, counts, lengths, ids, labels and overlap of the splits; for ListOps every value computed again."""
    hashes, contents, problems = [], {}, []
    for name in SPLITS:
        state, digests = ColumnHash(data.splits[name].features), []
        for columns in _batches(data.splits[name]):
            state.add(columns)
            problems += [f"{name}: {problem}" for problem in _problems(columns, data)]
            digests += _digests(columns)
        hashes.append(state.hexdigest())
        contents[name] = digests
    fingerprint = fingerprint_of(data.classes, data.processor, hashes)
    yield Check("fingerprint", fingerprint == data.fingerprint, fingerprint[:16])
    counts = {name: data.splits[name].num_rows for name in SPLITS}
    yield Check(
        "rows", counts == data.facts["rows"], ", ".join(f"{name} {number:,}" for name, number in counts.items())
    )
    what = "ids, lengths and labels, values computed again" if _is_listops(data) else "ids, lengths and labels"
    yield Check(what, not problems, problems[0] if problems else "all rows right")
    given = {name for name in SPLITS if f"{name} as given" in data.facts["split"]}
    for one, other in combinations(SPLITS, 2):
        shared = len(set(contents[one]) & set(contents[other]))
        # The splits we make share nothing, unless cutting made rows equal; what the source has on both sides is told.
        ours = one not in given or other not in given
        told = not ours or (shared > 0 and data.facts["length"]["rows cut"] > 0)
        yield Check(f"{one} ∩ {other}", None if told else shared == 0, f"{shared} equal rows")


def _is_listops(data: Prepared) -> bool:
    return data.facts["encoding"] == "listops"


def _batches(split: Any) -> Iterator[dict[str, pa.Array]]:
    for batch in split.data.table.to_batches():
        yield dict(zip(batch.schema.names, batch.columns, strict=True))


def _digests(columns: dict[str, pa.Array]) -> list[bytes]:
    names = [name for name in ("input_ids", "input_values", "input_ids_pair") if name in columns]
    rows = zip(*(_sequences(columns[name]) for name in names), strict=True)
    return [blake2b(b"\0\0".join(part.tobytes() for part in row), digest_size=16).digest() for row in rows]


def _sequences(column: pa.ListArray) -> list[np.ndarray[Any, Any]]:
    values = column.flatten().to_numpy(zero_copy_only=False)
    ends = np.cumsum(column.value_lengths().to_numpy(zero_copy_only=False))
    return np.split(values, ends[:-1])


def _problems(columns: dict[str, pa.Array], data: Prepared) -> Iterator[str]:
    labels = columns["label"].to_numpy(zero_copy_only=False)
    if not ((labels >= 0) & (labels < len(data.classes))).all():
        yield f"a label is not among the {len(data.classes)} classes"
    size = data.processor.vocab_size if isinstance(data.processor, PixelProcessor) else len(data.processor)
    longest = np.zeros(len(labels), np.int64)
    for name in ("input_ids", "input_ids_pair", "input_values"):
        if name in columns:
            lengths = columns[name].value_lengths().to_numpy(zero_copy_only=False)
            longest = np.maximum(longest, lengths)
            if lengths.min() < 1 or lengths.max() > data.max_length:
                yield f"{name} has {lengths.min()} to {lengths.max()} positions: expected 1 to {data.max_length}"
            values = columns[name].flatten().to_numpy(zero_copy_only=False)
            if name != "input_values" and values.max() >= size:
                yield f"{name} has the id {values.max()}, the vocabulary ends at {size - 1}"
    if not (columns["length"].to_numpy(zero_copy_only=False) == longest).all():
        yield "a length is not that of its row"
    if _is_listops(data):
        cut = data.max_length if data.facts["length"]["rows cut"] else None  # what was cut has no value any more
        for ids, label in zip(_sequences(columns["input_ids"]), labels, strict=True):
            if len(ids) == cut:
                continue
            value = value_of([LISTOPS_TOKENS[number - 1] for number in ids])
            if value != label:
                yield f"a list has the value {value}, its label is {label}"


def value_of(tokens: list[str]) -> int | None:
    """Value of a ListOps expression, by a stack; None if it is not well formed.

    Example:
        >>> value_of("[SM 7 [MAX 1 8 ] [MED 1 4 ] ]".split())
        7
    """
    stack: list[list[Any]] = [[]]
    for token in tokens:
        if token[0] == "[":
            stack.append([token])
        elif token == "]":
            if len(stack) == 1 or len(stack[-1]) == 1:
                return None  # nothing to close, or nothing inside
            operator, *numbers = stack.pop()
            ordered = sorted(numbers)
            middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2
            results = {"[MIN": ordered[0], "[MAX": ordered[-1], "[MED": middle, "[SM": sum(numbers) % 10}
            stack[-1].append(results[operator])
        else:
            stack[-1].append(int(token))
    return stack[0][0] if len(stack) == 1 and len(stack[0]) == 1 else None
