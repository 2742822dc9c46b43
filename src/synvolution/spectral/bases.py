"""Polynomial bases on [−1, 1] by their recurrences, differentiable. One function each, listed in ``BASES``.

To add a basis, write a function ``(x, order, **parameters) -> (..., K+1)`` and add its line to the table.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor


def check_order(order: int) -> None:
    """The order K is a whole number, at least 0."""
    if isinstance(order, bool) or not isinstance(order, int) or order < 0:
        raise ValueError(f"order is {order!r}: expected a whole number K ≥ 0, the highest degree")


def chebyshev(x: Tensor, order: int) -> Tensor:
    """Chebyshev polynomials of the first kind: T_0 = 1, T_1 = x, T_k = 2x T_{k−1} − T_{k−2} (before eq. cpi).

    Args:
        x: (...).
        order: highest degree K.

    Returns:
        (..., K+1): T_0(x) … T_K(x).

    Example:
        >>> chebyshev(torch.tensor(0.5), 3).tolist()
        [1.0, 0.5, -0.5, -1.0]
    """
    check_order(order)
    terms = [torch.ones_like(x), x]
    for _ in range(2, order + 1):
        terms.append(2 * x * terms[-1] - terms[-2])
    return torch.stack(terms[: order + 1], -1)


def legendre(x: Tensor, order: int) -> Tensor:
    """Legendre polynomials: P_0 = 1, P_1 = x, k P_k = (2k−1) x P_{k−1} − (k−1) P_{k−2}.

    Args:
        x: (...).
        order: highest degree K.

    Returns:
        (..., K+1).

    Example:
        >>> legendre(torch.tensor(0.5), 2).tolist()
        [1.0, 0.5, -0.125]
    """
    check_order(order)
    terms = [torch.ones_like(x), x]
    for k in range(2, order + 1):
        terms.append((2 * k - 1) / k * x * terms[-1] - (k - 1) / k * terms[-2])
    return torch.stack(terms[: order + 1], -1)


def gegenbauer(x: Tensor, order: int, lam: float = 1.0) -> Tensor:
    """Gegenbauer polynomials: C_0 = 1, C_1 = 2λx, k C_k = 2(k+λ−1) x C_{k−1} − (k+2λ−2) C_{k−2}.

    λ = ½ is Legendre, λ = 1 (the default) Chebyshev of the second kind.

    Args:
        x: (...).
        order: highest degree K.
        lam: λ > −½, not 0 (there all but C_0 vanish; its limit is Chebyshev).

    Returns:
        (..., K+1).

    Example:
        >>> gegenbauer(torch.tensor(1.0), 3, lam=1.0).tolist()
        [1.0, 2.0, 3.0, 4.0]
    """
    check_order(order)
    if not lam > -0.5 or lam == 0:
        raise ValueError(f"lam is {lam}: expected λ > -1/2 and not 0; for the limit λ → 0 use the basis 'chebyshev'")
    terms = [torch.ones_like(x), 2 * lam * x]
    for k in range(2, order + 1):
        terms.append(2 * (k + lam - 1) / k * x * terms[-1] - (k + 2 * lam - 2) / k * terms[-2])
    return torch.stack(terms[: order + 1], -1)


def jacobi(x: Tensor, order: int, a: float = 0.0, b: float = 0.0) -> Tensor:
    """Jacobi polynomials P^(a,b), orthogonal under (1−x)^a (1+x)^b.

    P_0 = 1, P_1 = (a−b)/2 + (a+b+2)/2 · x, and with c = 2k+a+b:
    2k(k+a+b)(c−2) P_k = (c−1)[c(c−2) x + a² − b²] P_{k−1} − 2(k+a−1)(k+b−1) c P_{k−2}.
    a = b = 0 is Legendre.

    Args:
        x: (...).
        order: highest degree K.
        a, b: both > −1.

    Returns:
        (..., K+1).

    Example:
        >>> jacobi(torch.tensor(1.0), 2, a=1.0).tolist()
        [1.0, 2.0, 3.0]
    """
    check_order(order)
    if not (a > -1 and b > -1):
        raise ValueError(f"a = {a}, b = {b}: expected both above -1, or the weight (1-x)^a (1+x)^b is not integrable")
    terms = [torch.ones_like(x), (a - b) / 2 + (a + b + 2) / 2 * x]
    for k in range(2, order + 1):
        c = 2 * k + a + b
        scale = 2 * k * (k + a + b) * (c - 2)
        first = (c - 1) * (c * (c - 2) * x + (a * a - b * b)) * terms[-1]
        terms.append((first - 2 * (k + a - 1) * (k + b - 1) * c * terms[-2]) / scale)
    return torch.stack(terms[: order + 1], -1)


def bernstein(x: Tensor, order: int) -> Tensor:
    """Bernstein polynomials of degree K on [−1, 1]: binom(K, k) t^k (1−t)^{K−k}, t = (x+1)/2.

    By the recurrence b_{k,n} = (1−t) b_{k,n−1} + t b_{k−1,n−1}. They are not negative and sum to one; k numbers places
    along the interval, not degrees.

    Args:
        x: (...).
        order: degree K of all of them.

    Returns:
        (..., K+1).

    Example:
        >>> bernstein(torch.tensor(0.0), 2).tolist()
        [0.25, 0.5, 0.25]
    """
    check_order(order)
    t = (x + 1) / 2
    row = [torch.ones_like(x)]
    for _ in range(order):
        inner = [(1 - t) * right + t * left for left, right in pairwise(row)]
        row = [(1 - t) * row[0], *inner, t * row[-1]]
    return torch.stack(row, -1)


def monomial(x: Tensor, order: int) -> Tensor:
    """Powers 1, x, x², …, x^K.

    Args:
        x: (...).
        order: highest degree K.

    Returns:
        (..., K+1).

    Example:
        >>> monomial(torch.tensor(2.0), 3).tolist()
        [1.0, 2.0, 4.0, 8.0]
    """
    check_order(order)
    terms = [torch.ones_like(x)]
    for _ in range(order):
        terms.append(terms[-1] * x)
    return torch.stack(terms, -1)


#: Every basis by name.
BASES: dict[str, Callable[..., Tensor]] = {
    "chebyshev": chebyshev,
    "legendre": legendre,
    "gegenbauer": gegenbauer,
    "jacobi": jacobi,
    "bernstein": bernstein,
    "monomial": monomial,
}
