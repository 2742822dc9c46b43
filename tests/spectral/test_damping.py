"""The damping kernels: the paper's formulas, its three conditions, and what they are for."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from synvolution.spectral import DAMPINGS, chebyshev_coefficients, chebyshev_sum
from tests.oracles import assert_near

Formula = Callable[[int, int], float]
#: The paper's table, term by term, for k ≥ 1.
PRINTED: list[tuple[str, dict[str, float], Formula]] = [
    ("dirichlet", {}, lambda k, n: 1.0),
    ("fejer", {}, lambda k, n: 1 - k / (n + 1)),
    (
        "jackson",
        {},
        lambda k, n: (
            (
                (n + 2 - k) * math.cos(k * math.pi / (n + 2))
                + math.sin(k * math.pi / (n + 2)) / math.tan(math.pi / (n + 2))
            )
            / (n + 2)
        ),
    ),
    ("lanczos", {}, lambda k, n: (math.sin(k * math.pi / (n + 1)) / (k * math.pi / (n + 1))) ** 3),
    ("lanczos", {"m": 1}, lambda k, n: math.sin(k * math.pi / (n + 1)) / (k * math.pi / (n + 1))),
    ("lorentz", {}, lambda k, n: math.sinh(4 * (1 - k / (n + 1))) / math.sinh(4)),
    ("lorentz", {"xi": -0.3}, lambda k, n: math.sinh(-0.3 * (1 - k / (n + 1))) / math.sinh(-0.3)),
    (
        "vekic",
        {},
        lambda k, n: 0.5 - 0.5 * math.tanh((k / (n + 1) - 0.5) / (k / (n + 1) * (1 - k / (n + 1)))),
    ),
    ("wang", {}, lambda k, n: math.exp(-((2 * k / (n + 1)) ** 2))),
    ("wang", {"a": 1.5, "b": 0.7}, lambda k, n: math.exp(-((1.5 * k / (n + 1)) ** 0.7))),
]


def test_every_kernel_is_compared() -> None:
    assert {name for name, _, _ in PRINTED} == set(DAMPINGS)


@pytest.mark.parametrize(("name", "options", "formula"), PRINTED)
@pytest.mark.parametrize("order", [0, 1, 2, 7, 50])
def test_equals_the_printed_formula(name: str, options: dict[str, float], formula: Formula, order: int) -> None:
    expected = torch.tensor([1.0, *(formula(k, order) for k in range(1, order + 1))], dtype=torch.float64)
    assert_near(DAMPINGS[name](order, **options), expected)


@pytest.mark.parametrize("name", DAMPINGS)
def test_the_three_conditions(name: str) -> None:
    for order in (0, 1, 2, 10, 300):
        factors = DAMPINGS[name](order)
        assert factors.shape == (order + 1,)
        assert factors.dtype == torch.float64
        assert abs(factors[0].item() - 1) < 1e-14
        assert bool((factors > 0).all())
    assert abs(DAMPINGS[name](100_000)[1].item() - 1) < 1e-4


def test_jackson_is_an_autocorrelation() -> None:
    """What makes Jackson's kernel positive: g_k = Σ_j a_j a_{j+k} with a_j ∝ sin(π(j+1)/(K+2)) (Weiße et al., 2006)."""
    a = torch.sin(math.pi * torch.arange(1, 10, dtype=torch.float64) / 10)
    a = a / a.norm()
    expected = torch.stack([a[: 9 - k] @ a[k:] for k in range(9)])
    assert_near(DAMPINGS["jackson"](8), expected)


def test_lorentz_has_no_overflow() -> None:
    factors = DAMPINGS["lorentz"](4, xi=2000.0)
    assert_near(factors, torch.tensor([math.exp(-400.0 * k) for k in range(5)], dtype=torch.float64))
    assert_near(DAMPINGS["lorentz"](4, xi=1e-9), DAMPINGS["fejer"](4), 1e-9)


def test_damping_against_the_gibbs_phenomenon() -> None:
    """A step: without damping the sum overshoots by 10 % and rings far out; positive kernels never overshoot."""
    x = torch.linspace(-0.999, 0.999, 3001, dtype=torch.float64)
    mu = chebyshev_coefficients(torch.sign, 63)
    sums = {name: chebyshev_sum(DAMPINGS[name](63) * mu, x) for name in DAMPINGS}
    assert sums["dirichlet"].max() > 1.1
    for name in ("fejer", "jackson", "lorentz"):
        assert sums[name].max() < 1 + 1e-12, name
    far = x.abs() > 0.3
    ringing = {name: (s - torch.sign(x))[far].abs().max().item() for name, s in sums.items()}
    for name in ("jackson", "lanczos", "vekic", "wang"):
        assert ringing[name] < 0.2 * ringing["dirichlet"], name


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lanczos", {"m": 0}, "m is 0"),
        ("lanczos", {"m": 1.5}, "whole number"),
        ("lorentz", {"xi": math.inf}, "finite"),
        ("wang", {"b": 0.0}, "b > 0"),
        ("wang", {"a": -1.0}, "a ≥ 0"),
    ],
)
def test_bad_arguments(name: str, options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DAMPINGS[name](3, **options)
    with pytest.raises(ValueError, match="order is -2"):
        DAMPINGS[name](-2)
