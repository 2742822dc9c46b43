"""Luna (Ma et al., Luna: Linear Unified Nested Attention, 2021). Ours: no package offers it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synvolution.nn.mixers._attention import Attention, at_least_one, merge_heads, split_heads


class NestedAttention(nn.Module):
    """Y_P = Attn(P, X), Y = Attn(X, Y_P): a learned sequence P gathers from x, then x reads from what it gathered.

    In the paper P travels from layer to layer; here every mixer has its own, as everything around it is held equal.

    Args:
        dim: number of features D.
        num_heads: H.
        memory: length of P; the paper's Luna-256 has 256.
        bias: whether the projections of P and Y_P have one.

    Shape:
        q, k, v (B, H, N, D/H), real (B, N) bool → (B, H, N, D/H). Time O(N · memory · D).

    Example:
        >>> q, k, v = torch.randn(3, 2, 4, 10, 8)
        >>> NestedAttention(32, 4)(q, k, v, torch.ones(2, 10, dtype=torch.bool)).shape
        torch.Size([2, 4, 10, 8])
    """

    def __init__(self, dim: int, num_heads: int, *, memory: int = 256, bias: bool = True) -> None:
        super().__init__()
        at_least_one(memory=memory)
        self.dim, self.num_heads = dim, num_heads
        self.memory = nn.Parameter(torch.empty(memory, dim))
        self.memory_query = nn.Linear(dim, dim, bias=bias)
        self.gathered_key = nn.Linear(dim, dim, bias=bias)
        self.gathered_value = nn.Linear(dim, dim, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """P as an embedding; the linear maps have their own rule."""
        nn.init.normal_(self.memory, std=self.dim**-0.5)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        """Gather into the memory, then read from it."""
        asked = split_heads(self.memory_query(self.memory)[None], self.num_heads).expand(q.shape[0], -1, -1, -1)
        gathered = merge_heads(F.scaled_dot_product_attention(asked, k, v, real[:, None, None]))
        key, value = (split_heads(part(gathered), self.num_heads) for part in (self.gathered_key, self.gathered_value))
        return F.scaled_dot_product_attention(q, key, value)


def luna(
    dim: int,
    *,
    num_heads: int = 1,
    max_length: int | None = None,
    dropout: float = 0.0,
    memory: int = 256,
    bias: bool = True,
) -> Attention:
    """Luna's attention; ``max_length`` is ignored.

    Example:
        >>> luna(8, num_heads=2, memory=16)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """
    rule = NestedAttention(dim, num_heads, memory=memory, bias=bias)
    return Attention(dim, rule, num_heads=num_heads, dropout=dropout, bias=bias)
