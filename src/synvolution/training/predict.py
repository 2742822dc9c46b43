"""Classes of new data, streamed: records in, labels and probabilities out."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO, cast

import numpy as np
from transformers import PreTrainedTokenizerFast

from synvolution.data.pixels import PixelProcessor
from synvolution.training.inference import WINDOW, LoadedModel, probabilities, windows

#: id, label, probability of it, probabilities of all classes.
Prediction = tuple[str, str, float, dict[str, float]]


def predictions(
    loaded: LoadedModel, records: Iterable[dict[str, Any]], batch_size: int = 32
) -> Iterator[list[Prediction]]:
    """Predictions of raw records, in their order, some hundreds at a time."""
    classes = loaded.classes
    for window in windows(records, WINDOW * batch_size):
        found = probabilities(loaded, [encode(loaded, record) for record in window], batch_size)
        yield [
            (str(record["id"]), classes[best], float(row[best]), dict(zip(classes, map(float, row), strict=True)))
            for record, row, best in zip(window, found, found.argmax(-1), strict=True)
        ]


def encode(loaded: LoadedModel, record: dict[str, Any]) -> dict[str, Any]:
    """Inputs of a raw record, by the model's own processor; longer sequences than the model knows are cut."""
    processor = loaded.processor
    if isinstance(processor, PixelProcessor):
        return {name: value[0] for name, value in processor(record["text"]).items()}
    inputs = {"input_ids": _tokens(loaded, record, "text")}
    if loaded.pair:
        inputs["input_ids_pair"] = _tokens(loaded, record, "pair")
    return inputs


def _tokens(loaded: LoadedModel, record: dict[str, Any], name: str) -> Any:
    text = record[name]
    if text is None:
        raise ValueError(f"{record['place']}: the model compares two sequences, and the second one is missing")
    try:
        limit = loaded.model.config.max_position_embeddings
        tokenizer = cast(PreTrainedTokenizerFast, loaded.processor)
        tokens = tokenizer(text, truncation=limit is not None, max_length=limit)["input_ids"]
    except Exception as error:  # the tokenizers library raises plain Exception
        raise ValueError(f"{record['place']}: {error}") from error
    if not len(tokens):
        raise ValueError(f"{record['place']}: an empty sequence; leave it out")
    return np.asarray(tokens)


def csv_writer(file: TextIO, classes: list[str]) -> Callable[[list[Prediction]], None]:
    """Writes predictions as csv: id, label, probability, and one column per class."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["id", "label", "probability", *(f"p({name})" for name in classes)])

    def write(found: list[Prediction]) -> None:
        for name, label, share, shares in found:
            writer.writerow([name, label, f"{share:.6f}", *(f"{value:.6f}" for value in shares.values())])

    return write


def jsonl_writer(file: TextIO, classes: list[str]) -> Callable[[list[Prediction]], None]:
    """Writes predictions as lines of JSON."""

    def write(found: list[Prediction]) -> None:
        for name, label, share, shares in found:
            rounded = {key: round(value, 6) for key, value in shares.items()}
            content = {"id": name, "label": label, "probability": round(share, 6), "probabilities": rounded}
            file.write(json.dumps(content, ensure_ascii=False) + "\n")

    return write


#: Formats of the output by name.
WRITERS = {"csv": csv_writer, "jsonl": jsonl_writer}
