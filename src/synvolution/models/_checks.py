"""Checks of a model's inputs: errors that name the value. What needs the tensors' contents is left out in graphs."""

from __future__ import annotations

import torch
from torch import Tensor


def check_one(own: str, **inputs: Tensor | None) -> Tensor:
    """The one input that was given, of ``own`` (input_ids or input_values) or inputs_embeds."""
    given = [name for name, value in inputs.items() if value is not None]
    if len(given) != 1:
        raise ValueError(f"{' and '.join(given) or 'nothing'} given: expected one of {own}, inputs_embeds")
    if given[0] not in (own, "inputs_embeds"):
        raise ValueError(f"{given[0]} given to a model that takes {own}: see input_features in its config")
    found = inputs[given[0]]
    assert found is not None
    if found.ndim < 2 or found.shape[0] < 1 or found.shape[1] < 1:
        raise ValueError(f"{given[0]} has shape {tuple(found.shape)}: expected (B, N, …) with B ≥ 1 and N ≥ 1")
    return found


def check_tokens(tokens: Tensor, vocabulary: int) -> Tensor:
    """(B, N) integers within the vocabulary; the values are looked at on the CPU only, elsewhere that would wait."""
    if tokens.ndim != 2:
        raise ValueError(f"input_ids has shape {tuple(tokens.shape)}: expected (B, N)")
    if tokens.is_floating_point() or tokens.dtype == torch.bool or tokens.is_complex():
        raise TypeError(f"input_ids is {tokens.dtype}: expected integers, the numbers of tokens")
    if tokens.device.type == "cpu" and not torch.compiler.is_compiling():
        low, high = (int(value) for value in torch.aminmax(tokens))
        if low < 0 or high >= vocabulary:
            raise ValueError(
                f"token {low if low < 0 else high} is not in the vocabulary of {vocabulary}: expected 0 to "
                f"{vocabulary - 1}; use the tokenizer saved with the model"
            )
    return tokens.to(torch.long)


def check_values(values: Tensor, features: int | None) -> Tensor:
    """(B, N) or (B, N, C) real numbers → (B, N, C)."""
    values = values.unsqueeze(-1) if values.ndim == 2 else values
    if values.ndim != 3 or values.shape[-1] != features:
        raise ValueError(f"input_values has shape {tuple(values.shape)}: expected (B, N, C) with C = {features}")
    return values


def check_mask(mask: Tensor | None, inputs: Tensor) -> Tensor | None:
    """(B, N) of 0 and 1 or bool → bool, at least one real position in each row."""
    if mask is None:
        return None
    if mask.shape != inputs.shape[:2]:
        raise ValueError(
            f"attention_mask has shape {tuple(mask.shape)}: expected {tuple(inputs.shape[:2])} for (B, N), 1 where a "
            "token is real"
        )
    real = mask.to(torch.bool)
    if not torch.compiler.is_compiling() and not bool(real.any(-1).all()):
        row = int((~real.any(-1)).nonzero()[0])
        raise ValueError(f"row {row} of attention_mask has no real token: give each sequence at least one, or drop it")
    return real


def check_labels(labels: Tensor, logits: torch.Size, problem: str) -> None:
    """Labels that fit the problem: their shape, and for single labels their range (−100 is ignored)."""
    batch, classes = logits
    shapes: dict[str, list[tuple[int, ...]]] = {
        "single_label_classification": [(batch,)],
        "multi_label_classification": [(batch, classes)],
        "regression": [(batch, classes)] + ([(batch,)] if classes == 1 else []),
    }
    if tuple(labels.shape) not in shapes[problem]:
        expected = " or ".join(map(str, shapes[problem]))
        raise ValueError(f"labels have shape {tuple(labels.shape)}: expected {expected} for {problem}")
    if problem != "single_label_classification":
        return
    if labels.is_floating_point():
        raise TypeError(f"labels are {labels.dtype}: expected integers for {problem}")
    if labels.device.type == "cpu" and not torch.compiler.is_compiling():
        counted = labels[labels != -100]
        wrong = counted[(counted < 0) | (counted >= classes)]
        if len(wrong):
            raise ValueError(f"label {int(wrong[0])} is not among the {classes} classes: expected 0 to {classes - 1}")
