"""Sparse Transformer, strided pattern (Child et al., Generating Long Sequences with Sparse Transformers, 2019).

Ours: no package offers it without CUDA kernels. The paper's is causal; this one looks both ways, as encoders do.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synvolution.nn.mixers._attention import Attention, at_least_one, blocks, masked_softmax

#: The paper's stride for long sequences, used if the longest sequence is not given.
PAPER_STRIDE = 128


class StridedAttention(nn.Module):
    """Softmax attention from i to every j with |i − j| < stride or i − j a multiple of stride, in one softmax.

    This is the paper's merged head. Local weights are computed block by block against three blocks, the far ones column
    by column after folding the sequence into rows of ``stride``: no (N, N) matrix.

    Args:
        stride: l of the paper. It must not depend on the padded length, or padding would change the answer.

    Shape:
        q, k, v (B, H, N, D/H), real (B, N) bool → (B, H, N, D/H). Time and memory per head N (3l + N/l): O(N√N) for
        l ≈ √N.

    Example:
        >>> q, k, v = torch.randn(3, 2, 4, 10, 8)
        >>> StridedAttention(3)(q, k, v, torch.ones(2, 10, dtype=torch.bool)).shape
        torch.Size([2, 4, 10, 8])
    """

    def __init__(self, stride: int) -> None:
        super().__init__()
        at_least_one(stride=stride)
        self.stride = stride

    def forward(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        """Attend to neighbours and to every stride-th position."""
        n = q.shape[2]
        q, k, v = (blocks(t, self.stride, 2) for t in (q * q.shape[-1] ** -0.5, k, v))  # (B, H, M, l, D/H)
        real = blocks(real, self.stride, 1)[:, None]  # (B, 1, M, l)
        near = q @ _three_blocks(k, 2).mT  # (B, H, M, l, 3l)
        far = torch.einsum("bhmld,bhpld->bhmlp", q, k)  # (B, H, M, l, M)
        allowed_near = self._band(q.device) & _three_blocks(real, 2)[..., None, :]
        other_row = ~torch.eye(q.shape[2], dtype=torch.bool, device=q.device)[:, None]  # itself is near already
        allowed_far = other_row & real.transpose(-1, -2)[:, :, None]  # (B, 1, M, l, M)
        allowed = torch.cat((allowed_near, allowed_far), -1)
        weights = masked_softmax(torch.cat((near, far), -1), allowed)
        near, far = weights.split((3 * self.stride, q.shape[2]), -1)
        out = near @ _three_blocks(v, 2) + torch.einsum("bhmlp,bhpld->bhmld", far, v)
        return out.flatten(2, 3)[:, :, :n]

    def _band(self, device: torch.device) -> Tensor:
        """(l, 3l): which of the three blocks' positions are less than a stride away."""
        query = torch.arange(self.stride, device=device)[:, None] + self.stride
        return (query - torch.arange(3 * self.stride, device=device)).abs() < self.stride


def _three_blocks(x: Tensor, dim: int) -> Tensor:
    """(…, M, l, …) → (…, M, 3l, …): the block before, itself, the block after; zeros (False) beyond the ends."""
    padded = F.pad(x, (0, 0) * (x.ndim - 1 - dim) + (1, 1))
    m = x.shape[dim]
    return torch.cat([padded.narrow(dim, start, m) for start in range(3)], dim + 1)


def sparse(
    dim: int,
    *,
    num_heads: int = 1,
    max_length: int | None = None,
    dropout: float = 0.0,
    stride: int | None = None,
    bias: bool = True,
) -> Attention:
    """Strided sparse attention; ``stride`` is ⌈√max_length⌉ unless given (128, the paper's, without max_length).

    Example:
        >>> sparse(8, max_length=1000).rule.stride
        32
    """
    if stride is None:
        stride = PAPER_STRIDE if max_length is None else math.ceil(math.sqrt(max_length))
    return Attention(dim, StridedAttention(stride), num_heads=num_heads, dropout=dropout, bias=bias)
