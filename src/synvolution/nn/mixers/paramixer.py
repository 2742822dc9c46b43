"""Paramixer (Yu et al., Paramixer: Parameterizing Mixing Links in Sparse Factors, 2022), with the Chord protocol.

Ours: no package offers it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synvolution.nn.dropout import Dropout
from synvolution.nn.mixers._attention import at_least_one, check_input, needed_length, pack, unpack


class LinkWeights(nn.Linear):
    """A linear map to the weights of a row, with a bias that starts as the identity: 1 for itself, 0 for the links.

    Example:
        >>> LinkWeights(4, 3).bias.tolist()
        [1.0, 0.0, 0.0]
    """

    def reset_parameters(self) -> None:
        """Weights as in ``nn.Linear``."""
        super().reset_parameters()
        with torch.no_grad():
            self.bias.zero_()[0] = 1.0


class ChordMixing(nn.Module):
    """Y = W^(M) … W^(1) V with sparse factors: row i of each links to the positions i, i + 2^k modulo the length.

    The weights of a row are made of x_i by a small network, one for each factor. M and the number of links are log₂
    of the longest sequence. Their last bias starts every factor near the identity, so that M of them neither vanish nor
    explode.

    Args:
        dim: number of features D.
        max_length: longest sequence.
        hidden: features inside the networks; None for D.
        dropout: rate on the values.
        bias: whether the value and output projections have one.

    Shape:
        x (B, N, D), mask (B, N) bool, True where a position is real → (B, N, D). Time O(ND log² N), memory
        O(N log² N + ND log N).

    Example:
        >>> ChordMixing(8, max_length=20)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """

    def __init__(
        self, dim: int, *, max_length: int, hidden: int | None = None, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        hidden = dim if hidden is None else hidden
        at_least_one(dim=dim, max_length=max_length, hidden=hidden)
        self.dim, self.max_length = dim, max_length
        factors = max(1, (max_length - 1).bit_length())
        self.links = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), LinkWeights(hidden, 1 + factors)) for _ in range(factors)
        )
        self.value = nn.Linear(dim, dim, bias=bias)
        self.value_dropout = Dropout(dropout)
        self.out = nn.Linear(dim, dim, bias=bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Apply the factors one after the other."""
        check_input(x, mask, self.dim, self.max_length)
        packed, real, order = pack(x, mask)
        rows = self._linked_rows(real)
        values = self.value_dropout(self.value(packed)).flatten(0, 1)  # (B·N, D)
        for network in self.links:
            weights = network(packed).flatten(0, 1).to(values.dtype)  # (B·N, 1 + links)
            values = F.embedding_bag(rows, values, per_sample_weights=weights, mode="sum")
        return unpack(self.out(values.view_as(packed)), real, order).to(x.dtype)

    def _linked_rows(self, real: Tensor) -> Tensor:
        """(B·N, 1 + links): rows of the flattened batch that each row is linked to; padding to itself."""
        b, n = real.shape
        own = torch.arange(n, device=real.device)[:, None]
        step = torch.tensor([0, *(2**k for k in range(len(self.links)))], device=real.device)
        length = real.sum(1)[:, None, None]
        linked = torch.where(real[..., None], (own + step) % length, own)  # (B, N, 1 + links)
        return (linked + n * torch.arange(b, device=real.device)[:, None, None]).flatten(0, 1)


def paramixer(
    dim: int,
    *,
    num_heads: int = 1,
    max_length: int | None = None,
    dropout: float = 0.0,
    hidden: int | None = None,
    bias: bool = True,
) -> ChordMixing:
    """Paramixer's mixing; it needs ``max_length``, has no heads and ignores ``num_heads``.

    Example:
        >>> len(paramixer(8, max_length=1000).links)
        10
    """
    length = needed_length("paramixer", max_length)
    return ChordMixing(dim, max_length=length, hidden=hidden, dropout=dropout, bias=bias)
