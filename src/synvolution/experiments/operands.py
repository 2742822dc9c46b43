"""Random operands of the benchmarks."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def synvolve_operands(batch: int, n: int, d: int) -> list[Tensor]:
    """v (B, N, 2, D), lower and upper (B, N−1, 3), phase (B, N) in float32, all with gradient.

    Example:
        >>> [tuple(t.shape) for t in synvolve_operands(2, 5, 3)]
        [(2, 5, 2, 3), (2, 4, 3), (2, 4, 3), (2, 5)]
    """
    lower, upper = (2 * math.pi * torch.rand(batch, n - 1, 3) for _ in range(2))
    return [t.requires_grad_() for t in (torch.randn(batch, n, 2, d), lower, upper, torch.randn(batch, n))]
