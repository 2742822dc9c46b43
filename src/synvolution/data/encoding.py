"""Columns of prepared data: from batches of rows to Arrow arrays, and to a file with their hash."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from synvolution.data.pixels import PixelProcessor
from synvolution.data.prepared import Processor


def features_of(processor: Processor, classes: list[str], pair: bool, has_identity: bool) -> datasets.Features:
    """The columns: ids in the smallest type that holds the vocabulary, label, length, perhaps the row's name.

    Example:
        >>> from synvolution.data.tokenizers import dna_tokenizer
        >>> features_of(dna_tokenizer(), ["Bos", "Sus"], pair=False, has_identity=False)["input_ids"]
        List(Value('uint8'))
    """
    size = processor.vocab_size if isinstance(processor, PixelProcessor) else len(processor)
    number = "uint8" if size <= 256 else "uint16" if size <= 65536 else "int32"
    column = processor.column if isinstance(processor, PixelProcessor) else "input_ids"
    columns: dict[str, Any] = {column: datasets.List(datasets.Value("float32" if column == "input_values" else number))}
    if pair:
        columns["input_ids_pair"] = datasets.List(datasets.Value(number))
    columns["label"] = datasets.ClassLabel(names=classes)
    columns["length"] = datasets.Value("int32")
    if has_identity:
        columns["row_id"] = datasets.Value("string")
    return datasets.Features(columns)


def encoded(
    batch: pa.RecordBatch,
    labels: NDArray[np.int64],
    processor: Processor,
    max_length: int | None,
    features: datasets.Features,
) -> dict[str, pa.Array]:
    """The columns of some rows."""
    columns: dict[str, pa.Array] = {}
    content = batch.column("content").to_pylist()
    for name in ("input_ids", "input_values", "input_ids_pair"):
        if name in features:
            texts = batch.column("pair").to_pylist() if name == "input_ids_pair" else content
            sequences = sequences_of(texts, processor, max_length)
            lengths = np.array([len(sequence) for sequence in sequences], np.int32)
            offsets = np.concatenate((np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)))
            values = pa.array(np.concatenate(sequences)).cast(features[name].feature.pa_type)
            columns[name] = pa.ListArray.from_arrays(pa.array(offsets), values)
            longest = lengths if "length" not in columns else np.maximum(columns["length"].to_numpy(), lengths)
            columns["length"] = pa.array(longest)
    columns["label"] = pa.array(labels)
    if "row_id" in features:
        columns["row_id"] = batch.column("row_id")
    return {name: columns[name] for name in features}


def sequences_of(contents: list[Any], processor: Processor, max_length: int | None) -> list[NDArray[Any]]:
    """Token ids or numbers of each row; ready-made ids are taken as they are."""
    if isinstance(processor, PixelProcessor):
        levels = [np.frombuffer(content, np.uint8) for content in contents]
        return [processor.values(one) for one in levels] if processor.mode == "value" else list(levels)
    if isinstance(contents[0], bytes):
        return [np.frombuffer(content, np.uint8)[:max_length] for content in contents]
    table = _table_of(processor)
    if table is not None:
        return [table[np.frombuffer(content[:max_length].encode("utf-32-le"), "<u4")] for content in contents]
    # The tokenizer inside, for the ids alone: no attention mask, no offsets.
    encodings = processor.backend_tokenizer.encode_batch_fast(contents)
    return [np.array(one.ids[:max_length], np.int32) for one in encodings]


@lru_cache(maxsize=4)
def _table_of(processor: PreTrainedTokenizerFast) -> NDArray[np.int32] | None:
    """Id of each code point, for a tokenizer of single characters; None for others.

    The tokenizer stays the definition: the table holds what it says of every character. Looking up is a hundred times
    quicker, which counts for a billion bases.
    """
    vocabulary = processor.get_vocab()
    symbols = [token for token in vocabulary if len(token) == 1]
    if len(vocabulary) - len(symbols) > 2 or processor.unk_token_id is None:
        return None  # more than padding and unknown are longer than a character: bytes, ListOps
    table = np.full(0x110000, processor.unk_token_id, np.int32)
    for symbol in {*symbols, *map(chr, range(33, 127))}:
        ids = processor.backend_tokenizer.encode(symbol).ids
        table[ord(symbol)] = ids[0] if len(ids) == 1 else processor.unk_token_id
    return table


class ColumnHash:
    """Hash of the rows of some columns, however they were cut into batches."""

    def __init__(self, features: datasets.Features) -> None:
        self._kinds = str({name: str(kind) for name, kind in features.items()})
        self._columns = {name: sha256() for name in features}

    def add(self, columns: dict[str, pa.Array]) -> None:
        """Add some rows."""
        for name, column in columns.items():
            values = column.flatten() if isinstance(column, pa.ListArray) else column
            if pa.types.is_string(values.type):
                self._columns[name].update("".join(f"{value}\n" for value in values.to_pylist()).encode())
            else:
                self._columns[name].update(values.to_numpy(zero_copy_only=False).tobytes())

    def hexdigest(self) -> str:
        """The hash of all rows added."""
        parts = [self._kinds, *(column.hexdigest() for column in self._columns.values())]
        return sha256("\n".join(parts).encode()).hexdigest()


class ColumnWriter:
    """An Arrow file of batches of columns, and the hash of what is in it."""

    def __init__(self, path: Path, features: datasets.Features) -> None:
        self._schema = features.arrow_schema
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_stream(self._file, self._schema)
        self._hash = ColumnHash(features)

    def write(self, columns: dict[str, pa.Array]) -> None:
        """Add some rows."""
        self._hash.add(columns)
        self._writer.write_batch(pa.RecordBatch.from_pydict(columns, self._schema))

    def close(self) -> str:
        """Finish the file; the hash of its rows."""
        self._writer.close()
        self._file.close()
        return self._hash.hexdigest()


def fingerprint_of(classes: list[str], processor: Processor, hashes: list[str]) -> str:
    """Hash of classes, vocabulary and the hashes of the splits: equal data has equal fingerprints."""
    vocabulary: Any = (
        repr(processor) if isinstance(processor, PixelProcessor) else sorted(processor.get_vocab().items())
    )
    return sha256(dumps([classes, vocabulary, hashes]).encode()).hexdigest()
