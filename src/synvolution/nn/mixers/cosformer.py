"""cosFormer (Qin et al., cosFormer: Rethinking Softmax in Attention, 2022). Ours: no package offers it."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from synvolution.nn.mixers._attention import Attention
from synvolution.nn.mixers.linear import normalised_product
from synvolution.nn.norm import wide


class CosineAttention(nn.Module):
    """Weights ReLU(q_i)·ReLU(k_j) cos(π/2 · (i − j)/M), normalised over j, M a sequence's length.

    cos(a − b) = cos a cos b + sin a sin b makes it a product of features, so the cost is linear.

    Shape:
        q, k, v (B, H, N, D/H), real (B, N) bool → (B, H, N, D/H). Time O(ND²/H).

    Example:
        >>> q, k, v = torch.randn(3, 2, 4, 10, 8)
        >>> CosineAttention()(q, k, v, torch.ones(2, 10, dtype=torch.bool)).shape
        torch.Size([2, 4, 10, 8])
    """

    def forward(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        """Attend, near positions more than far ones."""
        length, place = real.sum(1, keepdim=True), torch.arange(q.shape[2], device=q.device)
        angle = (math.pi / 2) * place.to(wide(q).dtype) / length  # (B, N); float16 ends at 65504 positions
        turn = torch.stack((angle.cos(), angle.sin()), -1)[:, None, :, :, None].to(q.dtype)  # (B, 1, N, 2, 1)
        q, k = torch.relu(q), torch.relu(k) * real[:, None, :, None]
        q, k = ((t[..., None, :] * turn).flatten(-2) for t in (q, k))  # (B, H, N, 2D/H)
        return normalised_product(q, k, v)


def cosformer(
    dim: int, *, num_heads: int = 1, max_length: int | None = None, dropout: float = 0.0, bias: bool = True
) -> Attention:
    """cosFormer's attention; ``max_length`` is ignored: every sequence is weighted over its own length.

    Example:
        >>> cosformer(8, num_heads=2)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """
    return Attention(dim, CosineAttention(), num_heads=num_heads, dropout=dropout, bias=bias)
