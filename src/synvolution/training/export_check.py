"""An exported model beside the one it was made of: random inputs, and how far their logits differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from synvolution.training.inference import Array

Inputs = dict[str, Tensor]
Runner = Callable[[Inputs], Array]

#: Largest allowed difference of logits, relative to the largest logit where that is above 1.
BOUND = 1e-4
#: Batch and length of each check; padding on either side where there are several rows.
CHECKS = ((1, 1), (3, 2), (3, 100), (1, 2000))


class Check(NamedTuple):
    """What a comparison found: batch, lengths, largest difference of logits, largest logit."""

    batch: int
    lengths: list[int]
    difference: float
    logit: float

    @property
    def within(self) -> bool:
        """Whether it is within the bound; NaN is not."""
        return self.difference <= BOUND * max(1.0, self.logit)


def sample_inputs(model: Any, batch: int, lengths: list[int]) -> Inputs:
    """Random inputs: (B, N) tokens or numbers with a mask, for pairs twice; rows padded on the right, then the left."""
    config = model.config
    generator = torch.Generator().manual_seed(batch + sum(lengths))
    sides = ("", "_pair") if type(model).__name__.endswith("PairClassification") else ("",)
    inputs: Inputs = {}
    for side, length in zip(sides, lengths, strict=False):
        mask = torch.ones(batch, length, dtype=torch.int64)
        for row in range(1, batch):
            part = length - length // (row + 2)
            (mask[row, part:] if row % 2 else mask[row, : length - part]).zero_()
        if config.input_features is None:
            tokens = torch.randint(config.vocab_size, (batch, length), generator=generator)
            inputs[f"input_ids{side}"] = torch.where(mask.bool(), tokens, config.pad_token_id or 0)
        else:
            shape = (batch, length) if config.input_features == 1 else (batch, length, config.input_features)
            inputs[f"input_values{side}"] = torch.randn(shape, generator=generator)
        inputs[f"attention_mask{side}"] = mask
    return inputs


@torch.inference_mode()
def compare(model: Any, run: Runner, longest: int | None) -> list[Check]:
    """Logits of the model and of what was exported, on random inputs of several lengths."""
    found = []
    for batch, length in CHECKS:
        lengths = [min(n, longest or n) for n in (length, max(1, length - 1))]
        inputs = sample_inputs(model, batch, lengths)
        expected = model(**inputs).logits.numpy()
        try:
            given = run(inputs)
        except Exception as error:  # runtimes raise what they like
            first = str(error).strip().split("\n")[0]
            raise ValueError(f"the exported model fails at batch {batch}, lengths {lengths}: {first}") from error
        difference = float(np.abs(given - expected).max())
        found.append(Check(batch, lengths, difference, float(np.abs(expected).max())))
    return found
