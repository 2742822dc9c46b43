"""The GRU by torch's library call, as it runs on CUDA devices, here on the CPU: against the kernels and the loop."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor

import synvolution as sv
from synvolution.ops._gru_reference import gru_reference
from tests.oracles import assert_near

N = 7
MASKS = {
    "right": [[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0]],
    "left": [[0, 0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 1]],
    "holes": [[1, 0, 1, 0, 0, 1, 0], [0, 1, 1, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0, 0]],
}


def reference(layer: sv.GRU, x: Tensor, hx: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """All layers of the loop."""
    states = []
    for k in range(layer.num_layers):
        x, state = gru_reference(x, hx[k], *layer._weights(k, x.dtype), mask, batch_first=layer.batch_first)
        states.append(state)
    return x, torch.stack(states)


def library(layer: sv.GRU, x: Tensor, hx: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """What the module calls for tensors on a CUDA device."""
    return layer._library(x, hx, mask, x.dtype)


def results(run: object, layer: sv.GRU, x: Tensor, hx: Tensor, mask: Tensor | None) -> list[Tensor]:
    """Output, states and the gradients of input, start and parameters."""
    leaves = [x.clone().requires_grad_(), hx.clone().requires_grad_()]
    output, h_n = run(layer, *leaves, mask)  # type: ignore[operator]
    loss = sum((torch.arange(t.numel()).sin().to(t).view_as(t) * t).sum() for t in (output, h_n))
    return [output, h_n, *torch.autograd.grad(loss, [*leaves, *layer.parameters()])]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("kind", [None, *MASKS])
def test_equals_the_loop(kind: str | None, batch_first: bool, bias: bool) -> None:
    layer = sv.GRU(4, 6, 2, batch_first=batch_first, bias=bias, dtype=torch.float64)
    mask = None if kind is None else torch.tensor(MASKS[kind]).bool()
    x, hx = torch.randn(3, N, 4, dtype=torch.float64), torch.randn(2, 3, 6, dtype=torch.float64)
    if mask is not None:
        x[~mask] = math.nan  # padding may hold anything
    x = x if batch_first else x.transpose(0, 1)
    for run in (library, lambda layer, *rest: layer(*rest)):
        for found, expected in zip(
            results(run, layer, x, hx, mask), results(reference, layer, x, hx, mask), strict=True
        ):
            assert_near(found, expected)


def test_dropout_between_layers_alone() -> None:
    layer, mask = sv.GRU(4, 32, 2, batch_first=True, dropout=0.5), torch.tensor(MASKS["holes"]).bool()
    run = partial(library, layer, torch.randn(3, N, 4), torch.zeros(2, 3, 32), mask)
    (first, h_first), (second, h_second) = run(), run()
    assert torch.equal(h_first[0], h_second[0])
    assert not torch.equal(first, second)
    assert bool(first[mask].ne(0).all())
    layer.eval()
    assert torch.equal(run()[0], run()[0])


def test_full_precision_under_autocast() -> None:
    layer, x, hx = sv.GRU(4, 6, batch_first=True), torch.randn(3, N, 4), torch.zeros(1, 3, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = library(layer, x, hx, None)
    assert torch.equal(output, library(layer, x, hx, None)[0])


def test_refuses() -> None:
    layer = sv.GRU(4, 6, batch_first=True)
    for mask in (torch.ones(3, N + 1, dtype=torch.bool), torch.ones(3, N)):
        with pytest.raises(ValueError, match="mask of shape"):
            library(layer, torch.randn(3, N, 4), torch.zeros(1, 3, 6), mask)
