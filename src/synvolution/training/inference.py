"""A saved model at work: load it, and classify encoded rows in batches of similar length."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from synvolution.data.collate import Collator
from synvolution.data.pixels import PixelProcessor
from synvolution.models import ConverterForPairClassification, ConverterForSequenceClassification
from synvolution.training.onnx_model import FILE as ONNX_FILE
from synvolution.training.onnx_model import OnnxModel

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")

#: Batches that are read and sorted by length together.
WINDOW = 32


@dataclass(frozen=True)
class LoadedModel:
    """A model with what turns data into its inputs."""

    model: ConverterForSequenceClassification | ConverterForPairClassification | OnnxModel
    processor: PreTrainedTokenizerFast | PixelProcessor
    folder: Path

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in the order of the logits."""
        labels: dict[Any, str] = dict(self.model.config.id2label or {})
        return [labels[number] for number in range(len(labels))]

    @property
    def pair(self) -> bool:
        """Whether it compares two sequences."""
        return _is_pair(self.model.config.to_dict())


def _is_pair(settings: dict[str, Any]) -> bool:
    return "ConverterForPairClassification" in (settings.get("architectures") or [])


def load_model(folder: Path, device: str | None = None) -> LoadedModel:
    """Load a folder that ``train`` wrote: configuration, safetensors weights and processor; no code, no pickle.

    Args:
        folder: of the model.
        device: "cpu", "cuda", …; None for a GPU where there is one.
    """
    settings = _settings(folder)
    if (folder / ONNX_FILE).exists() and not (folder / "model.safetensors").exists():
        raise ValueError(
            f"{folder} holds an exported model: `synvolution predict {folder} DATA --backend onnx` runs it"
        )
    kind = ConverterForPairClassification if _is_pair(settings) else ConverterForSequenceClassification
    transformers_logging.disable_progress_bar()
    model = kind.from_pretrained(folder, local_files_only=True).eval()
    model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    return LoadedModel(model, _processor(folder), folder)


def load_onnx_model(folder: Path) -> LoadedModel:
    """Load a folder that ``export --format onnx`` wrote, for onnxruntime."""
    _settings(folder)
    return LoadedModel(OnnxModel(folder), _processor(folder), folder)


def _settings(folder: Path) -> dict[str, Any]:
    """What config.json says, if the folder holds a model of ours."""
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder} holds no model (no config.json): give the folder that `synvolution train` wrote")
    try:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder / 'config.json'} is not JSON: {error}") from error
    kind = settings.get("model_type") if isinstance(settings, dict) else None
    if kind != "converter":
        raise ValueError(f"{folder} holds a {kind!r} model: expected 'converter'")
    return cast(dict[str, Any], settings)


def _processor(folder: Path) -> PreTrainedTokenizerFast | PixelProcessor:
    if (folder / PixelProcessor.FILE).exists():
        return PixelProcessor.from_pretrained(folder)
    if not (folder / "tokenizer.json").exists():
        raise ValueError(f"{folder} holds no tokenizer.json: save the tokenizer beside the model")
    return cast(PreTrainedTokenizerFast, AutoTokenizer.from_pretrained(folder, local_files_only=True))


@torch.inference_mode()
def probabilities(loaded: LoadedModel, rows: Sequence[dict[str, Any]], batch_size: int = 32) -> Array:
    """Probabilities (rows, classes) of encoded rows, computed in batches of similar length, in the order given."""
    model: Any = loaded.model
    collate = Collator(pad_token_id=model.config.pad_token_id or 0)
    lengths = [max(len(row[name]) for name in row if name.startswith("input_")) for row in rows]
    order = np.argsort(-np.asarray(lengths), kind="stable")
    found = np.zeros((len(rows), len(loaded.classes)), dtype=np.float32)
    for start in range(0, len(rows), batch_size):
        chosen = order[start : start + batch_size]
        batch = collate([{k: v for k, v in rows[i].items() if k.startswith("input_")} for i in chosen])
        logits = model(**{name: value.to(model.device) for name, value in batch.items()}).logits
        found[chosen] = torch.softmax(logits.float(), -1).cpu().numpy()
    return found


def windows(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of up to ``size`` items: as much of a stream as is sorted at a time.

    Example:
        >>> list(windows(range(5), 2))
        [[0, 1], [2, 3], [4]]
    """
    iterator = iter(items)
    while window := list(islice(iterator, size)):
        yield window
