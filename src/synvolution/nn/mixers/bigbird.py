"""BigBird (Zaheer et al., Big Bird: Transformers for Longer Sequences, 2020), its internal-global variant (ITC).

Ours: transformers' class reseeds numpy's global generator at every training step, leaves the random blocks out in
evaluation, fills a dense (N, N) matrix, and needs at least 5 blocks.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from synvolution.nn.mixers._attention import Attention, at_least_one, blocks, masked_softmax

#: Rows of random numbers; the pattern repeats after this many blocks.
PATTERN = 1024


class BlockSparseAttention(nn.Module):
    """Softmax attention of a block to the first, the last, itself, both neighbours and some random blocks.

    The first and the last block of a sequence attend to everything. The random blocks of a block are drawn once, per
    head.

    Args:
        num_heads: H.
        block_size: positions in a block.
        num_random: random blocks per block.

    Shape:
        q, k, v (B, H, N, D/H), real (B, N) bool → (B, H, N, D/H). Time and memory O(N · block_size · (5 + num_random)).

    Example:
        >>> q, k, v = torch.randn(3, 2, 4, 10, 8)
        >>> BlockSparseAttention(4, block_size=3)(q, k, v, torch.ones(2, 10, dtype=torch.bool)).shape
        torch.Size([2, 4, 10, 8])
    """

    random_numbers: Tensor

    def __init__(self, num_heads: int, *, block_size: int = 64, num_random: int = 3) -> None:
        super().__init__()
        at_least_one(block_size=block_size)
        if num_random < 0:
            raise ValueError(f"num_random is {num_random}: expected 0 or more")
        self.block_size = block_size
        self.register_buffer("random_numbers", torch.rand(num_heads, PATTERN, num_random))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        """Attend to chosen blocks; first and last block to all."""
        n = q.shape[2]
        size = min(self.block_size, n)  # a single block need not be filled up
        last = (real.sum(1) - 1) // size  # (B,)
        q, k, v = (blocks(t, size, 2) for t in (q * q.shape[-1] ** -0.5, k, v))  # (B, H, M, b, D/H)
        real = blocks(real, size, 1)  # (B, M, b)
        chosen, new = self._choose(last, q.shape[2])  # (B, H, M, C)
        batch = torch.arange(q.shape[0], device=q.device)[:, None, None, None]
        head = torch.arange(q.shape[1], device=q.device)[None, :, None, None]
        some_k, some_v = (t[batch, head, chosen].flatten(3, 4) for t in (k, v))  # (B, H, M, C·b, D/H)
        allowed = (real[batch, chosen] & new[..., None]).flatten(-2)[..., None, :]
        out = masked_softmax(q @ some_k.mT, allowed) @ some_v
        for block in (last, torch.zeros_like(last)):
            out = self._attend_to_all(out, q, k, v, real, block)
        return out.flatten(2, 3)[:, :, :n]

    def _choose(self, last: Tensor, m: int) -> tuple[Tensor, Tensor]:
        """Blocks attended to by each block, (B, H, M, C), and which of them exist and were not named before."""
        own = torch.arange(m, device=last.device)
        last = last[:, None, None, None]
        numbers = self.random_numbers[:, own % PATTERN]  # (H, M, r)
        at_random = (numbers * (last + 1)).long().clamp_max(last)  # (B, H, M, r), within the sequence
        shape = (*at_random.shape[:3], 1)
        near = [(own[:, None] + step).expand(shape) for step in (-1, 0, 1)]
        named = torch.cat([torch.zeros_like(last).expand(shape), last.expand(shape), *near, at_random], -1)
        earlier = torch.ones(named.shape[-1], named.shape[-1], dtype=torch.bool, device=last.device).tril(-1)
        again = ((named[..., :, None] == named[..., None, :]) & earlier).any(-1)
        exists = (named >= 0) & (named <= last)
        return named.clamp(0, m - 1), exists & ~again

    def _attend_to_all(self, out: Tensor, q: Tensor, k: Tensor, v: Tensor, real: Tensor, block: Tensor) -> Tensor:
        """Replace one block of each sequence's result: its queries attend to every real position."""
        where = block[:, None, None, None, None].expand(-1, q.shape[1], 1, *q.shape[3:])  # (B, H, 1, b, D/H)
        scores = q.gather(2, where).squeeze(2) @ k.flatten(2, 3).mT  # (B, H, b, N')
        result = masked_softmax(scores, real.flatten(1)[:, None, None]) @ v.flatten(2, 3)
        return out.scatter(2, where, result[:, :, None])


def bigbird(
    dim: int,
    *,
    num_heads: int = 1,
    max_length: int | None = None,
    dropout: float = 0.0,
    block_size: int = 64,
    num_random: int = 3,
    bias: bool = True,
) -> Attention:
    """BigBird's attention; ``max_length`` is ignored.

    Example:
        >>> bigbird(8, num_heads=2)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """
    rule = BlockSparseAttention(num_heads, block_size=block_size, num_random=num_random)
    return Attention(dim, rule, num_heads=num_heads, dropout=dropout, bias=bias)
