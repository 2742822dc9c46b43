"""The learned kernel polynomial."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from synvolution.spectral.bases import BASES, check_order
from synvolution.spectral.damping import DAMPINGS


class KernelPolynomial(nn.Module):
    """Learned polynomial p(x) = ½ g_0 w_0 + Σ_{k=1..K} g_k w_k T_k(x) (eq. kpm, with w for μ).

    The ½ is the Chebyshev series' and is kept for every basis, where it only rescales the learned w_0.

    Args:
        order: highest degree K.
        basis: a name in ``BASES``.
        damping: a name in ``DAMPINGS``; None for g = 1, damping left to the penalty.
        basis_options: parameters of the basis, e.g. ``{"lam": 0.5}`` for "gegenbauer".
        damping_options: parameters of the damping, e.g. ``{"xi": 3.0}`` for "lorentz".

    Shape:
        x (...) → (...), in the wider of the dtypes of x and of the weight.

    Example:
        >>> p = KernelPolynomial(2)
        >>> [round(y, 4) for y in p(torch.tensor([-1.0, 0.0, 1.0])).tolist()]
        [0.3333, -0.3333, 1.6667]
        >>> KernelPolynomial(4, "jacobi", "lorentz", basis_options={"a": 1.0}, damping_options={"xi": 3.0})
        KernelPolynomial(order=4, basis='jacobi', basis_options={'a': 1.0}, damping='lorentz',
                         damping_options={'xi': 3.0})
    """

    damping_factors: Tensor

    def __init__(
        self,
        order: int,
        basis: str = "chebyshev",
        damping: str | None = None,
        *,
        basis_options: Mapping[str, float] | None = None,
        damping_options: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__()
        check_order(order)
        self.order, self.basis, self.damping = order, basis, damping
        self.basis_options, self.damping_options = dict(basis_options or {}), dict(damping_options or {})
        self._terms = _choose("basis", basis, BASES)
        _call("basis", basis, self._terms, torch.zeros(()), order, **self.basis_options)
        self.register_buffer("damping_factors", self._factors().to(torch.get_default_dtype()), persistent=False)
        self.weight = nn.Parameter(torch.empty(order + 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All weights 2/(K+1); the damping factors anew, for modules made without memory and filled later."""
        nn.init.constant_(self.weight, 2 / (self.order + 1))
        with torch.no_grad():
            self.damping_factors.copy_(self._factors())

    def _factors(self) -> Tensor:
        """g_0 … g_K."""
        name = self.damping or "dirichlet"
        return _call("damping", name, _choose("damping", name, DAMPINGS), self.order, **self.damping_options)

    def forward(self, x: Tensor) -> Tensor:
        """p(x), of the shape of x."""
        factors = self.damping_factors * self.weight
        coefficients = torch.cat((factors[:1] / 2, factors[1:]))
        return (self._terms(x, self.order, **self.basis_options) * coefficients).sum(-1)

    def penalty(self) -> Tensor:
        """Kernel polynomial loss Σ_k π k² |w_k|² (eq. kpl), a scalar.

        Twice the integral of |p'(x)|² √(1−x²) for the Chebyshev basis without damping; the unweighted integral that the
        paper writes has other values and cross terms.
        """
        k = torch.arange(self.order + 1, dtype=self.weight.dtype, device=self.weight.device)
        return math.pi * (k * self.weight).square().sum()

    def extra_repr(self) -> str:
        """The settings, for printing."""
        parts = [f"order={self.order}, basis={self.basis!r}"]
        parts += [f"basis_options={self.basis_options}"] if self.basis_options else []
        parts += [f"damping={self.damping!r}"]
        parts += [f"damping_options={self.damping_options}"] if self.damping_options else []
        return ", ".join(parts)


def _choose(what: str, name: str, table: dict[str, Callable[..., Tensor]]) -> Callable[..., Tensor]:
    if name not in table:
        raise ValueError(f"unknown {what} {name!r}: choose one of {', '.join(table)}")
    return table[name]


def _call(what: str, name: str, function: Callable[..., Tensor], *args: Any, **options: float) -> Tensor:
    """Call it once, so that wrong options are refused at construction."""
    try:
        return function(*args, **options)
    except TypeError as error:
        allowed = function.__code__.co_varnames[len(args) : function.__code__.co_argcount]
        raise ValueError(f"{what}_options {options} do not fit {name!r}: it takes {list(allowed) or 'none'}") from error
