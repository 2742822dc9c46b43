"""Performer (Choromanski et al., Rethinking Attention with Performers, 2021), positive random features.

Ours: performer-pytorch 1.1.4 masks values but not keys, so that padding stays in the normaliser, and it imports
``distutils``, which Python 3.12 no longer has.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from synvolution.nn.mixers._attention import Attention, at_least_one, head_features
from synvolution.nn.mixers.linear import normalised_product
from synvolution.nn.norm import wide

#: Added to every feature, so that no row of weights is zero.
SMALLEST_FEATURE = 1e-6


class RandomFeatureAttention(nn.Module):
    """Softmax attention with exp(q·k) replaced by φ(q)·φ(k), φ(x) = exp(xW − |x|²/2)/√F, W orthogonal Gaussian.

    E φ(q)·φ(k) = exp(q·k). W is a buffer, drawn anew every ``redraw`` training steps.

    Args:
        head_dim: features D/H.
        features: F; None for the paper's (D/H) ln (D/H).
        redraw: training steps between two draws of W; None for never.

    Shape:
        q, k, v (B, H, N, D/H), real (B, N) bool → (B, H, N, D/H). Time O(NFD).

    Example:
        >>> q, k, v = torch.randn(3, 2, 4, 10, 8)
        >>> RandomFeatureAttention(8)(q, k, v, torch.ones(2, 10, dtype=torch.bool)).shape
        torch.Size([2, 4, 10, 8])
    """

    directions: Tensor
    steps: Tensor

    def __init__(self, head_dim: int, *, features: int | None = None, redraw: int | None = 1000) -> None:
        super().__init__()
        features = max(1, round(head_dim * math.log(head_dim))) if features is None else features
        at_least_one(features=features, redraw=1 if redraw is None else redraw)
        self.redraw = redraw
        self.register_buffer("directions", orthogonal_directions(head_dim, features))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        """Attend through random features."""
        if self.training and self.redraw is not None:
            self._count()
        scale = q.shape[-1] ** -0.25  # softmax attention divides the product of q and k by √(D/H)
        q, k = self._exponents(wide(q) * scale), self._exponents(wide(k) * scale)
        k = k.masked_fill(~real[:, None, :, None], -torch.inf)
        # a common factor of a query, or of all keys, cancels: taken out so that exp cannot overflow
        q = (q - q.amax(-1, keepdim=True).detach()).exp() + SMALLEST_FEATURE
        k = (k - k.amax((-1, -2), keepdim=True).detach()).exp() + SMALLEST_FEATURE * real[:, None, :, None]
        return normalised_product(q, k, wide(v), smallest=torch.finfo(q.dtype).tiny).to(v.dtype)

    def _exponents(self, x: Tensor) -> Tensor:
        return x @ self.directions.to(x.dtype) - x.square().sum(-1, keepdim=True) / 2

    def _count(self) -> None:
        with torch.no_grad():
            if self.redraw is not None and int(self.steps) >= self.redraw:
                self.directions.copy_(orthogonal_directions(*self.directions.shape))
                self.steps.zero_()
            self.steps += 1


def orthogonal_directions(rows: int, columns: int) -> Tensor:
    """Random (rows, columns): columns orthogonal in groups of ``rows``, each as long as a Gaussian vector.

    Example:
        >>> w = orthogonal_directions(4, 4)
        >>> bool((w.mT @ w - torch.diag(w.square().sum(0))).abs().max() < 1e-4)
        True
    """
    groups = []
    for _ in range(-(-columns // rows)):
        q, r = torch.linalg.qr(torch.randn(rows, rows))
        groups.append(q * r.diagonal().sign())  # without the signs the directions would not be uniform
    return torch.cat(groups, 1)[:, :columns] * torch.randn(rows, columns).norm(dim=0)


def performer(
    dim: int,
    *,
    num_heads: int = 1,
    max_length: int | None = None,
    dropout: float = 0.0,
    features: int | None = None,
    redraw: int | None = 1000,
    bias: bool = True,
) -> Attention:
    """Performer's attention; ``max_length`` is ignored.

    Example:
        >>> performer(8, num_heads=2, features=16)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """
    rule = RandomFeatureAttention(head_features(dim, num_heads), features=features, redraw=redraw)
    return Attention(dim, rule, num_heads=num_heads, dropout=dropout, bias=bias)
