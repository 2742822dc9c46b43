"""FNet (Lee-Thorp et al., FNet: Mixing Tokens with Fourier Transforms, 2022). Ours, over ``torch.fft``."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from synvolution.nn.dropout import Dropout
from synvolution.nn.mixers._attention import check_input
from synvolution.nn.norm import wide


class FourierMixing(nn.Module):
    """Re F_N F_D x: the real part of the Fourier transforms over positions and features. No parameters.

    Padded rows are zero, but the transform runs over the padded length: the result depends on it.

    Args:
        dim: number of features D.
        dropout: rate on the values, which are the features themselves.

    Shape:
        x (B, N, D), mask (B, N) bool, True where a position is real → (B, N, D). Time O(ND log N).

    Example:
        >>> FourierMixing(8)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """

    def __init__(self, dim: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim is {dim}: expected at least 1 feature")
        self.dim = dim
        self.value_dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Transform positions and features."""
        check_input(x, mask, self.dim)
        values = self.value_dropout(x if mask is None else torch.where(mask[..., None], x, 0.0))
        mixed = torch.fft.fft2(wide(values), dim=(1, 2)).real.to(x.dtype)
        return mixed if mask is None else torch.where(mask[..., None], mixed, 0.0)


def fnet(dim: int, *, num_heads: int = 1, max_length: int | None = None, dropout: float = 0.0) -> FourierMixing:
    """FNet's mixing; it has no heads, and ``num_heads`` and ``max_length`` are ignored.

    Example:
        >>> sum(p.numel() for p in fnet(8).parameters())
        0
    """
    return FourierMixing(dim, dropout=dropout)
