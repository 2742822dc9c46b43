"""Linear Transformer (Katharopoulos et al., Transformers are RNNs, 2020).

Ours: linear-attention-transformer 0.19.1 computes another method under that name (softmax over features of queries
and over positions of keys, Shen et al., 2021), and brings eight more packages.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from synvolution.nn.mixers._attention import Attention


class KernelAttention(nn.Module):
    """φ(Q) (φ(K)^T V) / φ(Q) (φ(K)^T 1) with φ(x) = elu(x) + 1.

    Shape:
        q, k, v (B, H, N, D/H), real (B, N) bool → (B, H, N, D/H). Time O(ND²/H).

    Example:
        >>> import torch
        >>> q, k, v = torch.randn(3, 2, 4, 10, 8)
        >>> KernelAttention()(q, k, v, torch.ones(2, 10, dtype=torch.bool)).shape
        torch.Size([2, 4, 10, 8])
    """

    def forward(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        """Attend through the feature map."""
        return normalised_product(F.elu(q) + 1, (F.elu(k) + 1) * real[:, None, :, None], v)


def normalised_product(q: Tensor, k: Tensor, v: Tensor, smallest: float = 1e-6) -> Tensor:
    """Rows of (q k^T) v divided by the rows' sums of q k^T, by way of k^T v: q, k (…, N, F) ≥ 0, v (…, N, E).

    Example:
        >>> import torch
        >>> q, k, v = torch.rand(3, 5, 4)
        >>> weights = q @ k.mT
        >>> torch.allclose(normalised_product(q, k, v), weights @ v / weights.sum(-1, keepdim=True), atol=1e-5)
        True
    """
    total = q @ k.sum(-2)[..., None]  # (…, N, 1)
    return q @ (k.mT @ v) / total.clamp_min(smallest)


def linear(
    dim: int, *, num_heads: int = 1, max_length: int | None = None, dropout: float = 0.0, bias: bool = True
) -> Attention:
    """Linear attention; ``max_length`` is ignored.

    Example:
        >>> import torch
        >>> linear(8, num_heads=2)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """
    return Attention(dim, KernelAttention(), num_heads=num_heads, dropout=dropout, bias=bias)
