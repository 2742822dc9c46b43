"""Dense matrices built from the definition, and comparisons that raise. Every tolerance of the tests is here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

#: Largest allowed |difference| relative to the largest entry, by dtype.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def assert_near(found: Tensor, expected: Tensor, tolerance: float | None = None, what: str = "") -> None:
    """found equals expected, relative to the largest entry; NaN never does."""
    assert found.shape == expected.shape, f"{what}: shape {tuple(found.shape)} instead of {tuple(expected.shape)}"
    if found.numel() == 0:
        return
    real = found.real if found.is_complex() else found
    bound = TOLERANCE[real.dtype] if tolerance is None else tolerance
    wide = torch.complex128 if found.is_complex() or expected.is_complex() else torch.float64
    found, expected = found.detach().to(wide), expected.detach().to(wide)
    distance = (found - expected).abs().max().item()
    scale = max(1.0, expected.abs().max().item())
    assert distance <= bound * scale, f"{what}: off by {distance:.3g} where {bound * scale:.3g} is allowed"


def gradients(function: Callable[..., Tensor], inputs: Sequence[Tensor], seed: int = 0) -> tuple[Tensor, ...]:
    """Output and gradients of a fixed random functional of the output, for all inputs."""
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    out = function(*leaves)
    generator = torch.Generator().manual_seed(seed)
    real = torch.view_as_real(out) if out.is_complex() else out
    weight = torch.randn(real.shape, dtype=torch.float64, generator=generator).to(real)
    found = torch.autograd.grad((real * weight).sum(), leaves, materialize_grads=True)
    return out.detach(), *found


def assert_same_gradients(
    function: Callable[..., Tensor], oracle: Callable[..., Tensor], inputs: Sequence[Tensor]
) -> None:
    """Values and all gradients of two functions agree."""
    for k, (found, expected) in enumerate(zip(gradients(function, inputs), gradients(oracle, inputs), strict=True)):
        assert_near(found, expected, what="value" if k == 0 else f"gradient of input {k - 1}")


def to_complex(x: Tensor) -> Tensor:
    """Planar (..., N, 2, D) → complex (..., N, D)."""
    return torch.complex(x[..., 0, :], x[..., 1, :])


def to_planar(x: Tensor) -> Tensor:
    """Complex (..., N, D) → planar (..., N, 2, D)."""
    return torch.stack((x.real, x.imag), -2)


def rotation_matrix(angles: Tensor) -> Tensor:
    """The 2×2 matrix G, (..., 2, 2), entry by entry from eq. givens_rotation_matrix."""
    alpha, beta, gamma = angles.unbind(-1)
    cos, sin = torch.cos(gamma / 2), torch.sin(gamma / 2)
    first = torch.exp(-1j * (alpha + beta) / 2) * cos, -torch.exp(1j * (alpha - beta) / 2) * sin
    second = torch.exp(-1j * (alpha - beta) / 2) * sin, torch.exp(1j * (alpha + beta) / 2) * cos
    return torch.stack((torch.stack(first, -1), torch.stack(second, -1)), -2)


def dense_chain(angles: Tensor, upper: bool) -> Tensor:
    """H_u = G_0 … G_{N−2} or H_l = G_{N−2} … G_0 from angles (..., N−1, 3), multiplied out from the left."""
    n = angles.shape[-2] + 1
    matrix = torch.eye(n, dtype=torch.promote_types(angles.dtype, torch.complex64)).expand(*angles.shape[:-2], n, n)
    for j in range(n - 1) if upper else range(n - 2, -1, -1):
        columns = matrix[..., j : j + 2] @ rotation_matrix(angles[..., j, :])
        matrix = torch.cat((matrix[..., :j], columns, matrix[..., j + 2 :]), -1)
    return matrix


def dense_dhhp(
    lower: Tensor, upper: Tensor, diagonal: Tensor | None = None, permutations: Tensor | None = None
) -> Tensor:
    """D ∏_l H_l H_u P from angles (..., L, N−1, 3), phases (..., N) and permutation matrices (..., L, N, N)."""
    n = lower.shape[-2] + 1
    dtype = torch.promote_types(lower.dtype, torch.complex64)
    matrix = torch.eye(n, dtype=dtype).expand(*lower.shape[:-3], n, n)
    for order in range(lower.shape[-3]):
        matrix = matrix @ dense_chain(lower[..., order, :, :], False) @ dense_chain(upper[..., order, :, :], True)
        if permutations is not None:
            matrix = matrix @ permutations[..., order, :, :].to(dtype)
    return matrix if diagonal is None else torch.exp(1j * diagonal)[..., None] * matrix


def dense_synvolve(
    v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, permutations: Tensor | None = None
) -> Tensor:
    """Φ^H diag(e^{iφ}) Φ v for planar v (B, N, 2, D), angles (B, L, N−1, 3)."""
    matrix = dense_dhhp(lower, upper, None, permutations)
    return to_planar(matrix.mH @ (torch.exp(1j * phase)[..., None] * (matrix @ to_complex(v))))
