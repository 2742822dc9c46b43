"""Linformer (Wang et al., Linformer: Self-Attention with Linear Complexity, 2020).

Adapter over the package linformer (0.2.3).
"""

from __future__ import annotations

from torch import Tensor, nn

from synvolution.nn.mixers._attention import (
    at_least_one,
    check_input,
    head_features,
    needed_length,
    needed_package,
    pack,
    unpack,
)


class LinformerAttention(nn.Module):
    """softmax(Q (E K)^T / √(D/H)) (F V), with E and F learned projections of the positions to a few.

    The method has no mask. Padded rows are moved behind the real ones and are zero, and keys and values have no bias,
    so E and F add up real rows alone.

    Args:
        dim: number of features D.
        num_heads: H.
        max_length: longest sequence.
        projected: how many positions remain, k of the paper; no more than ``max_length``.
        dropout: rate on the attention weights, where the package has it.

    Shape:
        x (B, N, D), mask (B, N) bool, True where a position is real → (B, N, D). Time O(N · projected · D).

    Example:
        >>> import torch
        >>> LinformerAttention(8, num_heads=2, max_length=20)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """

    def __init__(
        self, dim: int, *, num_heads: int = 1, max_length: int, projected: int = 256, dropout: float = 0.0
    ) -> None:
        super().__init__()
        package = needed_package("linformer", "linformer", "linformer")
        head_features(dim, num_heads)
        at_least_one(projected=projected)
        self.dim, self.max_length = dim, max_length
        self.attention = package.LinformerSelfAttention(
            dim, max_length, k=min(projected, max_length), heads=num_heads, dropout=dropout
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend to the projected positions."""
        check_input(x, mask, self.dim, self.max_length)
        packed, real, order = pack(x, mask)
        return unpack(self.attention(packed), real, order).to(x.dtype)


def linformer(
    dim: int, *, num_heads: int = 1, max_length: int | None = None, dropout: float = 0.0, projected: int = 256
) -> LinformerAttention:
    """Linformer's attention; it needs ``max_length``.

    Example:
        >>> linformer(8, num_heads=2, max_length=20).attention.k
        20
    """
    length = needed_length("linformer", max_length)
    return LinformerAttention(dim, num_heads=num_heads, max_length=length, projected=projected, dropout=dropout)
