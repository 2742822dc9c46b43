"""Sparse Sinkhorn attention (Tay et al., Sparse Sinkhorn Attention, 2020).

Ours: sinkhorn-transformer 0.11.4 puts the sorted keys in the place of the sorted values (attention over zero values
is not zero) and, where it does use the Sinkhorn operator, adds random noise in evaluation as well.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from synvolution.nn.mixers._attention import Attention, at_least_one, blocks, head_features, merge_heads, needed_length
from synvolution.nn.norm import wide

#: Logarithm of a weight that must be zero.
NEVER = -1e9


class SortedBlockAttention(nn.Module):
    """Softmax attention of each block to itself and to the block that a learned soft permutation puts in its place.

    R = Sinkhorn(exp(S)), S_i = ReLU(ReLU(x'_i W_P + b_P) W_B + b_B), x'_i the mean of block i; sorted block i is Σ_j
    R_ij times block j. The means are those of the keys, a linear image of x. In training S
    has Gumbel noise. A slot of a sorted block counts by the share of real positions in it.

    Args:
        dim: number of features D.
        num_heads: H, each with its own permutation.
        max_length: longest sequence: W_B has a column per block.
        block_size: positions in a block.
        iterations: of the Sinkhorn operator.
        temperature: of R.

    Shape:
        q, k, v (B, H, N, D/H), real (B, N) bool → (B, H, N, D/H). Time O(N · block_size · D + (N/block_size)² D).

    Example:
        >>> q, k, v = torch.randn(3, 2, 4, 10, 8)
        >>> SortedBlockAttention(32, 4, max_length=12, block_size=3)(q, k, v, torch.ones(2, 10, dtype=torch.bool)).shape
        torch.Size([2, 4, 10, 8])
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        max_length: int,
        block_size: int = 64,
        iterations: int = 8,
        temperature: float = 0.75,
    ) -> None:
        super().__init__()
        head_features(dim, num_heads)
        at_least_one(block_size=block_size, iterations=iterations)
        if temperature <= 0:
            raise ValueError(f"temperature is {temperature}: expected a positive number")
        self.num_heads, self.block_size = num_heads, block_size
        self.iterations, self.temperature = iterations, temperature
        self.sort_hidden = nn.Linear(dim, dim)
        self.sort_scores = nn.Linear(dim, num_heads * -(-max_length // block_size))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        """Attend to the own and the sorted block."""
        n = q.shape[2]
        size = min(self.block_size, n)  # a single block need not be filled up
        shown = real[:, None, :, None]
        q, k, v = (blocks(t, size, 2) for t in (q * q.shape[-1] ** -0.5, k * shown, v * shown))
        real = blocks(real, size, 1)  # (B, M, b)
        order = self.permutation(k, real).to(k.dtype)  # (B, H, M, M)
        sorted_k, sorted_v = (torch.einsum("bhij,bhjtd->bhitd", order, t) for t in (k, v))
        share = order @ real[:, None].to(order.dtype) / order.sum(-1, keepdim=True)  # (B, H, M, b)
        own = (q @ k.mT).masked_fill(~real[:, None, :, None], torch.finfo(q.dtype).min)
        other = q @ sorted_k.mT + share.clamp_min(1e-20).log()[..., None, :]
        weights = torch.cat((own, other), -1).softmax(-1)
        out = weights @ torch.cat((v, sorted_v), -2)
        return out.flatten(2, 3)[:, :, :n]

    def permutation(self, k: Tensor, real: Tensor) -> Tensor:
        """R, (B, H, M, M), doubly stochastic among the blocks of each sequence and the identity on those behind."""
        count, m = real.sum(-1), real.shape[1]  # (B, M)
        means = merge_heads(k.sum(-2)) / count.clamp_min(1)[..., None]  # (B, M, D)
        scores = wide(torch.relu(self.sort_scores(torch.relu(self.sort_hidden(means)))))
        scores = scores.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)[..., :m]  # (B, H, M, M)
        if self.training:
            uniform = torch.rand_like(scores).clamp(1e-6, 1 - 1e-6)
            scores = scores - (-uniform.log()).log()
        exists = count > 0
        inside = exists[:, None, :, None] & exists[:, None, None, :]
        behind = torch.where(torch.eye(m, dtype=torch.bool, device=k.device), 0.0, NEVER)
        logarithm = torch.where(inside, scores / self.temperature, behind)
        for _ in range(self.iterations):
            logarithm = logarithm - logarithm.logsumexp(-1, keepdim=True)
            logarithm = logarithm - logarithm.logsumexp(-2, keepdim=True)
        return logarithm.exp()


def sinkhorn(
    dim: int,
    *,
    num_heads: int = 1,
    max_length: int | None = None,
    dropout: float = 0.0,
    block_size: int = 64,
    iterations: int = 8,
    temperature: float = 0.75,
    bias: bool = True,
) -> Attention:
    """Sparse Sinkhorn attention; it needs ``max_length``.

    Example:
        >>> sinkhorn(8, num_heads=2, max_length=20, block_size=4)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """
    length = needed_length("sinkhorn", max_length)
    rule = SortedBlockAttention(
        dim, num_heads, max_length=length, block_size=block_size, iterations=iterations, temperature=temperature
    )
    return Attention(dim, rule, num_heads=num_heads, max_length=length, dropout=dropout, bias=bias)
