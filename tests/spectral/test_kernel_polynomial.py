"""The learned polynomial: its formula for every basis and damping, its penalty, its learning."""

from __future__ import annotations

import math

import pytest
import torch

import synvolution as sv
from synvolution.spectral import BASES, DAMPINGS, chebyshev_coefficients, chebyshev_sum
from tests.oracles import assert_near

X = torch.linspace(-1, 1, 9, dtype=torch.float64)


@pytest.mark.parametrize("damping", [None, *DAMPINGS])
@pytest.mark.parametrize("basis", BASES)
def test_formula(basis: str, damping: str | None) -> None:
    p = sv.KernelPolynomial(3, basis, damping).double()
    torch.nn.init.normal_(p.weight)
    terms = BASES[basis](X, 3)
    factors = torch.ones(4, dtype=torch.float64) if damping is None else DAMPINGS[damping](3)
    expected = 0.5 * factors[0] * p.weight[0] * terms[:, 0]
    for k in range(1, 4):
        expected = expected + factors[k] * p.weight[k] * terms[:, k]
    assert_near(p(X), expected, 1e-6)  # the factors were rounded to float32 at construction


def test_options_reach_basis_and_damping() -> None:
    p = sv.KernelPolynomial(2, "gegenbauer", "wang", basis_options={"lam": 0.5}, damping_options={"a": 0.0})
    q = sv.KernelPolynomial(2, "legendre")
    assert_near(p(X.float()), q(X.float()))
    assert "lam" in repr(p)


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_initial_weights(order: int) -> None:
    p = sv.KernelPolynomial(order)
    assert torch.equal(p.weight, torch.full((order + 1,), 2 / (order + 1)))
    assert p(torch.zeros(2, 3)).shape == (2, 3)
    assert list(p.state_dict()) == ["weight"]


def test_holds_interpolation_coefficients() -> None:
    p = sv.KernelPolynomial(8).double()
    mu = chebyshev_coefficients(torch.exp, 8)
    with torch.no_grad():
        p.weight.copy_(mu)
    assert_near(p(X), chebyshev_sum(mu, X))


def test_penalty() -> None:
    """Σ π k² w_k²; half of it is ∫ |p'|² √(1−x²) dx, exactly, and the unweighted integral is something else."""
    p = sv.KernelPolynomial(3).double()
    torch.nn.init.normal_(p.weight)
    w = p.weight.tolist()
    assert p.penalty().item() == pytest.approx(math.pi * sum(k * k * w[k] ** 2 for k in range(4)))
    angle = math.pi * (torch.arange(1, 2000, dtype=torch.float64)) / 2000  # Gauss quadrature for √(1−x²)
    x = torch.cos(angle).requires_grad_()
    (slope,) = torch.autograd.grad(p(x).sum(), x)
    weighted = (math.pi / 2000 * torch.sin(angle) ** 2 * slope**2).sum()
    assert p.penalty().item() == pytest.approx(2 * weighted.item())
    unweighted = (math.pi / 2000 * torch.sin(angle) * slope**2).sum()
    assert abs(unweighted.item() / weighted.item() - 1) > 0.1


def test_gradients() -> None:
    p = sv.KernelPolynomial(4, damping="jackson").double()
    x = X.clone().requires_grad_()

    def both(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(p, {"weight": weight}, (x,))

    assert torch.autograd.gradcheck(both, (x, p.weight))
    p.penalty().backward()
    assert p.weight.grad is not None
    assert p.weight.grad[0] == 0
    assert bool((p.weight.grad[1:] != 0).all())


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="unknown basis 'hermite': choose one of chebyshev"):
        sv.KernelPolynomial(2, "hermite")
    with pytest.raises(ValueError, match="unknown damping 'none': choose one of dirichlet"):
        sv.KernelPolynomial(2, damping="none")
    with pytest.raises(ValueError, match=r"basis_options .* do not fit 'jacobi': it takes \['a', 'b'\]"):
        sv.KernelPolynomial(2, "jacobi", basis_options={"lam": 1.0})
    with pytest.raises(ValueError, match=r"damping_options .* do not fit 'fejer': it takes none"):
        sv.KernelPolynomial(2, damping="fejer", damping_options={"m": 1.0})
    with pytest.raises(ValueError, match="order is -1"):
        sv.KernelPolynomial(-1)
    with pytest.raises(ValueError, match="lam is -1"):
        sv.KernelPolynomial(2, "gegenbauer", basis_options={"lam": -1.0})
