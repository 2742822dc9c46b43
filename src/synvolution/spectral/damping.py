"""Gibbs damping factors g_0 … g_K of the kernel polynomial method (the paper's table ``kernel_func``), in ``DAMPINGS``.

All satisfy g_0 = 1, g_k > 0 and g_1 → 1 as K grows. To add a kernel, write a function
``(order, **parameters) -> (K+1,)`` and add its line to the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from synvolution.spectral.bases import check_order


def _ratios(order: int) -> Tensor:
    """k / (K+1) for k = 0 … K, (K+1,) float64."""
    check_order(order)
    return torch.arange(order + 1, dtype=torch.float64) / (order + 1)


def dirichlet(order: int) -> Tensor:
    """No damping: g_k = 1.

    Args:
        order: highest degree K.

    Returns:
        (K+1,) float64.

    Example:
        >>> dirichlet(2).tolist()
        [1.0, 1.0, 1.0]
    """
    return torch.ones_like(_ratios(order))


def fejer(order: int) -> Tensor:
    """Fejér's kernel: g_k = 1 − k/(K+1).

    Args:
        order: highest degree K.

    Returns:
        (K+1,) float64.

    Example:
        >>> fejer(3).tolist()
        [1.0, 0.75, 0.5, 0.25]
    """
    return 1 - _ratios(order)


def jackson(order: int) -> Tensor:
    """Jackson's kernel: g_k = [(K+2−k) cos kθ + sin kθ cot θ] / (K+2), θ = π/(K+2).

    Args:
        order: highest degree K.

    Returns:
        (K+1,) float64.

    Example:
        >>> [round(g, 4) for g in jackson(2).tolist()]
        [1.0, 0.7071, 0.25]
    """
    check_order(order)
    k = torch.arange(order + 1, dtype=torch.float64)
    theta = math.pi / (order + 2)
    return ((order + 2 - k) * torch.cos(k * theta) + torch.sin(k * theta) / math.tan(theta)) / (order + 2)


def lanczos(order: int, m: int = 3) -> Tensor:
    """Lanczos's kernel: g_k = sinc^M(kπ/(K+1)), sinc t = sin t / t, sinc 0 = 1.

    Args:
        order: highest degree K.
        m: M ≥ 1; 3 is close to Jackson's kernel.

    Returns:
        (K+1,) float64.

    Example:
        >>> [round(g, 4) for g in lanczos(1, m=1).tolist()]
        [1.0, 0.6366]
    """
    if isinstance(m, bool) or m != int(m) or m < 1:
        raise ValueError(f"m is {m!r}: expected a whole number M ≥ 1")
    return torch.sinc(_ratios(order)) ** int(m)  # torch's sinc has the π inside


def lorentz(order: int, xi: float = 4.0) -> Tensor:
    """Lorentz's kernel: g_k = sinh[ξ(1 − k/(K+1))] / sinh ξ; its limit for ξ → 0 is Fejér's.

    Args:
        order: highest degree K.
        xi: ξ, any real number; its sign does not matter.

    Returns:
        (K+1,) float64.

    Example:
        >>> torch.equal(lorentz(3, xi=0.0), fejer(3))
        True
    """
    if not math.isfinite(xi):
        raise ValueError(f"xi is {xi}: expected a finite number")
    ratios, size = _ratios(order), abs(xi)
    if size == 0:
        return 1 - ratios
    # sinh(a)/sinh(b) = e^{a−b} (1 − e^{−2a}) / (1 − e^{−2b}): no overflow for large ξ
    return torch.exp(-size * ratios) * torch.expm1(-2 * size * (1 - ratios)) / math.expm1(-2 * size)


def vekic(order: int) -> Tensor:
    """Vekić's kernel: g_k = ½ − ½ tanh[(r − ½) / (r(1−r))], r = k/(K+1).

    At k = 0 the formula divides by zero; its limit is g_0 = 1. ½ − ½ tanh t is computed as the logistic function of
    −2t, which stays positive where tanh has already been rounded to 1.

    Args:
        order: highest degree K.

    Returns:
        (K+1,) float64.

    Example:
        >>> [round(g, 4) for g in vekic(2).tolist()]
        [1.0, 0.8176, 0.1824]
    """
    ratios = _ratios(order)[1:]
    damped = torch.sigmoid(-2 * (ratios - 0.5) / (ratios * (1 - ratios)))
    return torch.cat((torch.ones(1, dtype=torch.float64), damped))


def wang(order: int, a: float = 2.0, b: float = 2.0) -> Tensor:
    """Wang's kernel: g_k = e^{−(a k/(K+1))^b}.

    The paper allows all real a, b; g_0 = 1 needs b > 0, and a negative a has no real power in general. The defaults are
    ours.

    Args:
        order: highest degree K.
        a: ≥ 0; 0 is no damping.
        b: > 0.

    Returns:
        (K+1,) float64.

    Example:
        >>> [round(g, 4) for g in wang(1, a=2.0, b=1.0).tolist()]
        [1.0, 0.3679]
    """
    if not (0 <= a < math.inf and 0 < b < math.inf):
        raise ValueError(f"a = {a}, b = {b}: expected a ≥ 0 and b > 0, or g_0 is not 1")
    return torch.exp(-((a * _ratios(order)) ** b))


#: Every kernel by name.
DAMPINGS: dict[str, Callable[..., Tensor]] = {
    "dirichlet": dirichlet,
    "fejer": fejer,
    "jackson": jackson,
    "lanczos": lanczos,
    "lorentz": lorentz,
    "vekic": vekic,
    "wang": wang,
}
