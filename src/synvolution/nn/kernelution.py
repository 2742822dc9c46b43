"""Synvolution and Kernelution: the learned unitary digraph convolutions, as layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synvolution.nn.dropout import Dropout
from synvolution.nn.norm import wide
from synvolution.nn.row_order import RowOrder
from synvolution.nn.siren import SIREN
from synvolution.ops._backends import check_backend
from synvolution.ops._checks import check_shape
from synvolution.ops.dhhp import DHHP
from synvolution.ops.means import sine_means
from synvolution.ops.synvolve import synvolve
from synvolution.spectral.kernel_polynomial import KernelPolynomial

#: γ of the first and the last head under ``reach="spread"``, in radians: from local to nearly global.
SPREAD = (0.3, 2.9)


class Digraph(NamedTuple):
    """The digraph a layer makes of its input. Without the dimension H where the layer has one head.

    Shapes: operator (B, H, N, N) complex, S = Φ^{-1} e^{iφ} Φ, the weight of the edge from column to row; eigenvalues λ
    and eigenphases φ (B, H, N); lower and upper angles α, β, γ (B, H, L, N−1, 3).
    """

    operator: Tensor
    eigenvalues: Tensor
    eigenphases: Tensor
    lower: Tensor
    upper: Tensor


class Synvolution(nn.Module):
    """Learned unitary digraph convolution, Synv(X W_V) = Φ^{-1} [e^{iΛ} ⊙ (Φ X W_V)] (eq. synvolution).

    Everything is generated from the input. Eigenvalues (eq. eigenvalue_gap): λ = mean over features of a SIREN, in
    [−1, 1]. Angles: a second SIREN, brought to unit length, its features averaged in six groups; 2π times these are α,
    β, γ of that position's lower and upper rotation. Lower rotation j belongs to position j, upper rotation j to j+1.

    Args:
        dim: number of features D.
        num_heads: H, each with its own angles and eigenvalues for D/H of the features; λ of a head is the mean over D/H
            features of the SIREN.
        reach: initial value of a learned bias of γ, one per head: the weight of a row k steps away falls like
            |sin(γ/2)|^k. A number, H numbers, or "spread" for H values from 0.3 (local) to 2.9 (nearly global) radians.
        orders: L of the DHHP matrix Φ.
        permutation: None for the identity, "block", "bit_reversal", "learned", or int64 row numbers (N,) or (L, N); see
            :class:`~synvolution.nn.RowOrder`.
        length: longest sequence, for ``permutation="learned"`` alone.
        angle_features: features averaged to one angle of one head and order; None for ⌈D/6⌉. Fewer give larger angles
            and less work.
        value_dropout, eigenvalue_dropout, eigenvector_dropout: rates on the values and inside the two generators.
        bias: whether the value projection has one.
        backend: of :func:`synvolution.synvolve`.

    Shape:
        x (B, N, D), mask (B, N) bool, True where a position is real → planar (B, N, 2, D), real and imaginary plane, in
        the dtype of x. The operator runs in float32 (float64 for float64 inputs), also under autocast.

    Example:
        >>> layer = Synvolution(8, num_heads=2, reach="spread")
        >>> layer(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 2, 8])
    """

    planar = True

    def __init__(
        self,
        dim: int,
        *,
        num_heads: int = 1,
        reach: float | Sequence[float] | str = 0.0,
        orders: int = 1,
        permutation: str | Tensor | None = None,
        length: int | None = None,
        angle_features: int | None = None,
        value_dropout: float = 0.0,
        eigenvalue_dropout: float = 0.0,
        eigenvector_dropout: float = 0.0,
        bias: bool = True,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        if dim < 1 or num_heads < 1 or dim % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {dim} features: choose num_heads that divides dim")
        if orders < 1:
            raise ValueError(f"orders is {orders}: expected L ≥ 1")
        if angle_features is not None and angle_features < 1:
            raise ValueError(f"angle_features is {angle_features}: expected at least 1, or None for ⌈D/6⌉")
        if permutation is None and length is not None:
            raise ValueError(f"length = {length} is for permutation='learned' alone: leave it out")
        check_backend(backend)
        self.dim, self.num_heads, self.orders, self.backend = dim, num_heads, orders, backend
        self.angle_features = angle_features or -(-dim // 6)
        self._initial_reach = _reaches(reach, num_heads)
        self.value = nn.Linear(dim, 2 * dim, bias=bias)
        self.value_dropout = Dropout(value_dropout)
        self.eigenvalues = SIREN(dim, dim, dropout=eigenvalue_dropout)
        self.angles = SIREN(dim, num_heads * orders * 6 * self.angle_features, dropout=eigenvector_dropout)
        self.reach = nn.Parameter(torch.tensor(self._initial_reach))
        self.row_order = None if permutation is None else RowOrder(permutation, orders, length=length)

    def reset_parameters(self) -> None:
        """Everything as at construction: reach at its initial value, the parts by their own rules."""
        with torch.no_grad():
            self.reach.copy_(torch.tensor(self._initial_reach))
        for part in self.children():
            if callable(reset := getattr(part, "reset_parameters", None)):
                reset()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the positions: (B, N, D) → planar (B, N, 2, D)."""
        self._check(x, mask)
        values = self.value_dropout(self.value(x)).unflatten(-1, (2, self.dim))
        _, phase, lower, upper = self._generate(x, mask)
        rows = self._rows(x, mask)
        rows = rows.to(phase.dtype) if rows is not None and rows.is_floating_point() else rows
        out = synvolve(wide(values).to(phase.dtype), lower, upper, phase, permutation=rows, backend=self.backend)
        return out.to(x.dtype)

    def phase(self, eigenvalues: Tensor) -> Tensor:
        """Eigenphases φ of eigenvalues λ: here λ itself."""
        return eigenvalues

    def penalty(self) -> Tensor:
        """What the layer adds to the loss: nothing here, the kernel polynomial loss in :class:`Kernelution`."""
        return self.reach.new_zeros(())

    def digraph(self, x: Tensor, mask: Tensor | None = None) -> Digraph:
        """The digraph shift operator Φ^{-1} e^{iφ} Φ as a dense matrix (eq. digraph_conv_eigenvalue), for study.

        It is unitary (with a learned permutation: in evaluation mode). Head h of ``layer(x)`` is its matrix times the
        values of the head. Padded positions are connected to themselves alone.

        Example:
            >>> layer = Kernelution(8)
            >>> found = layer.digraph(torch.randn(3, 10, 8))
            >>> found.operator.shape, found.eigenphases.shape
            (torch.Size([3, 10, 10]), torch.Size([3, 10]))
        """
        self._check(x, mask)
        eigenvalues, phase, lower, upper = self._generate(x, mask)
        rows = self._rows(x, mask)
        phi = DHHP(lower, upper, permutation=None if rows is None else rows[:, None], backend=self.backend).dense()
        operator = phi.mH @ (torch.exp(1j * phase)[..., None] * phi)
        found = Digraph(operator, eigenvalues, phase, lower, upper)
        return Digraph(*(t.squeeze(1) for t in found)) if self.num_heads == 1 else found

    def _check(self, x: Tensor, mask: Tensor | None) -> None:
        if x.ndim != 3 or x.shape[-1] != self.dim or x.shape[1] < 1:
            raise ValueError(f"x has shape {tuple(x.shape)}: expected (B, N, D) with N ≥ 1 and D = {self.dim}")
        if mask is not None:
            if mask.dtype != torch.bool:
                raise TypeError(f"mask is {mask.dtype}: expected torch.bool, True where a position is real")
            check_shape("mask", mask, tuple(x.shape[:2]), "(B, N)")

    def _generate(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Eigenvalues and phases (B, H, N), lower and upper angles (B, H, L, N−1, 3); phase and angles 0 at padding."""
        eigenvalues = sine_means(self.eigenvalues.arguments(x), self.num_heads)  # (B, N, H)
        eigenvalues, phase = eigenvalues.transpose(1, 2), self.phase(eigenvalues).transpose(1, 2)
        features = self.angles.arguments(x).unflatten(-1, (self.num_heads, self.orders, -1))
        means = sine_means(features, 6, unit=True)  # FixNorm, then the mean of each group
        angles = (2 * math.pi * means).permute(0, 2, 3, 1, 4)  # (B, H, L, N, 6)
        gamma = F.pad(self.reach[:, None, None, None], (2, 0))  # (H, 1, 1, 3): nothing on α and β
        lower, upper = angles[..., :-1, :3] + gamma, angles[..., 1:, 3:] + gamma
        if mask is not None:  # a mask is a zero angle
            both = (mask[:, :-1] & mask[:, 1:])[:, None, None, :, None]
            lower, upper = torch.where(both, lower, 0.0), torch.where(both, upper, 0.0)
            phase = torch.where(mask[:, None], phase, 0.0)
        return eigenvalues, phase, lower.to(phase.dtype), upper.to(phase.dtype)

    def _rows(self, x: Tensor, mask: Tensor | None) -> Tensor | None:
        if self.row_order is None:
            return None
        if mask is None:
            mask = torch.ones(1, x.shape[1], dtype=torch.bool, device=x.device)
        rows: Tensor = self.row_order(mask)
        return rows

    def extra_repr(self) -> str:
        """The settings, for printing."""
        return f"{self.dim}, num_heads={self.num_heads}, orders={self.orders}, backend={self.backend!r}"


class Kernelution(Synvolution):
    """Synvolution with a learned filter, Kern(X W_V) = Φ^{-1} [e^{i p(Λ)} ⊙ (Φ X W_V)] (eq. kernelution).

    Args:
        dim: number of features D.
        order: degree K of the kernel polynomial p, at least 1 (a constant phase mixes nothing).
        basis, damping, basis_options, damping_options: of p, see :class:`~synvolution.KernelPolynomial`.
        options: those of :class:`Synvolution`.

    Shape:
        as in :class:`Synvolution`: x (B, N, D), mask (B, N) bool → planar (B, N, 2, D).

    Example:
        >>> layer = Kernelution(8, order=2, damping="jackson", orders=2, permutation="block")
        >>> x, mask = torch.randn(2, 10, 8), torch.arange(10) < torch.tensor([[10], [7]])
        >>> out = layer(x, mask)
        >>> torch.allclose(out[1:, :7], layer(x[1:, :7]), atol=1e-5)  # padding changes nothing
        True
    """

    def __init__(
        self,
        dim: int,
        *,
        order: int = 2,
        basis: str = "chebyshev",
        damping: str | None = None,
        basis_options: Mapping[str, float] | None = None,
        damping_options: Mapping[str, float] | None = None,
        num_heads: int = 1,
        reach: float | Sequence[float] | str = 0.0,
        orders: int = 1,
        permutation: str | Tensor | None = None,
        length: int | None = None,
        angle_features: int | None = None,
        value_dropout: float = 0.0,
        eigenvalue_dropout: float = 0.0,
        eigenvector_dropout: float = 0.0,
        bias: bool = True,
        backend: str = "auto",
    ) -> None:
        super().__init__(
            dim,
            num_heads=num_heads,
            reach=reach,
            orders=orders,
            permutation=permutation,
            length=length,
            angle_features=angle_features,
            value_dropout=value_dropout,
            eigenvalue_dropout=eigenvalue_dropout,
            eigenvector_dropout=eigenvector_dropout,
            bias=bias,
            backend=backend,
        )
        if order == 0:
            raise ValueError("order is 0: the phase would be constant and nothing mixed; expected K ≥ 1")
        self.polynomial = KernelPolynomial(
            order, basis, damping, basis_options=basis_options, damping_options=damping_options
        )

    def phase(self, eigenvalues: Tensor) -> Tensor:
        """Eigenphases φ = p(λ)."""
        phase: Tensor = self.polynomial(eigenvalues)
        return phase

    def penalty(self) -> Tensor:
        """Kernel polynomial loss Σ_k π k² |w_k|² (eq. kpl), a scalar."""
        return self.polynomial.penalty()


def _reaches(reach: float | Sequence[float] | str, heads: int) -> list[float]:
    """One initial γ per head."""
    if isinstance(reach, str):
        if reach != "spread":
            raise ValueError(f"reach is {reach!r}: expected a number, {heads} numbers, or 'spread'")
        first, last = SPREAD
        return [(first + last) / 2] if heads == 1 else [first + (last - first) * h / (heads - 1) for h in range(heads)]
    if isinstance(reach, int | float):
        return [float(reach)] * heads
    values = [float(r) for r in reach]
    if len(values) != heads:
        raise ValueError(f"reach has {len(values)} values for {heads} heads: give one for each, or a single number")
    return values
