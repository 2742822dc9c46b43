"""How good a saved model is on a split, or on any labelled data."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from synvolution.data.base import TASKS, DataOptions, Prepared, prepare
from synvolution.data.pixels import PixelProcessor
from synvolution.data.records import stream_records
from synvolution.recipes import Recipe
from synvolution.training.card import RESULTS
from synvolution.training.inference import WINDOW, LoadedModel, probabilities, windows
from synvolution.training.metrics import Scores, score
from synvolution.training.predict import encode
from synvolution.training.rows import Rows

#: A row's inputs and its class by name.
Labelled = tuple[dict[str, Any], str]


@dataclass(frozen=True)
class Evaluation:
    """Scores, and how fast they were computed."""

    what: str
    scores: Scores
    seconds: float
    tokens: int

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        speed = {"rows_per_second": self.scores.rows / self.seconds, "tokens_per_second": self.tokens / self.seconds}
        return {"data": self.what, **self.scores.to_dict(), "seconds": self.seconds, **speed}


def evaluate_model(
    loaded: LoadedModel,
    data: str | None = None,
    split: str = "test",
    *,
    source: Path | None = None,
    seed: int | None = None,
    samples: int | None = None,
    batch_size: int = 32,
    progress: Any = None,
) -> Evaluation:
    """Classify a split and compare with its labels.

    Args:
        loaded: the model.
        data: a task's name, or a file or folder whose labelled rows are all used; None for the data it was trained on.
        split: "train", "validation", "test" or "all".
        source: where the files of a task lie.
        seed: of generated or randomly split data; None for the one of training.
        samples: how many rows to generate or take.
        batch_size: rows at a time.
        progress: called with the number of rows done.
    """
    what, rows = _rows(loaded, data, split, source, seed, samples)
    predicted: list[Any] = []
    labels: list[str] = []
    tokens = 0
    start = time.perf_counter()
    for window in windows(rows, WINDOW * batch_size):
        inputs = [row for row, _ in window]
        predicted.append(probabilities(loaded, inputs, batch_size).argmax(-1))
        labels.extend(name for _, name in window)
        tokens += sum(len(value) for row in inputs for key, value in row.items() if key.startswith("input_"))
        if progress is not None:
            progress(len(labels))
    if not labels:
        raise ValueError(f"{what} has no labelled rows")
    found = score(np.concatenate(predicted), _numbers(labels, loaded.classes), loaded.classes)
    return Evaluation(what, found, time.perf_counter() - start, tokens)


def _numbers(labels: list[str], classes: list[str]) -> Any:
    known = {name: number for number, name in enumerate(classes)}
    foreign = sorted(set(labels) - set(known))
    if foreign:
        shown = ", ".join(map(repr, foreign[:5]))
        raise ValueError(f"classes {shown} are not the model's: it knows {', '.join(classes[:20])}")
    return np.array([known[label] for label in labels])


def _rows(
    loaded: LoadedModel, data: str | None, split: str, source: Path | None, seed: int | None, samples: int | None
) -> tuple[str, Iterator[Labelled]]:
    trained = _trained_on(loaded.folder)
    own = None if trained is None else trained[0].task or trained[1]
    if data is None and own is None:
        raise ValueError(f"{loaded.folder} holds no {RESULTS} that says what it was trained on: give --data")
    name = data or str(own)
    if name in TASKS or name == own:
        options = trained[0].data if trained is not None and name == own else DataOptions()
        options = replace(
            options,
            seed=options.seed if seed is None else seed,
            samples=options.samples if samples is None else samples,
        )
        origin = None if name not in TASKS else source or (Path(trained[1]) if trained and trained[1] else None)
        prepared = prepare(name, origin, options)
        _same_processor(prepared, loaded)
        return f"{name}, {split}", _of_splits(prepared, split)
    return f"{name}, all rows", _of_records(loaded, name)


def _trained_on(folder: Path) -> tuple[Recipe, str | None] | None:
    """Recipe and origin of a model's data, as its results tell."""
    if not (folder / RESULTS).is_file():
        return None
    results = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    return Recipe.from_json(json.dumps(results["recipe"])), results["data"].get("origin")


def _of_splits(prepared: Prepared, split: str) -> Iterator[Labelled]:
    names = ("train", "validation", "test") if split == "all" else (split,)
    for name in names:
        if name not in prepared.splits:
            raise ValueError(f"{prepared.name} has no split {name!r}: choose one of {', '.join(prepared.splits)}, all")
        rows = Rows(prepared.splits[name])
        for start in range(0, len(rows), 256):
            for row in rows.__getitems__(range(start, min(start + 256, len(rows)))):
                yield row, prepared.classes[int(row["label"])]


def _of_records(loaded: LoadedModel, path: str) -> Iterator[Labelled]:
    for record in stream_records(path):
        if record["label"] is None:
            raise ValueError(f"{record['place']}: no label; evaluate needs one for each row, predict does not")
        yield encode(loaded, record), record["label"]


def _same_processor(prepared: Prepared, loaded: LoadedModel) -> None:
    """The data must have been made with the model's own vocabulary."""
    ours, theirs = loaded.processor, prepared.processor
    if isinstance(ours, PixelProcessor) or isinstance(theirs, PixelProcessor):
        same = ours == theirs
    else:
        same = ours.get_vocab() == theirs.get_vocab()
    if not same:
        raise ValueError(
            f"{prepared.name} was prepared with another vocabulary than the model's: give the files themselves as "
            "--data FILE, they are then read with the model's own tokenizer"
        )


def draw_confusion(scores: Scores, path: Path) -> None:
    """The confusion matrix as a picture: rows are true classes, columns predicted ones."""
    counts = np.array(scores.confusion)
    shares = counts / np.maximum(1, counts.sum(1, keepdims=True))
    names = [entry.name.replace("$", r"\$") for entry in scores.classes]
    side = min(16.0, 2.5 + 0.55 * len(names))
    figure = Figure(figsize=(side + 1, side), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(names)), names, rotation=45 if max(map(len, names)) > 3 else 0, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.set_title(f"accuracy {scores.accuracy:.2%} of {scores.rows:,}")
    if len(names) <= 20:
        for (i, j), count in np.ndenumerate(counts):
            axes.text(
                j, i, f"{count:,}", ha="center", va="center", size=8, color="white" if shares[i, j] > 0.5 else "black"
            )
    figure.colorbar(image, ax=axes, label="share of the true class")
    figure.savefig(path, dpi=120)
