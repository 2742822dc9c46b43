"""Longformer (Beltagy et al., Longformer: The Long-Document Transformer, 2020). Adapter over transformers (5.23)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synvolution.nn.mixers._attention import (
    at_least_one,
    check_input,
    head_features,
    needed_package,
    pack,
    unpack,
)

#: What the class of transformers takes for a padded position and for one with global attention; 0 is any other.
PADDED, GLOBAL = -10000.0, 10000.0


class LongformerAttention(nn.Module):
    """Softmax attention in a sliding window; the first position attends to all and all attend to it.

    That is the paper's use of [CLS] for classification, given to the first real token. The global position has
    projections of its own.

    Args:
        dim: number of features D.
        num_heads: H.
        window: positions in the window, even: half on either side.
        dropout: rate on the attention weights, where transformers has it.
        bias: whether the output projection has one; the others have.

    Shape:
        x (B, N, D), mask (B, N) bool, True where a position is real → (B, N, D). Time O(N · window · D).

    Example:
        >>> LongformerAttention(8, num_heads=2, window=4)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """

    def __init__(
        self, dim: int, *, num_heads: int = 1, window: int = 512, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        package = needed_package("longformer", "transformers", "transformers.models.longformer.modeling_longformer")
        head_features(dim, num_heads)
        if window < 2 or window % 2:
            raise ValueError(f"window is {window}: expected an even number, half of it on either side")
        self.dim, self.window = dim, window
        config = package.LongformerConfig(
            hidden_size=dim,
            num_attention_heads=num_heads,
            attention_window=[window],
            attention_probs_dropout_prob=dropout,
        )
        self.attention = package.LongformerSelfAttention(config, layer_id=0)
        self.out = nn.Linear(dim, dim, bias=bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend within the window, and to and from the first position."""
        check_input(x, mask, self.dim)
        packed, real, order = pack(x, mask)
        missing = -x.shape[1] % self.window
        kept = F.pad(real, (0, missing))
        first = torch.zeros_like(kept)
        first[:, 0] = True
        marks = torch.where(kept, 0.0, PADDED).masked_fill(first, GLOBAL)
        mixed = self.attention(
            F.pad(packed, (0, 0, 0, missing)),
            attention_mask=marks,
            is_index_masked=~kept,
            is_index_global_attn=first,
            is_global_attn=True,
        )[0]
        return unpack(self.out(mixed[:, : x.shape[1]]), real, order).to(x.dtype)


def longformer(
    dim: int,
    *,
    num_heads: int = 1,
    max_length: int | None = None,
    dropout: float = 0.0,
    window: int = 512,
    bias: bool = True,
) -> LongformerAttention:
    """Longformer's attention; a window wider than all sequences (2 · max_length) is narrowed, which changes nothing.

    Example:
        >>> longformer(8, max_length=20).window, longformer(8, max_length=1000).window
        (40, 512)
    """
    if max_length is not None:
        at_least_one(max_length=max_length)
        window = min(window, 2 * max_length)
    return LongformerAttention(dim, num_heads=num_heads, window=window, dropout=dropout, bias=bias)
