"""DHHP: a product of Hessenberg chains as a matrix-free unitary operator."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from synvolution.ops import _backends, transforms
from synvolution.ops._checks import check_angles, check_beside, check_index, check_real
from synvolution.ops._reference import permute_rows, phase_product
from synvolution.ops.factorize import factorize_unitary
from synvolution.ops.givens import lower_chain, upper_chain


class Adjoint:
    """The adjoint of an operator, itself an operator: ``op.H``."""

    def __init__(self, op: Any) -> None:
        self.H = op
        self.n, self.orders, self.shape = op.n, op.orders, op.shape

    def __matmul__(self, x: Tensor) -> Tensor:
        """Φ^H x; shapes as for the operator itself."""
        return self.H._apply(x, adjoint=True)

    def dense(self) -> Tensor:
        """The matrix Φ^H, (..., N, N) complex."""
        return self.H.dense().mH

    def __repr__(self) -> str:
        return f"{self.H!r}.H"


class DHHP:
    """Structured unitary operator of order L, Φ = D ∏_{l=1..L} H_l^(l) H_u^(l) P^(l) (eq. givens_lhhp).

    Exactly unitary for any angles; applied in O(L N) operations per column without forming the matrix; differentiable
    with respect to angles, diagonal and input.

    Args:
        lower, upper: (..., L, N−1, 3) angles α, β, γ of the chains H_l and H_u.
        diagonal: (..., N) phases δ with D = diag(e^{iδ}); None for the identity.
        permutation: None for the identity; int64 rows (N,), (L, N) or (..., L, N) with (P x)_i = x_{permutation[i]};
            or float matrices (N, N), (L, N, N) or (..., L, N, N), e.g. soft permutations while they are learned (the
            operator is then unitary only as far as these are).
        backend: "auto", or one of ``_backends.BACKENDS``.

    Example:
        >>> op = DHHP.random(6, orders=2)
        >>> x = torch.randn(6, 3)
        >>> torch.allclose(op.H @ (op @ x), x.to(torch.complex64), atol=1e-5)
        True
        >>> torch.allclose(op @ x, op.dense() @ x.to(torch.complex64), atol=1e-5)
        True
    """

    def __init__(
        self,
        lower: Tensor,
        upper: Tensor,
        diagonal: Tensor | None = None,
        permutation: Tensor | None = None,
        *,
        backend: str = "auto",
    ) -> None:
        _backends.check_backend(backend)
        check_real(lower=lower, upper=upper, diagonal=diagonal)
        for name, angles in (("lower", lower), ("upper", upper)):
            check_angles(name, angles)
            if angles.ndim < 3 or angles.shape[-3] < 1:
                raise ValueError(f"{name} has shape {tuple(angles.shape)}: expected (..., L, N-1, 3) with L ≥ 1 orders")
        if lower.shape != upper.shape:
            raise ValueError(f"lower has shape {tuple(lower.shape)}, upper {tuple(upper.shape)}: give both the same")
        self.lower, self.upper, self.diagonal, self.backend = lower, upper, diagonal, backend
        self.orders, self.n = lower.shape[-3], lower.shape[-2] + 1
        if diagonal is not None and diagonal.shape[-1:] != (self.n,):
            raise ValueError(
                f"diagonal has shape {tuple(diagonal.shape)}: expected (..., {self.n}), one phase per position"
            )
        self.permutation = self._check_permutation(permutation)
        batches = [lower.shape[:-3]]
        batches += [] if diagonal is None else [diagonal.shape[:-1]]
        batches += [] if self.permutation is None else [self._permutation_batch(self.permutation)]
        self.batch_shape = torch.broadcast_shapes(*batches)
        self.shape = torch.Size((*self.batch_shape, self.n, self.n))

    def _check_permutation(self, permutation: Tensor | None) -> Tensor | None:
        """→ (..., L, N) row numbers or (..., L, N, N) matrices."""
        if permutation is None:
            return None
        check_beside("permutation", permutation, self.lower)
        if not permutation.is_floating_point():
            check_index("permutation", permutation, self.n)
            own, letters = 1, "(N,), (L, N) or (..., L, N)"
        else:
            check_real(lower=self.lower, permutation=permutation)
            own, letters = 2, "(N, N), (L, N, N) or (..., L, N, N)"
        full = permutation.unsqueeze(0) if permutation.ndim == own else permutation
        if full.ndim <= own or full.shape[-own:] != (self.n,) * own or full.shape[-own - 1] not in (1, self.orders):
            raise ValueError(
                f"permutation has shape {tuple(permutation.shape)}: expected {letters} "
                f"with L = {self.orders}, N = {self.n}"
            )
        return full.expand(*full.shape[: -own - 1], self.orders, *full.shape[-own:])

    @staticmethod
    def _permutation_batch(full: Tensor) -> torch.Size:
        return full.shape[:-3] if full.is_floating_point() else full.shape[:-2]

    @property
    def dtype(self) -> torch.dtype:
        """complex64 or complex128: the dtype of results."""
        return torch.complex64 if self.lower.dtype == torch.float32 else torch.complex128

    @property
    def device(self) -> torch.device:
        """Where the angles are."""
        return self.lower.device

    @property
    def H(self) -> Adjoint:
        """The adjoint, which is the inverse."""
        return Adjoint(self)

    def __matmul__(self, x: Tensor) -> Tensor:
        """Φ x.

        Args:
            x: (N,) or (..., N, D), real or complex, of the operator's precision; leading sizes broadcast.

        Returns:
            same shape, complex.
        """
        return self._apply(x, adjoint=False)

    def dense(self) -> Tensor:
        """The matrix Φ, (..., N, N) complex."""
        return self @ torch.eye(self.n, dtype=self.dtype, device=self.device)

    def __repr__(self) -> str:
        return f"DHHP(n={self.n}, orders={self.orders}, batch={tuple(self.batch_shape)}, dtype={self.dtype})"

    def _apply(self, x: Tensor, adjoint: bool) -> Tensor:
        x = check_columns(self, x)
        if x.ndim == 1:
            return self._apply(x[:, None], adjoint)[..., 0]
        if not self.batch_shape and x.ndim > 2:  # one operator for all: batch entries are just more columns
            columns = x.movedim(-2, 0)
            return self._apply(columns.flatten(1), adjoint).unflatten(1, columns.shape[1:]).movedim(0, -2)
        s = torch.view_as_real(x).transpose(-1, -2)  # (..., N, 2, D)
        batch = torch.broadcast_shapes(s.shape[:-3], self.batch_shape)
        s = s.expand(*batch, *s.shape[-3:])
        s = self._adjoint_stages(s) if adjoint else self._stages(s)
        return torch.view_as_complex(s.transpose(-1, -2).contiguous())

    def _stages(self, s: Tensor) -> Tensor:
        for order in reversed(range(self.orders)):
            s = self._permute(s, order, back=False)
            s = upper_chain(s, self.upper[..., order, :, :], backend=self.backend)
            s = lower_chain(s, self.lower[..., order, :, :], backend=self.backend)
        return s if self.diagonal is None else phase_product(self.diagonal, s)

    def _adjoint_stages(self, s: Tensor) -> Tensor:
        s = s if self.diagonal is None else phase_product(-self.diagonal, s)
        for order in range(self.orders):
            s = lower_chain(s, self.lower[..., order, :, :], adjoint=True, backend=self.backend)
            s = upper_chain(s, self.upper[..., order, :, :], adjoint=True, backend=self.backend)
            s = self._permute(s, order, back=True)
        return s

    def _permute(self, s: Tensor, order: int, back: bool) -> Tensor:
        """P s or P^H s for planar s (..., N, 2, D)."""
        if self.permutation is None:
            return s
        if self.permutation.is_floating_point():
            matrix = self.permutation[..., order, :, :]
            return torch.einsum("...ji,...jcd->...icd" if back else "...ij,...jcd->...icd", matrix, s)
        index = self.permutation[..., order, :]
        index = (index.argsort(-1) if back else index).expand(*s.shape[:-3], self.n)
        count = math.prod(s.shape[:-3])
        rows = permute_rows(s.reshape(count, *s.shape[-3:]), index.reshape(count, self.n))
        return rows.reshape(s.shape)

    @classmethod
    def random(
        cls,
        n: int,
        orders: int = 1,
        *,
        batch: tuple[int, ...] = (),
        permutation: Tensor | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        generator: torch.Generator | None = None,
    ) -> DHHP:
        """A DHHP with all angles uniform in [0, 2π).

        Example:
            >>> DHHP.random(5, orders=2, batch=(3,)).shape
            torch.Size([3, 5, 5])
        """
        if n < 1 or orders < 1:
            raise ValueError(f"n = {n}, orders = {orders}: both must be at least 1")
        lower, upper, diagonal = (
            2 * math.pi * torch.rand(*batch, *shape, dtype=dtype, device=device, generator=generator)
            for shape in ((orders, n - 1, 3), (orders, n - 1, 3), (n,))
        )
        return cls(lower, upper, diagonal, permutation)

    @classmethod
    def from_unitary(cls, matrix: Tensor) -> DHHP:
        """The DHHP of ⌊N/2⌋ orders that equals a unitary matrix (..., N, N), to rounding.

        Example:
            >>> u = torch.linalg.qr(torch.randn(5, 5, dtype=torch.complex128)).Q
            >>> torch.allclose(DHHP.from_unitary(u).dense(), u)
            True
        """
        return cls(*factorize_unitary(matrix))

    @classmethod
    def _from_transform(cls, matrix: Any, inverse: bool, dtype: torch.dtype | None) -> DHHP:
        u = torch.from_numpy(matrix).to(torch.complex128)
        found = factorize_unitary(u.mH if inverse else u)
        return cls(*(t.to(dtype or torch.get_default_dtype()) for t in found))

    @classmethod
    def dft(cls, n: int, *, inverse: bool = False, dtype: torch.dtype | None = None) -> DHHP:
        """The orthonormal discrete Fourier transform (``norm="ortho"``) or its inverse.

        Example:
            >>> op, x = DHHP.dft(8, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
            >>> torch.allclose(op @ x, torch.fft.fft(x, norm="ortho"))
            True
        """
        return cls._from_transform(transforms.dft_matrix(n), inverse, dtype)

    @classmethod
    def dct(cls, n: int, *, type: int = 2, inverse: bool = False, dtype: torch.dtype | None = None) -> DHHP:
        """The orthonormal discrete cosine transform of type 1 to 4, as scipy's, or its inverse.

        Example:
            >>> torch.allclose(DHHP.dct(8).dense().imag, torch.zeros(8, 8), atol=1e-6)
            True
        """
        return cls._from_transform(transforms.dct_matrix(n, type), inverse, dtype)

    @classmethod
    def dst(cls, n: int, *, type: int = 2, inverse: bool = False, dtype: torch.dtype | None = None) -> DHHP:
        """The orthonormal discrete sine transform of type 1 to 4, as scipy's, or its inverse.

        Example:
            >>> torch.allclose(DHHP.dst(8, type=1).dense(), DHHP.dst(8, type=1, inverse=True).dense(), atol=1e-6)
            True
        """
        return cls._from_transform(transforms.dst_matrix(n, type), inverse, dtype)

    @classmethod
    def hadamard(cls, n: int, *, inverse: bool = False, dtype: torch.dtype | None = None) -> DHHP:
        """The orthonormal Walsh–Hadamard transform in natural order, N a power of two; it is its own inverse.

        Example:
            >>> torch.allclose(DHHP.hadamard(4).dense().abs(), torch.full((4, 4), 0.5), atol=1e-6)
            True
        """
        return cls._from_transform(transforms.hadamard_matrix(n), inverse, dtype)


def check_columns(op: Any, x: Tensor) -> Tensor:
    """x is (N,) or (..., N, D) of the operator's precision; returned as complex."""
    if not isinstance(x, Tensor):
        raise TypeError(f"the operand is a {type(x).__name__}: expected a torch.Tensor")
    allowed = (torch.float32, torch.complex64) if op.dtype == torch.complex64 else (torch.float64, torch.complex128)
    if x.dtype not in allowed:
        raise TypeError(
            f"the operand is {x.dtype}, the operator computes in {op.dtype}: expected {allowed[0]} or {allowed[1]}"
        )
    if x.device != op.device:
        raise ValueError(f"the operand is on {x.device}, the operator on {op.device}: move one with .to(device)")
    length = x.shape[-1 if x.ndim == 1 else -2] if x.ndim else 0
    if length != op.n:
        raise ValueError(f"the operand has shape {tuple(x.shape)}: expected ({op.n},) or (..., {op.n}, D)")
    return x.to(op.dtype).resolve_conj()
