"""LHHP: any square matrix as a triangle times a product of Hessenberg chains."""

from __future__ import annotations

import torch
from torch import Tensor

from synvolution.ops.dhhp import DHHP, Adjoint, check_columns
from synvolution.ops.factorize import check_square, factorize_unitary, lq


class LHHP:
    """Order-L LHHP operator Φ = T ∏_l H_l H_u P (eq. givens_lhhp): any square matrix, as a triangle times a DHHP.

    Args:
        triangular: (..., N, N) lower triangular, real or complex.
        unitary: the DHHP beside it, usually without diagonal.

    Example:
        >>> matrix = torch.randn(5, 5, dtype=torch.float64)
        >>> op = LHHP.from_matrix(matrix)
        >>> torch.allclose(op.dense(), matrix.to(torch.complex128))
        True
    """

    def __init__(self, triangular: Tensor, unitary: DHHP) -> None:
        check_square("triangular", triangular)
        if triangular.shape[-1] != unitary.n:
            raise ValueError(f"triangular is {triangular.shape[-1]} rows wide, the DHHP has {unitary.n} positions")
        if bool((triangular.triu(1) != 0).any()):
            raise ValueError("triangular has entries above the diagonal: pass triangular.tril()")
        if triangular.dtype not in (unitary.lower.dtype, unitary.dtype):
            raise TypeError(f"triangular is {triangular.dtype} but the DHHP computes in {unitary.dtype}")
        if triangular.device != unitary.device:
            raise ValueError(f"triangular is on {triangular.device} but the DHHP is on {unitary.device}")
        self.triangular, self.unitary = triangular.to(unitary.dtype), unitary
        self.n, self.orders = unitary.n, unitary.orders
        batch = torch.broadcast_shapes(triangular.shape[:-2], unitary.batch_shape)
        self.shape = torch.Size((*batch, self.n, self.n))

    @classmethod
    def from_matrix(cls, matrix: Tensor) -> LHHP:
        """The LHHP that equals any square matrix (..., N, N), by LQ factorisation (eq. givens_lq).

        Example:
            >>> LHHP.from_matrix(torch.zeros(3, 3)).dense().abs().max().item()
            0.0
        """
        triangular, unitary = lq(matrix)
        lower, upper, diagonal = factorize_unitary(unitary)
        phases = torch.polar(torch.ones_like(diagonal), diagonal)
        return cls(triangular * phases[..., None, :], DHHP(lower, upper))

    @property
    def dtype(self) -> torch.dtype:
        """complex64 or complex128: the dtype of results."""
        return self.unitary.dtype

    @property
    def device(self) -> torch.device:
        """Where the operator computes."""
        return self.unitary.device

    @property
    def H(self) -> Adjoint:
        """The adjoint; the inverse is :meth:`solve`."""
        return Adjoint(self)

    def __matmul__(self, x: Tensor) -> Tensor:
        """Φ x for x (N,) or (..., N, D)."""
        return self._apply(x, adjoint=False)

    def solve(self, x: Tensor) -> Tensor:
        """Φ^{-1} x for x (N,) or (..., N, D), by forward substitution and un-rotation."""
        x = check_columns(self, x)
        columns = x[:, None] if x.ndim == 1 else x
        found = self.unitary.H @ torch.linalg.solve_triangular(self.triangular, columns, upper=False)
        return found[..., 0] if x.ndim == 1 else found

    def dense(self) -> Tensor:
        """The matrix Φ, (..., N, N) complex."""
        return self.triangular @ self.unitary.dense()

    def __repr__(self) -> str:
        return f"LHHP(n={self.n}, orders={self.orders}, batch={tuple(self.shape[:-2])}, dtype={self.dtype})"

    def _apply(self, x: Tensor, adjoint: bool) -> Tensor:
        x = check_columns(self, x)
        if x.ndim == 1:
            return self._apply(x[:, None], adjoint)[..., 0]
        return self.unitary.H @ (self.triangular.mH @ x) if adjoint else self.triangular @ (self.unitary @ x)
