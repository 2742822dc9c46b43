"""The permutations P of a layer, over each sequence's own length."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from synvolution.nn.permutation import LearnedPermutation
from synvolution.ops._checks import check_index
from synvolution.ops.permutation import gumbel_sinkhorn, hard_permutation

KINDS = ("block", "bit_reversal", "learned")


class RowOrder(nn.Module):
    """The permutations P^(1) … P^(L) of eq. givens_lhhp for sequences of any length, padded or not.

    Padded rows stay where they are, and a sequence is permuted as it would be alone:

    - "block": the sequence is written in lines of ⌈√N⌉ and read in columns (:func:`~synvolution.ops.block_transpose`
      where that divides N);
    - "bit_reversal": rows by their reversed binary digits (:func:`~synvolution.ops.bit_reversal` for powers of two);
    - row numbers (N,) or (L, N): a shorter sequence takes the rows it has in the order given;
    - "learned": Gumbel–Sinkhorn of the leading part of (L, length, length) logits; soft matrices in training, the best
      permutation in evaluation.

    Args:
        kind: one of these.
        orders: number of orders L.
        length: longest sequence, for "learned" alone.

    Example:
        >>> rows = RowOrder("block")
        >>> rows(torch.ones(1, 6, dtype=torch.bool)).tolist()
        [[[0, 3, 1, 4, 2, 5]]]
        >>> rows(torch.tensor([[False, True, True, True, True, False]])).tolist()
        [[[0, 1, 3, 2, 4, 5]]]
    """

    index: Tensor | None

    def __init__(self, kind: str | Tensor, orders: int = 1, *, length: int | None = None) -> None:
        super().__init__()
        if isinstance(kind, str) and kind not in KINDS:
            raise ValueError(f"unknown permutation {kind!r}: choose None, one of {', '.join(KINDS)}, or row numbers")
        self.kind = kind if isinstance(kind, str) else "given"
        if self.kind == "learned":
            if length is None:
                raise ValueError(
                    "permutation 'learned' has a parameter per pair of positions: give length=, the longest"
                )
            self.learned = LearnedPermutation(length, orders)
        elif length is not None:
            raise ValueError(f"length = {length} is for permutation 'learned' alone: leave it out")
        self.register_buffer("index", None if isinstance(kind, str) else _given(kind, orders), persistent=False)

    def forward(self, mask: Tensor) -> Tensor:
        """(B, N) bool, True where a position is real → (B, L or 1, N) row numbers, or (B, L, N, N) soft matrices."""
        if self.kind == "learned":
            return self._learned(mask)
        rank = mask.cumsum(-1) - 1  # of each real position in its sequence
        if self.kind == "block":
            count = mask.sum(-1, keepdim=True).clamp_min(1)
            width = _root(count)
            key = (rank % width * mask.shape[1] + rank)[:, None]
        elif self.kind == "bit_reversal":
            key = _reversed_bits(rank)[:, None]
        else:
            assert self.index is not None
            _check_length(mask, self.index.shape[-1])
            places = self.index.argsort(-1)  # where each row stands in the order
            key = places[:, rank.clamp(0, places.shape[-1] - 1)].movedim(0, 1)
        return _arrange(mask[:, None], key)

    def _learned(self, mask: Tensor) -> Tensor:
        logits = self.learned.logits
        _check_length(mask, logits.shape[-1])
        if not self.training:
            return self._best(mask)
        rank = (mask.cumsum(-1) - 1).clamp(0, logits.shape[-1] - 1)
        own = logits[:, rank[:, :, None], rank[:, None, :]].movedim(1, 0)  # (B, L, N, N)
        both = (mask[:, :, None] & mask[:, None, :])[:, None]
        stay = torch.zeros_like(own).masked_fill(~torch.eye(mask.shape[1], dtype=torch.bool).to(mask.device), -math.inf)
        settings = self.learned
        return gumbel_sinkhorn(torch.where(both, own, stay), settings.temperature, settings.iterations, settings.noise)

    def _best(self, mask: Tensor) -> Tensor:
        """Row numbers of the best permutation of each sequence's own logits."""
        logits = self.learned.logits
        rows = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape[0], len(logits), -1).clone()
        found: dict[int, Tensor] = {}
        for i, real in enumerate(mask):
            slots = real.nonzero()[:, 0]
            count = len(slots)
            if count not in found:
                found[count] = hard_permutation(logits[:, :count, :count])
            rows[i, :, slots] = slots[found[count]]
        return rows

    def extra_repr(self) -> str:
        """The settings, for printing."""
        return self.kind


def _given(index: Tensor, orders: int) -> Tensor:
    """Row numbers (N,) or (L, N) → (1 or L, N), checked."""
    if not isinstance(index, Tensor):
        raise TypeError(
            f"permutation is a {type(index).__name__}: choose None, one of {', '.join(KINDS)}, or int64 row numbers"
        )
    if index.ndim not in (1, 2) or (index.ndim == 2 and index.shape[0] not in (1, orders)) or not index.numel():
        raise ValueError(f"permutation has shape {tuple(index.shape)}: expected (N,) or (L, N) with L = {orders}")
    check_index("permutation", index, index.shape[-1])
    return index.reshape(-1, index.shape[-1]).clone()


def _root(count: Tensor) -> Tensor:
    """⌈√count⌉ of int64 numbers, exactly: float32 is off by one at most, and some devices have no float64.

    Example:
        >>> _root(torch.tensor([1, 4, 5, 16_777_217])).tolist()
        [1, 2, 3, 4097]
    """
    root = torch.ceil(torch.sqrt(count.float())).long()
    root = torch.where((root - 1) ** 2 >= count, root - 1, root)
    return torch.where(root**2 < count, root + 1, root)


def _check_length(mask: Tensor, allowed: int) -> None:
    if mask.shape[1] <= allowed:
        return
    longest = mask.shape[1] if torch.compiler.is_compiling() else int(mask.sum(-1).max())
    if longest > allowed:
        raise ValueError(
            f"a sequence of {longest} positions, the permutation is for {allowed}: build the layer for the longest"
        )


def _arrange(mask: Tensor, key: Tensor) -> Tensor:
    """Row numbers that put the real rows of each sequence in the order of their keys (B, L, N); padded rows stay."""
    last = torch.iinfo(torch.long).max
    slots = (~mask).long().argsort(dim=-1, stable=True).expand_as(key)
    order = torch.where(mask, key, last).argsort(dim=-1, stable=True)
    return torch.empty_like(order).scatter(-1, slots, order)


def _reversed_bits(number: Tensor) -> Tensor:
    """The 32 lowest binary digits in reverse; order among them is that of the reversal in any shorter width."""
    for shift, low in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        number = ((number >> shift) & low) | ((number & low) << shift)
    return number
