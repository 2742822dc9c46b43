"""From a matrix to angles: any unitary matrix as a DHHP of ⌊N/2⌋ orders, any square matrix as an LHHP."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

#: Entries of a unitary matrix below this are rounding: rotating by them would give arbitrary angles.
NEGLIGIBLE = 8 * np.finfo(np.float64).eps

#: Largest entry of |U^H U − I| that still counts as rounding.
UNITARY_TOLERANCE = {torch.complex64: 1e-4, torch.complex128: 1e-9}


def factorize_unitary(u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Angles and diagonal of the DHHP D ∏_l H_l H_u that equals U, with ⌊N/2⌋ orders (docs/math.md, Universality).

    Elimination from the right: rotations N−2 … 0 turn the first row into e_0, rotations 1 … N−2 the last one into
    e_{N−1}; this is one H_l H_u, and the block that is left is two smaller. Computed in float64, not differentiable.

    Args:
        u: (..., N, N) unitary, real or complex.

    Returns:
        lower, upper: (..., L, N−1, 3) angles with L = max(1, ⌊N/2⌋); diagonal: (..., N) phases δ, D = diag(e^{iδ}).

    Example:
        >>> lower, upper, diagonal = factorize_unitary(torch.eye(4))
        >>> lower.shape, bool((upper == 0).all())
        (torch.Size([2, 3, 3]), True)
    """
    check_square("matrix", u)
    complex_dtype = torch.promote_types(u.dtype, torch.complex64)
    work = u.detach().to("cpu", torch.complex128).resolve_conj()
    _check_unitary(work, UNITARY_TOLERANCE[complex_dtype])
    n = u.shape[-1]
    rest = work.reshape(-1, n, n).numpy().copy()
    orders = max(1, n // 2)
    lower, upper = (np.zeros((len(rest), orders, n - 1, 3)) for _ in range(2))
    for step in range(n // 2):
        order, last = orders - 1 - step, n - 1 - step
        for j in range(last - 1, step - 1, -1):
            upper[:, order, j] = _eliminate(rest, row=step, j=j, keep_first=True)
        for j in range(step + 1, last):
            lower[:, order, j] = _eliminate(rest, row=last, j=j, keep_first=False)
    diagonal = np.angle(np.diagonal(rest, axis1=-2, axis2=-1))
    real_dtype = torch.empty((), dtype=complex_dtype).real.dtype
    shapes = (orders, n - 1, 3), (orders, n - 1, 3), (n,)
    lower_t, upper_t, diagonal_t = (
        torch.from_numpy(found.reshape(*u.shape[:-2], *shape)).to(u.device, real_dtype)
        for found, shape in zip((lower, upper, diagonal), shapes, strict=True)
    )
    return lower_t, upper_t, diagonal_t


def _eliminate(rest: np.ndarray, row: int, j: int, keep_first: bool) -> np.ndarray:
    """Multiply columns j, j+1 of rest (B, N, N) by G^H from the right so that one entry of the row becomes zero.

    Returns:
        (B, 3) angles of G; β is free and stays 0.
    """
    first, second = (np.where(abs(c) < NEGLIGIBLE, 0, c) for c in (rest[:, row, j], rest[:, row, j + 1]))
    if keep_first:
        alpha, gamma = np.angle(-second * first.conj()), 2 * np.arctan2(abs(second), abs(first))
    else:
        alpha, gamma = np.angle(second * first.conj()), 2 * np.arctan2(abs(first), abs(second))
    alpha = np.where((first == 0) | (second == 0), 0.0, alpha)
    a, b = np.exp(-0.5j * alpha) * np.cos(gamma / 2), -np.exp(0.5j * alpha) * np.sin(gamma / 2)
    adjoint = np.stack((np.stack((a.conj(), -b), -1), np.stack((b.conj(), a), -1)), -2)
    rest[:, :, j : j + 2] = rest[:, :, j : j + 2] @ adjoint
    rest[:, row, j + 1 if keep_first else j] = 0
    return np.stack((alpha, np.zeros_like(alpha), gamma), -1)


def lq(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """A = T U with T lower triangular and U unitary (eq. givens_lq).

    Computed in float64 by numpy, not differentiable: for a matrix of ones torch's factorisation gives NaN on some
    processors (complex64 of size 10, torch 2.13 with MKL 2024.2 and AVX-512).

    Args:
        matrix: (..., N, N), any square matrix, singular ones included.

    Returns:
        T, U: (..., N, N) complex.

    Example:
        >>> triangular, unitary = lq(torch.tensor([[0.0, 2.0], [1.0, 1.0]]))
        >>> torch.allclose((triangular @ unitary).real, torch.tensor([[0.0, 2.0], [1.0, 1.0]]), atol=1e-6)
        True
    """
    check_square("matrix", matrix)
    complex_dtype = torch.promote_types(matrix.dtype, torch.complex64)
    work = matrix.detach().to("cpu", torch.complex128).mH.resolve_conj().numpy()
    q, r = (torch.from_numpy(factor).to(matrix.device, complex_dtype) for factor in np.linalg.qr(work))
    return r.mH.tril(), q.mH


def check_square(name: str, matrix: Tensor) -> None:
    """matrix is (..., N, N), floating or complex, N ≥ 1, finite."""
    if not isinstance(matrix, Tensor):
        raise TypeError(f"{name} is a {type(matrix).__name__}: expected a torch.Tensor")
    if matrix.dtype not in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        raise TypeError(f"{name} is {matrix.dtype}: expected float32, float64, complex64 or complex128")
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] < 1:
        raise ValueError(f"{name} has shape {tuple(matrix.shape)}: expected (..., N, N) with N ≥ 1")
    if not bool(torch.isfinite(matrix).all()):
        raise ValueError(f"{name} holds NaN or infinite values: it cannot be factorised")


def _check_unitary(u: Tensor, tolerance: float) -> None:
    distance = (u.mH @ u - torch.eye(u.shape[-1], dtype=u.dtype)).abs().max().item() if u.numel() else 0.0
    if distance > tolerance:
        raise ValueError(
            f"matrix is not unitary: the largest entry of |U^H U - I| is {distance:.3g}, allowed is {tolerance:.0g}; "
            "for any square matrix use LHHP.from_matrix"
        )
