"""Nyströmformer (Xiong et al., Nyströmformer: A Nyström-based Algorithm for Approximating Self-Attention, 2021).

Ours: nystrom-attention 0.0.14 scales the start of its pseudo-inverse by the largest sum in the whole batch, so that a
sequence's result depends on its neighbours, and places the landmarks over the padded length.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from synvolution.nn.mixers._attention import Attention, at_least_one, masked_softmax


class NystromAttention(nn.Module):
    """softmax(Q K̃^T) softmax(Q̃ K̃^T)⁺ softmax(Q̃ K^T) V + depthwise convolution of V.

    Landmarks Q̃, K̃ are means over equal pieces of each sequence; one shorter than the number of landmarks has one per
    position. The pseudo-inverse is the paper's third-order iteration.

    Args:
        num_heads: H.
        landmarks: how many.
        iterations: of the pseudo-inverse.
        kernel_size: of the convolution, odd; 0 leaves it out.

    Shape:
        q, k, v (B, H, N, D/H), real (B, N) bool → (B, H, N, D/H). Time O(N · landmarks · D), memory O(HN · landmarks).

    Example:
        >>> q, k, v = torch.randn(3, 2, 4, 10, 8)
        >>> NystromAttention(4, landmarks=5)(q, k, v, torch.ones(2, 10, dtype=torch.bool)).shape
        torch.Size([2, 4, 10, 8])
    """

    def __init__(self, num_heads: int, *, landmarks: int = 64, iterations: int = 6, kernel_size: int = 33) -> None:
        super().__init__()
        at_least_one(landmarks=landmarks, iterations=iterations)
        if kernel_size < 0 or (kernel_size and kernel_size % 2 == 0):
            raise ValueError(f"kernel_size is {kernel_size}: expected an odd number, or 0 for no convolution")
        self.landmarks, self.iterations = landmarks, iterations
        shape, padding = (kernel_size, 1), (kernel_size // 2, 0)
        self.convolution = (
            nn.Conv2d(num_heads, num_heads, shape, padding=padding, groups=num_heads, bias=False)
            if kernel_size
            else None
        )

    def forward(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
        """Attend by way of the landmarks."""
        q = q * q.shape[-1] ** -0.5
        means, used = self._averaging(real, q.dtype)  # (B, 1, L, N), (B, 1, L)
        q_mark, k_mark = means @ q, means @ k
        first = masked_softmax(q @ k_mark.mT, used[:, :, None])
        among = masked_softmax(q_mark @ k_mark.mT, used[:, :, None]) * used[..., None]  # no weight in unused rows
        last = masked_softmax(q_mark @ k.mT, real[:, None, None])
        out: Tensor = (first @ pseudo_inverse(among, self.iterations)) @ (last @ v)
        if self.convolution is not None:
            out = out + self.convolution(v * real[:, None, :, None])
        return out

    def _averaging(self, real: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The matrix that averages each piece of a sequence, and which landmarks have a piece."""
        length = real.sum(1, keepdim=True)
        count = length.clamp_max(self.landmarks)
        piece = torch.arange(real.shape[1], device=real.device) * count // length  # (B, N)
        marks = torch.arange(min(self.landmarks, real.shape[1]), device=real.device)
        member = (piece[:, None] == marks[:, None]) & real[:, None]  # (B, L, N)
        means = member / member.sum(-1, keepdim=True).clamp_min(1)
        return means.to(dtype)[:, None], (marks < count)[:, None]


def pseudo_inverse(a: Tensor, iterations: int) -> Tensor:
    """A⁺ by Z ← Z (13 I − AZ (15 I − AZ (7 I − AZ))) / 4 from A^T / (‖A‖_1 ‖A‖_∞), each matrix of (…, L, L) by itself.

    Example:
        >>> a = torch.randn(3, 4, 4).softmax(-1) + torch.eye(4)
        >>> torch.allclose(pseudo_inverse(a, 12), torch.linalg.inv(a), atol=1e-4)
        True
    """
    size = a.abs()
    z = a.mT / (size.sum(-1).amax(-1) * size.sum(-2).amax(-1))[..., None, None]
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    for _ in range(iterations):
        az = a @ z
        z = z @ (13 * eye - az @ (15 * eye - az @ (7 * eye - az))) / 4
    return z


def nystromformer(
    dim: int,
    *,
    num_heads: int = 1,
    max_length: int | None = None,
    dropout: float = 0.0,
    landmarks: int = 64,
    iterations: int = 6,
    kernel_size: int = 33,
    bias: bool = True,
) -> Attention:
    """Nyströmformer's attention; ``max_length`` is ignored.

    Example:
        >>> nystromformer(8, num_heads=2)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """
    rule = NystromAttention(num_heads, landmarks=landmarks, iterations=iterations, kernel_size=kernel_size)
    return Attention(dim, rule, num_heads=num_heads, dropout=dropout, bias=bias)
