"""The Transformer's attention (Vaswani et al., Attention Is All You Need, 2017). Ours, over torch's fused kernel."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from synvolution.nn.mixers._attention import Attention


class SoftmaxAttention(nn.Module):
    """softmax(Q K^T / √(D/H)) V over the real positions.

    Shape:
        q, k, v (B, H, N, D/H), real (B, N) bool or None → (B, H, N, D/H). Time O(N²D), memory O(ND).

    Example:
        >>> import torch
        >>> q, k, v = torch.randn(3, 2, 4, 10, 8)
        >>> SoftmaxAttention()(q, k, v, None).shape
        torch.Size([2, 4, 10, 8])
    """

    plain_if_full = True

    def forward(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None) -> Tensor:
        """Attend to every real position."""
        return F.scaled_dot_product_attention(q, k, v, None if real is None else real[:, None, None, :])


def vanilla(
    dim: int, *, num_heads: int = 1, max_length: int | None = None, dropout: float = 0.0, bias: bool = True
) -> Attention:
    """Softmax attention; ``max_length`` is ignored.

    Example:
        >>> vanilla(8, num_heads=2).num_heads
        2
    """
    return Attention(dim, SoftmaxAttention(), num_heads=num_heads, dropout=dropout, bias=bias)
