"""Norms with one scale or none, for real features and for planar complex ones."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from synvolution.ops.norm import scale_norm, summed, unit


def wide(x: Tensor) -> Tensor:
    """float16 and bfloat16 → float32; anything else as it is. Norms, sines and rotations are computed like this.

    Example:
        >>> wide(torch.zeros(2, dtype=torch.bfloat16)).dtype, wide(torch.zeros(2, dtype=torch.float64)).dtype
        (torch.float32, torch.float64)
    """
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


class FixNorm(nn.Module):
    """Unit length: x / ‖x‖ over the features.

    Args:
        planar: whether inputs are planar complex, (..., 2, D), with the complex norm across both planes.

    Shape:
        (..., D) → (..., D), or (..., 2, D) → (..., 2, D); the dtype of x, computed in float32 at least. A vector
        shorter than 1e-5 is divided by that.

    Example:
        >>> [round(y, 4) for y in FixNorm()(torch.tensor([3.0, 4.0])).tolist()]
        [0.6, 0.8]
    """

    def __init__(self, planar: bool = False) -> None:
        super().__init__()
        self.planar = planar

    def forward(self, x: Tensor) -> Tensor:
        """x divided by its norm."""
        flat = wide(x).flatten(-2) if self.planar else wide(x)
        return unit(flat).reshape(x.shape).to(x.dtype)

    def extra_repr(self) -> str:
        """The settings, for printing."""
        return f"planar={self.planar}"


class ScaleNorm(nn.Module):
    """Learned length: s · x / ‖x‖ over the features, one scale s, initially √D (PostScaleNorm in the paper).

    Args:
        dim: number of features D.
        planar: whether inputs are planar complex, (..., 2, D), with the complex norm across both planes.

    Shape:
        x (..., D) → (..., D), or (..., 2, D) → (..., 2, D); the dtype of x, computed in float32 at least. A vector
        shorter than 1e-5 is divided by that. Added first: a residual (..., D), to the real plane of planar x; or, with
        a scalar ζ, ζ Re + (1−ζ) Im of a planar residual (..., 2, D). Dropout at ``rate`` comes last.

    Example:
        >>> ScaleNorm(4)(torch.tensor([3.0, 0.0, 4.0, 0.0])).norm().item()
        2.0
        >>> ScaleNorm(4, planar=True)(torch.ones(7, 2, 4)).shape
        torch.Size([7, 2, 4])
    """

    def __init__(self, dim: int, planar: bool = False) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim is {dim}: expected at least 1 feature")
        self.dim, self.planar = dim, planar
        self.scale = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """s = √D."""
        nn.init.constant_(self.scale, math.sqrt(self.dim))

    def forward(
        self, x: Tensor, residual: Tensor | None = None, zeta: Tensor | None = None, *, rate: float = 0.0
    ) -> Tensor:
        """x, plus the residual, at length s."""
        expected = (2, self.dim) if self.planar else (self.dim,)
        if tuple(x.shape[-len(expected) :]) != expected:
            letters = "(..., 2, D)" if self.planar else "(..., D)"
            raise ValueError(f"x has shape {tuple(x.shape)}: expected {letters} with D = {self.dim}")
        flat = x.flatten(-2) if self.planar else x
        other = residual if residual is None or zeta is None else residual.flatten(-2)
        if other is not None and (other.dtype != x.dtype or wide(x) is not x):  # sums in the layers' own precision
            flat, other, zeta = summed(flat, other, zeta), None, None
        out = scale_norm(wide(flat), self.scale, other, zeta, rate=rate)
        return out.reshape(x.shape).to(flat.dtype)

    def extra_repr(self) -> str:
        """The settings, for printing."""
        return f"{self.dim}, planar={self.planar}"
