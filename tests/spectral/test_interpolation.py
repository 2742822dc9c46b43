"""Chebyshev interpolation, and the paper's two theorems on real functions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.polynomial import chebyshev
from torch import Tensor

from synvolution.spectral import (
    analytic_bound,
    chebyshev_coefficients,
    chebyshev_nodes,
    chebyshev_sum,
    differentiable_bound,
)
from tests.oracles import assert_near

Function = Callable[[Tensor], Tensor]
X = torch.linspace(-1, 1, 4001, dtype=torch.float64)
ORDERS = (5, 8, 16, 33, 64, 127)


def error(function: Function, order: int) -> float:
    return (chebyshev_sum(chebyshev_coefficients(function, order), X) - function(X)).abs().max().item()


@pytest.mark.parametrize("order", [0, 1, 6, 20])
def test_interpolates_at_the_nodes(order: int) -> None:
    nodes, mu = chebyshev_nodes(order), chebyshev_coefficients(torch.sin, order)
    assert_near(chebyshev_sum(mu, nodes), torch.sin(nodes))
    expected = chebyshev.chebinterpolate(np.sin, order)
    expected[0] *= 2  # numpy's series does not halve its first term
    assert_near(mu, torch.from_numpy(expected))


def test_sum_equals_numpy_and_has_gradients() -> None:
    mu = torch.randn(7, dtype=torch.float64)
    halved = mu.clone()
    halved[0] /= 2
    assert_near(chebyshev_sum(mu, X), torch.from_numpy(chebyshev.chebval(X.numpy(), halved.numpy())))
    leaves = (mu.requires_grad_(), torch.tensor([-0.3, 1.0], dtype=torch.float64, requires_grad=True))
    assert torch.autograd.gradcheck(chebyshev_sum, leaves)


def smooth_bump(x: Tensor) -> Tensor:
    """Second derivative 2 sign(x − 0.3)."""
    return (x - 0.3) * (x - 0.3).abs()


#: f, ν, total variation of its ν-th derivative.
DIFFERENTIABLE: list[tuple[Function, int, float]] = [
    (torch.abs, 1, 2.0),
    (lambda x: x.abs() ** 3, 3, 12.0),
    (smooth_bump, 2, 4.0),
    (lambda x: (x - 0.5).abs() + 2 * (x + 0.5).abs(), 1, 6.0),
    (lambda x: torch.sin(10 * x), 1, 200.0),  # ∫ |f''| ≤ 2 · 100
]


@pytest.mark.parametrize(("function", "smoothness", "variation"), DIFFERENTIABLE)
def test_theorem_for_differentiable_functions(function: Function, smoothness: int, variation: float) -> None:
    for order in ORDERS:
        assert error(function, order) <= differentiable_bound(variation, smoothness, order)


@pytest.mark.parametrize(("function", "smoothness", "variation"), DIFFERENTIABLE[:3])
def test_rate_for_differentiable_functions(function: Function, smoothness: int, variation: float) -> None:
    """The bound's rate K^{−ν} is the true one: doubling K divides the error by 2^ν, not by more."""
    # the largest over a few K: where the kink lies between two nodes matters too
    ratio = max(error(function, k) for k in range(60, 68)) / max(error(function, k) for k in range(120, 136))
    assert 0.8 * 2**smoothness < ratio < 1.25 * 2**smoothness


def test_coefficients_of_differentiable_functions_and_the_printed_norm() -> None:
    """|μ_k| ≤ 2V/(π(k−ν)^{ν+1}) with V the variation of f^(ν); with ‖f^(ν)‖_1, as the paper prints it, it is false."""
    mu = chebyshev_coefficients(lambda x: torch.sin(50 * x), 400)
    k = torch.arange(2, 401, dtype=torch.float64)
    norm = torch.trapezoid((50 * torch.cos(50 * X)).abs(), X).item()  # ‖f'‖_1
    variation = torch.trapezoid((2500 * torch.sin(50 * X)).abs(), X).item()  # ‖f''‖_1, the variation of f'
    assert bool((mu[2:].abs() <= 2 * variation / (math.pi * (k - 1) ** 2)).all())
    assert bool((mu[2:].abs() > 5 * 2 * norm / (math.pi * (k - 1) ** 2)).any())


def maximum_on_ellipse(function: Function, rho: float) -> float:
    angle = torch.linspace(0, 2 * math.pi, 2001, dtype=torch.float64)
    circle = rho * torch.exp(1j * angle)
    return function((circle + 1 / circle) / 2).abs().max().item()


#: f, and ρ inside its domain of analyticity; Runge's function has poles at ±i/5, so ρ < (1 + √26)/5.
ANALYTIC: list[tuple[Function, float]] = [
    (torch.exp, 2.0),
    (torch.exp, 10.0),
    (lambda x: torch.cos(20 * x), 1.5),
    (lambda x: 1 / (1 + 25 * x**2), 1.2),
    (lambda x: 1 / (1 + 25 * x**2), 1.21),
    (lambda x: torch.sqrt(2 - x), 3.5),
]


@pytest.mark.parametrize(("function", "rho"), ANALYTIC)
def test_theorem_for_analytic_functions(function: Function, rho: float) -> None:
    maximum = maximum_on_ellipse(function, rho)
    rounding = 1e-13 * maximum
    for order in ORDERS:
        assert error(function, order) <= analytic_bound(maximum, rho, order) + rounding
    mu = chebyshev_coefficients(function, 300)
    k = torch.arange(301, dtype=torch.float64)
    assert bool((mu.abs() <= 2 * maximum * rho**-k + rounding).all())
    assert mu[0].abs().item() / 2 <= maximum


def test_first_coefficient_is_bounded_by_twice_the_maximum() -> None:
    """|μ_0| ≤ M, as printed, fails for a constant: the series halves μ_0, so μ_0 = 2M."""
    assert chebyshev_coefficients(torch.ones_like, 4)[0].item() == pytest.approx(2.0)


def test_rate_for_analytic_functions() -> None:
    """Runge's function: the error falls by (1 + √26)/5 per degree."""
    ratio = error(lambda x: 1 / (1 + 25 * x**2), 40) / error(lambda x: 1 / (1 + 25 * x**2), 60)
    assert ratio == pytest.approx(((1 + math.sqrt(26)) / 5) ** 20, rel=0.05)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="returned shape"):
        chebyshev_coefficients(lambda x: x.sum(), 3)
    with pytest.raises(ValueError, match="order is -1"):
        chebyshev_nodes(-1)
    with pytest.raises(ValueError, match=r"coefficients have shape \(2, 2\)"):
        chebyshev_sum(torch.zeros(2, 2), X)
    with pytest.raises(ValueError, match="1 ≤ smoothness < order"):
        differentiable_bound(1.0, 0, 4)
    with pytest.raises(ValueError, match="1 ≤ smoothness < order"):
        differentiable_bound(1.0, 4, 4)
    with pytest.raises(ValueError, match="rho is 1"):
        analytic_bound(1.0, 1.0, 4)
