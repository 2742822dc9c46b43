"""Start from a trained model: its weights, for the same or another task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from synvolution.data.base import Prepared
from synvolution.data.pixels import PixelProcessor
from synvolution.training.inference import load_model

HEAD = "classifier."


def start_from(model: nn.Module, prepared: Prepared, folder: Path) -> bool:
    """Fill a model with the weights of a saved one: the encoder must be alike, the head stays new for other classes.

    Args:
        model: of ours, with its head's parameters named ``classifier.…``.
        prepared: the data it will be trained on.
        folder: that ``train`` wrote.

    Returns:
        Whether the head was taken too.
    """
    loaded = load_model(folder, "cpu")
    assert isinstance(loaded.model, nn.Module)
    if _tokens(loaded.processor) != _tokens(prepared.processor):
        raise ValueError(f"{folder} was trained on other tokens than {prepared.name}: its weights mean something else")
    head = loaded.classes == prepared.classes
    found, wanted = loaded.model.state_dict(), model.state_dict()
    taken = {name for name in wanted if head or not name.startswith(HEAD)}
    for name in sorted(taken):
        if name not in found or found[name].shape != wanted[name].shape:
            raise ValueError(f"{folder} has other parameters ({name!r}): give both models the same --model options")
    model.load_state_dict({name: found[name] for name in taken}, strict=False)
    return head


def _tokens(processor: Any) -> Any:
    return processor.mode if isinstance(processor, PixelProcessor) else processor.get_vocab()
