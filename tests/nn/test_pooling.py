"""Pooling against a loop over real rows."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from synvolution.nn import POOLINGS, Pooling
from tests.oracles import assert_near

ROWS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda rows: rows.mean(0),
    "first": lambda rows: rows[0],
    "last": lambda rows: rows[-1],
    "sum": lambda rows: rows.sum(0),
    "max": lambda rows: rows.max(0).values,
    "ends": lambda rows: torch.cat((rows.mean(0), rows[0], rows[-1])),
}


def test_every_pooling_is_compared() -> None:
    assert set(ROWS) == set(POOLINGS)


@pytest.mark.parametrize("kind", POOLINGS)
@pytest.mark.parametrize("padding", ["right", "left", "both", "none"])
def test_equals_a_loop(kind: str, padding: str) -> None:
    x, n = torch.randn(4, 9, 3, dtype=torch.float64), torch.arange(9)
    starts, ends = torch.tensor([[0], [2], [4], [8]]), torch.tensor([[9], [8], [5], [9]])
    masks = {"right": n < ends, "left": n >= starts, "both": (n >= starts) & (n < ends), "none": n.expand(4, 9) >= 0}
    mask = masks[padding]
    x[~mask] = math.nan
    pool = Pooling(kind)
    out = pool(x, mask)
    assert_near(out, torch.stack([ROWS[kind](x[i, mask[i]]) for i in range(4)]))
    assert out.shape == (4, pool.width(3))
    if padding == "none":
        assert torch.equal(pool(x), out)


@pytest.mark.parametrize("kind", POOLINGS)
def test_gradients(kind: str) -> None:
    x = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False, False], [False, True, True, True]])
    assert torch.autograd.gradcheck(lambda x: Pooling(kind)(x, mask), x)
    Pooling(kind)(x, mask).sum().backward()
    assert x.grad is not None
    assert x.grad[~mask].abs().max() == 0


def test_half_precision_sums_in_float32() -> None:
    x = torch.full((1, 4000, 2), 30.0, dtype=torch.float16)  # the sum, 120,000, is beyond float16
    out = Pooling("mean")(x)
    assert out.dtype == torch.float16
    assert out.tolist() == [[30.0, 30.0]]


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="unknown pooling 'median': choose one of mean, first"):
        Pooling("median")
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[2] = False
    for kind in POOLINGS:
        with pytest.raises(ValueError, match="row 2 of the mask has no real position"):
            Pooling(kind)(torch.zeros(3, 4, 2), mask)
    with pytest.raises(TypeError, match=r"mask is torch.float32: expected torch.bool"):
        Pooling()(torch.zeros(3, 4, 2), torch.ones(3, 4))
    with pytest.raises(ValueError, match=r"mask has shape \(3, 5\): expected \(3, 4\)"):
        Pooling()(torch.zeros(3, 4, 2), torch.ones(3, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"expected \(B, N, D\) with N ≥ 1"):
        Pooling()(torch.zeros(3, 0, 2))
