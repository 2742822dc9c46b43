"""Rounding at great length: what float32 keeps of unitarity and of gradients."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor

import synvolution as sv
from synvolution.ops import _reference
from synvolution.ops._backends import runnable
from tests.oracles import assert_near

FAST = [name for name in runnable(torch.device("cpu")) if name != "loop"]


def planar_operands(n: int, d: int) -> tuple[Tensor, ...]:
    v = torch.randn(1, n, 2, d, dtype=torch.float64)
    lower, upper = (2 * math.pi * torch.rand(1, n - 1, 3, dtype=torch.float64) for _ in range(2))
    return v, lower, upper, torch.randn(1, n, dtype=torch.float64)


@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize("n", [32_768, 1_048_576])
def test_float32_stays_unitary(backend: str, n: int) -> None:
    drawn = sv.DHHP.random(n, dtype=torch.float32)
    op = sv.DHHP(drawn.lower, drawn.upper, drawn.diagonal, backend=backend)
    x = torch.randn(n, 2, dtype=torch.complex64)
    y = op @ x
    assert abs(y.to(torch.complex128).norm() / x.to(torch.complex128).norm() - 1) <= 1e-5
    assert (op.H @ y - x).norm() / x.norm() <= 1e-5


@pytest.mark.parametrize("backend", FAST)
def test_float32_with_far_reach_stays_unitary(backend: str) -> None:
    """γ within 0.1 of π: a carry that travels thousands of rows."""
    n = 32_768
    lower, upper = (2 * math.pi * torch.rand(1, n - 1, 3) for _ in range(2))
    for angles in (lower, upper):
        angles[..., 2] = math.pi - 0.1 * torch.rand(1, n - 1)
    op = sv.DHHP(lower, upper, backend=backend)
    x = torch.randn(n, 2, dtype=torch.complex64)
    y = op @ x
    assert abs(y.to(torch.complex128).norm() / x.to(torch.complex128).norm() - 1) <= 1e-5
    assert (op.H @ y - x).norm() / x.norm() <= 1e-5


@pytest.mark.parametrize("backend", FAST)
def test_unrotated_gradients_match_autograd_through_the_float64_scan(backend: str) -> None:
    inputs = planar_operands(32_768, 2)
    weight = torch.randn_like(inputs[0])
    exact = [t.clone().requires_grad_() for t in inputs]
    v, lower, upper, phase = exact
    out = _reference.synvolve(
        partial(_reference.apply_chain, _reference.scan), v, lower[:, None], upper[:, None], phase
    )
    expected = torch.autograd.grad((out * weight).sum(), exact)

    single = [t.float().requires_grad_() for t in inputs]
    out32 = sv.synvolve(*single, backend=backend)
    found = torch.autograd.grad((out32 * weight.float()).sum(), single)
    for f, e in zip(found, expected, strict=True):
        assert (f.double() - e).norm() / e.norm() <= 1e-4
        assert_near(f, e, 1e-4)
