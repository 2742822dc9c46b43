"""Bases against numpy and scipy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.special
import torch
from numpy.polynomial import chebyshev, legendre
from torch import Tensor

from synvolution.spectral import BASES
from tests.oracles import assert_near

X = np.linspace(-1, 1, 41)
ORDER = 9

Known = Callable[[int, np.ndarray], np.ndarray]
KNOWN: list[tuple[str, dict[str, float], Known]] = [
    ("chebyshev", {}, lambda k, x: chebyshev.chebval(x, np.eye(ORDER + 1)[k])),
    ("legendre", {}, lambda k, x: legendre.legval(x, np.eye(ORDER + 1)[k])),
    ("gegenbauer", {}, scipy.special.eval_chebyu),
    ("gegenbauer", {"lam": -0.25}, lambda k, x: scipy.special.eval_gegenbauer(k, -0.25, x)),
    ("gegenbauer", {"lam": 2.5}, lambda k, x: scipy.special.eval_gegenbauer(k, 2.5, x)),
    ("jacobi", {}, scipy.special.eval_legendre),
    ("jacobi", {"a": -0.5, "b": -0.5}, lambda k, x: scipy.special.eval_jacobi(k, -0.5, -0.5, x)),
    ("jacobi", {"a": 1.5, "b": -0.9}, lambda k, x: scipy.special.eval_jacobi(k, 1.5, -0.9, x)),
    ("bernstein", {}, lambda k, x: scipy.special.binom(ORDER, k) * ((1 + x) / 2) ** k * ((1 - x) / 2) ** (ORDER - k)),
    ("monomial", {}, lambda k, x: x**k),
]


def test_every_basis_is_compared() -> None:
    assert {name for name, _, _ in KNOWN} == set(BASES)


@pytest.mark.parametrize(("name", "options", "known"), KNOWN)
def test_equals_numpy_and_scipy(name: str, options: dict[str, float], known: Known) -> None:
    found = BASES[name](torch.from_numpy(X), ORDER, **options)
    expected = np.stack([known(k, X) for k in range(ORDER + 1)], -1)
    assert_near(found, torch.from_numpy(expected), what=name)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_small_orders_and_shapes(name: str, order: int) -> None:
    assert BASES[name](torch.zeros(2, 3), order).shape == (2, 3, order + 1)
    assert BASES[name](torch.zeros(()), order).shape == (order + 1,)


@pytest.mark.parametrize("name", BASES)
def test_derivatives(name: str) -> None:
    def basis(x: Tensor) -> Tensor:
        return BASES[name](x, 5)

    x = torch.linspace(-1, 1, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(basis, x)
    assert torch.autograd.gradgradcheck(basis, x)


@pytest.mark.parametrize(
    ("name", "order", "options", "message"),
    [
        ("chebyshev", -1, {}, "order is -1"),
        ("monomial", 1.5, {}, "order is 1.5"),
        ("bernstein", True, {}, "order is True"),
        ("gegenbauer", 2, {"lam": 0.0}, "use the basis 'chebyshev'"),
        ("gegenbauer", 2, {"lam": -0.5}, "lam is -0.5"),
        ("jacobi", 2, {"a": -1.0}, "both above -1"),
    ],
)
def test_bad_arguments(name: str, order: int, options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BASES[name](torch.zeros(3), order, **options)
