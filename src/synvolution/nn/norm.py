"""Norms with one scale or none, for real features and for planar complex ones."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

#: Below this length a vector is divided by it instead of its own, so that zero has a finite value and gradient.
EPSILON = 1e-5


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
        return _unit(wide(x), self.planar).to(x.dtype)

    def extra_repr(self) -> str:
        """The settings, for printing."""
        return f"planar={self.planar}"


class ScaleNorm(nn.Module):
    """Learned length: s · x / ‖x‖ over the features, one scale s, initially √D (PostScaleNorm in the paper).

    Args:
        dim: number of features D.
        planar: whether inputs are planar complex, (..., 2, D), with the complex norm across both planes.

    Shape:
        (..., D) → (..., D), or (..., 2, D) → (..., 2, D); the dtype of x, computed in float32 at least. A vector
        shorter than 1e-5 is divided by that.

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

    def forward(self, x: Tensor) -> Tensor:
        """x at length s."""
        expected = (2, self.dim) if self.planar else (self.dim,)
        if tuple(x.shape[-len(expected) :]) != expected:
            letters = "(..., 2, D)" if self.planar else "(..., D)"
            raise ValueError(f"x has shape {tuple(x.shape)}: expected {letters} with D = {self.dim}")
        return (self.scale * _unit(wide(x), self.planar)).to(x.dtype)

    def extra_repr(self) -> str:
        """The settings, for printing."""
        return f"{self.dim}, planar={self.planar}"


def _unit(x: Tensor, planar: bool) -> Tensor:
    norm = torch.linalg.vector_norm(x, dim=(-2, -1) if planar else -1, keepdim=True)
    return x / norm.clamp_min(EPSILON)
