"""Chebyshev interpolation of a given function, and how fast it converges (eq. cpi and the two theorems after it)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from synvolution.spectral.bases import check_order


def chebyshev_nodes(order: int) -> Tensor:
    """The K+1 zeros of T_{K+1}: x_j = cos(π(j+½)/(K+1)), the sampling nodes of eq. cpi.

    Args:
        order: degree K of the interpolant.

    Returns:
        (K+1,) float64, from right to left.

    Example:
        >>> [round(x, 4) + 0 for x in chebyshev_nodes(2).tolist()]
        [0.866, 0.0, -0.866]
    """
    check_order(order)
    return torch.cos(_node_angles(order))


def _node_angles(order: int) -> Tensor:
    return math.pi * (torch.arange(order + 1, dtype=torch.float64) + 0.5) / (order + 1)


def chebyshev_coefficients(function: Callable[[Tensor], Tensor], order: int) -> Tensor:
    """Coefficients of the interpolant: μ_k = 2/(K+1) Σ_j f(x_j) T_k(x_j) (eq. cpi).

    At the nodes of :func:`chebyshev_nodes` the discrete orthogonality is exact: the interpolant takes the function's
    values there, and reproduces a polynomial of degree K exactly.

    Args:
        function: maps (K+1,) float64 points of [−1, 1] to (K+1,) values.
        order: degree K of the interpolant.

    Returns:
        (K+1,) float64: μ_0 … μ_K; the sum halves μ_0, see :func:`chebyshev_sum`.

    Example:
        >>> mu = chebyshev_coefficients(lambda x: 2 * x**2, 2)  # 2x² = 1 + T_2
        >>> [round(m, 6) + 0 for m in mu.tolist()]
        [2.0, 0.0, 1.0]
    """
    values = function(chebyshev_nodes(order)).to(torch.float64)
    if values.shape != (order + 1,):
        raise ValueError(
            f"the function returned shape {tuple(values.shape)} for {order + 1} points: expected one value for each"
        )
    degrees = torch.arange(order + 1, dtype=torch.float64)
    return 2 / (order + 1) * torch.cos(degrees[:, None] * _node_angles(order)) @ values


def chebyshev_sum(coefficients: Tensor, x: Tensor) -> Tensor:
    """p(x) = ½ μ_0 + Σ_{k=1..K} μ_k T_k(x) (eq. cpi), by Clenshaw's recurrence.

    Multiply the coefficients by a damping first to have eq. kpm.

    Args:
        coefficients: (K+1,) μ_0 … μ_K.
        x: (...).

    Returns:
        (...).

    Example:
        >>> mu = chebyshev_coefficients(torch.exp, 12)
        >>> round(chebyshev_sum(mu, torch.tensor(1.0, dtype=torch.float64)).item(), 6)
        2.718282
    """
    if coefficients.ndim != 1 or not len(coefficients):
        raise ValueError(f"coefficients have shape {tuple(coefficients.shape)}: expected (K+1,)")
    later = last = torch.zeros_like(x)
    for mu in coefficients[1:].flip(0):
        last, later = mu + 2 * x * last - later, last
    return coefficients[0] / 2 + x * last - later


def differentiable_bound(variation: float, smoothness: int, order: int) -> float:
    """Largest error of the interpolant of a differentiable function: 4V / (πν(K−ν)^ν) (theorem ``cpi_diff``).

    V is the total variation of the ν-th derivative (Trefethen, Approximation Theory and Approximation Practice, theorem
    7.2); derivatives below the ν-th are absolutely continuous. The paper prints the 1-norm of the ν-th derivative
    itself, which is one derivative too low and makes the bound false, and allows ν = 0, where it divides by zero.

    Args:
        variation: V.
        smoothness: ν ≥ 1.
        order: degree K > ν.

    Returns:
        bound of max |f − p|.

    Example:
        >>> round(differentiable_bound(2.0, 1, 101), 5)  # |x|: the jump of its derivative is 2
        0.02546
    """
    check_order(order)
    if smoothness < 1 or order <= smoothness:
        raise ValueError(f"smoothness = {smoothness}, order = {order}: expected 1 ≤ smoothness < order")
    return 4 * variation / (math.pi * smoothness * (order - smoothness) ** smoothness)


def analytic_bound(maximum: float, rho: float, order: int) -> float:
    """Largest error of the interpolant of an analytic function: 4M ρ^{−K} / (ρ−1) (theorem ``cpi_ana``).

    |f| ≤ M in the open Bernstein ellipse with foci ±1 and half axes that sum to ρ (Trefethen, theorem 8.2). The paper's
    |μ_0| ≤ M holds for ½μ_0: its own series halves μ_0.

    Args:
        maximum: M.
        rho: ρ > 1.
        order: degree K.

    Returns:
        bound of max |f − p|.

    Example:
        >>> analytic_bound(1.0, 2.0, 2)
        1.0
    """
    check_order(order)
    if not rho > 1:
        raise ValueError(f"rho is {rho}: expected ρ > 1, the sum of the half axes of the ellipse")
    return float(4 * maximum * rho**-order / (rho - 1))
