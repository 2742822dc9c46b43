"""Synthesizer, dense (Tay et al., Synthesizer: Rethinking Self-Attention for Transformer Models, 2021).

Ours: no package offers it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from synvolution.nn.dropout import Dropout
from synvolution.nn.mixers._attention import (
    check_input,
    head_features,
    masked_softmax,
    merge_heads,
    needed_length,
    pack,
    split_heads,
    unpack,
)


class DenseSynthesizer(nn.Module):
    """Y = softmax(B) V with row i of B from x_i alone: B_i = ReLU(x_i W_1 + b_1) W_2 + b_2.

    Args:
        dim: number of features D.
        num_heads: H; W_1 gives D/H features to each head, W_2 turns them into a weight per position.
        max_length: longest sequence.
        dropout: rate on the values.
        bias: whether the linear maps have one.

    Shape:
        x (B, N, D), mask (B, N) bool, True where a position is real → (B, N, D). Time O(N²D), memory O(HN²).

    Example:
        >>> DenseSynthesizer(8, num_heads=2, max_length=20)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """

    def __init__(
        self, dim: int, *, num_heads: int = 1, max_length: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.dim, self.num_heads, self.max_length = dim, num_heads, max_length
        features = head_features(dim, num_heads)
        self.hidden = nn.Linear(dim, dim, bias=bias)
        self.weights = nn.Parameter(torch.empty(num_heads, features, max_length))
        self.offsets = nn.Parameter(torch.empty(num_heads, 1, max_length)) if bias else None
        self.value = nn.Linear(dim, dim, bias=bias)
        self.value_dropout = Dropout(dropout)
        self.out = nn.Linear(dim, dim, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As ``nn.Linear`` does for as many inputs; the linear maps have their own rule."""
        bound = self.weights.shape[1] ** -0.5
        for parameter in (self.weights, self.offsets):
            if parameter is not None:
                nn.init.uniform_(parameter, -bound, bound)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix positions with weights that each position makes on its own."""
        check_input(x, mask, self.dim, self.max_length)
        packed, real, order = pack(x, mask)
        n = x.shape[1]
        hidden = split_heads(torch.relu(self.hidden(packed)), self.num_heads)
        scores = hidden @ self.weights[..., :n]  # (B, H, N, N)
        if self.offsets is not None:
            scores = scores + self.offsets[..., :n]
        values = split_heads(self.value_dropout(self.value(packed)), self.num_heads)
        mixed = merge_heads(masked_softmax(scores, real[:, None, None]) @ values)
        return unpack(self.out(mixed), real, order).to(x.dtype)


def synthesizer(
    dim: int, *, num_heads: int = 1, max_length: int | None = None, dropout: float = 0.0, bias: bool = True
) -> DenseSynthesizer:
    """The dense Synthesizer; it needs ``max_length``.

    Example:
        >>> synthesizer(8, max_length=20).weights.shape
        torch.Size([1, 8, 20])
    """
    length = needed_length("synthesizer", max_length)
    return DenseSynthesizer(dim, num_heads=num_heads, max_length=length, dropout=dropout, bias=bias)
