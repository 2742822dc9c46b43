"""Training under autocast: half precision where torch allows it, norms, sines, rotations and recurrence in float32."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

import synvolution as sv
from synvolution.data.listops import generate
from synvolution.data.listops_task import QUICK
from synvolution.recipes import RECIPES

BATCH, STEPS, TESTED = 32, 200, 4000
SIZES: dict[str, Any] = {"vocab_size": 17, "num_labels": 10}


def samples(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens (count, N), mask and values of short ListOps; ids one higher than the generator's, 0 is padding."""
    pairs = list(generate(QUICK, count, seed))
    tokens = pad_sequence([torch.from_numpy(t).long() + 1 for t, _ in pairs], batch_first=True)
    return tokens, (tokens > 0).long(), torch.tensor([value for _, value in pairs])


def autocast(dtype: torch.dtype | None) -> contextlib.AbstractContextManager[object]:
    return contextlib.nullcontext() if dtype is None else torch.autocast("cpu", dtype=dtype)


def trained(dtype: torch.dtype | None) -> tuple[float, list[float]]:
    """Accuracy on fresh samples after STEPS steps of the recipe's model, and all losses; None: float32."""
    torch.manual_seed(0)
    options = replace(RECIPES["listops-quick"].model, hidden_size=32, intermediate_size=64)
    config = sv.ConverterConfig(**asdict(options), **SIZES)
    model = sv.ConverterForSequenceClassification(config).train()
    tokens, mask, labels = samples(BATCH * STEPS, seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), 0.003)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, STEPS)
    scaler = torch.amp.GradScaler("cpu", enabled=dtype == torch.float16)
    losses = []
    for rows in torch.arange(BATCH * STEPS).split(BATCH):
        with autocast(dtype):
            loss = model(tokens[rows], attention_mask=mask[rows], labels=labels[rows]).loss
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    tokens, mask, labels = samples(TESTED, seed=2)
    with torch.no_grad(), autocast(dtype):
        found = [
            model(t, attention_mask=m).logits.argmax(1) for t, m in zip(tokens.split(200), mask.split(200), strict=True)
        ]
    return (torch.cat(found) == labels).float().mean().item(), losses


@pytest.mark.slow
def test_half_precision_learns_as_well() -> None:
    """No NaN in 200 steps, and at the end an accuracy within one percentage point of float32's."""
    expected, _ = trained(None)
    largest = samples(TESTED, seed=2)[2].bincount().max().item() / TESTED
    print(f"largest class {largest:.4f}, float32 {expected:.4f}")
    assert expected > largest + 0.02, "nothing was learned: the comparison says nothing"
    for dtype in (torch.bfloat16, torch.float16):
        accuracy, losses = trained(dtype)
        print(f"{dtype} {accuracy:.4f}, loss {losses[0]:.3f} → {losses[-1]:.3f}")
        assert torch.tensor(losses).isfinite().all()
        assert abs(accuracy - expected) <= 0.01, (dtype, accuracy, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_are_finite(dtype: torch.dtype) -> None:
    config = sv.ConverterConfig(hidden_size=12, intermediate_size=16, num_heads=2, **SIZES)
    model = sv.ConverterForSequenceClassification(config).train()
    tokens, mask, labels = samples(4, seed=1)
    with autocast(dtype):
        loss = model(tokens, attention_mask=mask, labels=labels).loss
    loss.backward()
    grads = {name: p.grad for name, p in model.named_parameters()}
    assert all(g is not None and g.isfinite().all() for g in grads.values())
