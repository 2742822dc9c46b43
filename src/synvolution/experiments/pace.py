"""How many steps a budget of processor time buys: measured on the batches that will be trained on."""

from __future__ import annotations

import time

import torch
from transformers import set_seed

from synvolution.data.base import Prepared
from synvolution.data.collate import Collator
from synvolution.recipes import Recipe
from synvolution.training.memory import keep_memory
from synvolution.training.rows import Rows
from synvolution.training.run import build_model
from synvolution.training.sampler import LengthGroupedSampler

WARM_UP = 2


def seconds_per_step(recipe: Recipe, prepared: Prepared, enough: float = 15.0, most: int = 40) -> float:
    """Processor seconds, over all threads, of a training step: forward, backward and AdamW, without validation.

    Args:
        recipe: model, batch and rate.
        prepared: the data.
        enough: seconds after which the mean is good enough; a few steps are always taken.
        most: steps to take at most.
    """
    keep_memory()
    set_seed(recipe.training.seed)
    model = build_model(recipe, prepared).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.0)
    rows, size = Rows(prepared.splits["train"]), recipe.training.batch_size
    order = list(LengthGroupedSampler(rows.lengths, size, recipe.training.seed))
    collate = Collator(pad_token_id=model.config.pad_token_id or 0)
    begun, taken = time.process_time(), 0
    while taken < most + WARM_UP and (taken < WARM_UP + 3 or time.process_time() - begun < enough):
        if taken == WARM_UP:
            begun = time.process_time()
        start = taken * size % max(1, len(order) - size + 1)
        model(**collate(rows.__getitems__(order[start : start + size]))).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        taken += 1
    return (time.process_time() - begun) / (taken - WARM_UP)
