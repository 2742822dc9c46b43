"""Norms: their formulas, real and planar, zero, half precision."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from synvolution.nn import FixNorm, ScaleNorm
from tests.oracles import assert_near, to_complex


def test_scale_norm_real() -> None:
    norm, x = ScaleNorm(6).double(), torch.randn(2, 5, 6, dtype=torch.float64)
    assert norm.scale.item() == pytest.approx(math.sqrt(6), rel=1e-6)
    with torch.no_grad():
        norm.scale.fill_(3.0)
    expected = torch.stack([3 * row / row.norm() for row in x.reshape(-1, 6)]).reshape(x.shape)
    assert_near(norm(x), expected)


@pytest.mark.parametrize("norm", [ScaleNorm(6, planar=True), FixNorm(planar=True)])
def test_planar_is_the_complex_norm(norm: nn.Module) -> None:
    x = torch.randn(2, 5, 2, 6, dtype=torch.float64)
    length = math.sqrt(6) if isinstance(norm, ScaleNorm) else 1.0
    z = to_complex(x)
    expected = length * z / torch.linalg.vector_norm(z, dim=-1, keepdim=True)
    assert_near(to_complex(norm.double()(x)), expected, 1e-7)  # √D was rounded to float32


def test_fix_norm_is_unit_and_keeps_direction() -> None:
    x = torch.randn(4, 6, dtype=torch.float64)
    y = FixNorm()(x)
    assert_near(y.norm(dim=-1), torch.ones(4, dtype=torch.float64))
    assert_near(FixNorm()(1000 * x), y)


@pytest.mark.parametrize("norm", [ScaleNorm(6), FixNorm(), ScaleNorm(6, planar=True), FixNorm(planar=True)])
def test_zero_has_finite_value_and_gradient(norm: nn.Module) -> None:
    x = torch.randn(3, 2, 6)
    x[1] = 0
    x[2] *= 1e-30
    x.requires_grad_()
    y = norm(x)
    assert bool(torch.isfinite(y).all())
    assert y[1].abs().max() == 0
    y.sum().backward()
    assert x.grad is not None
    assert bool(torch.isfinite(x.grad).all())


def test_half_precision_does_not_overflow() -> None:
    x = torch.full((4, 300), 200.0, dtype=torch.float16)  # the sum of squares is 1.2e7: beyond float16
    y = ScaleNorm(300)(x)
    assert y.dtype == torch.float16
    assert_near(y.float(), torch.ones(4, 300), 1e-3)


def test_gradcheck() -> None:
    norm = ScaleNorm(3, planar=True).double()

    def function(x: Tensor, scale: Tensor) -> Tensor:
        return torch.func.functional_call(norm, {"scale": scale}, (x,))

    x = torch.randn(2, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, (x, norm.scale))


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="dim is 0"):
        ScaleNorm(0)
    with pytest.raises(ValueError, match=r"shape \(3, 5\): expected \(..., D\) with D = 6"):
        ScaleNorm(6)(torch.zeros(3, 5))
    with pytest.raises(ValueError, match=r"expected \(..., 2, D\)"):
        ScaleNorm(6, planar=True)(torch.zeros(3, 6))
