"""S4D (Gu et al., On the Parameterization and Initialization of Diagonal State Space Models, 2022).

Beyond the paper's baselines. Ours: the authors publish no package. All parameters are real.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from synvolution.nn.dropout import Dropout
from synvolution.nn.mixers._attention import at_least_one, check_input, pack, unpack
from synvolution.nn.norm import wide


class DiagonalStateSpace(nn.Module):
    """y_i = Σ_{l≥0} K_l u_{i−l} + Σ_{l≥0} K'_l u_{i+1+l} + D u_i, per feature; then GELU and a gated projection.

    K_l = 2 Re Σ_s C_s (e^{ΔA_s} − 1)/A_s · e^{lΔA_s}: the state space with A = −e^a + iω, B = 1, held input (ZOH). It
    starts as S4D-Lin: A_s = −1/2 + iπs, Δ between 0.001 and 0.1. Two directions, as the paper has for classification.

    Args:
        dim: number of features D.
        states: complex states per feature (half of the paper's N).
        dropout: rate after the activation.
        bias: whether the output projection has one.

    Shape:
        x (B, N, D), mask (B, N) bool, True where a position is real → (B, N, D). Time O(ND (log N + states)).

    Example:
        >>> DiagonalStateSpace(8)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """

    def __init__(self, dim: int, *, states: int = 32, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        at_least_one(dim=dim, states=states)
        self.dim = dim
        self.log_step = nn.Parameter(torch.empty(dim))
        self.log_decay = nn.Parameter(torch.empty(dim, states))
        self.frequency = nn.Parameter(torch.empty(dim, states))
        self.read = nn.Parameter(torch.empty(2, dim, states, 2))  # C: direction, feature, state, (real, imaginary)
        self.skip = nn.Parameter(torch.empty(dim))
        self.dropout = Dropout(dropout)
        self.out = nn.Linear(dim, 2 * dim, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """S4D-Lin; the output projection has its own rule."""
        with torch.no_grad():
            self.log_step.uniform_(math.log(1e-3), math.log(1e-1))
            self.log_decay.fill_(math.log(0.5))
            self.frequency.copy_((math.pi * torch.arange(self.frequency.shape[1])).expand_as(self.frequency))
            self.read.normal_(std=0.5**0.5)
            self.skip.normal_()

    def kernels(self, n: int) -> Tensor:
        """K and K', (2, D, N).

        e^{lΔA} with l = s·a + b is the product of two short tables, so that no (D, states, N) tensor is made.
        """
        poles = torch.complex(-wide(self.log_decay).exp(), wide(self.frequency))  # (D, states)
        exponent = poles * wide(self.log_step).exp()[:, None]
        weight = torch.view_as_complex(wide(self.read)) * (exponent.exp() - 1) / poles  # (2, D, states)
        short = math.ceil(math.sqrt(n))
        index = torch.arange(short, device=poles.device)
        low, high = (exponent[..., None] * index).exp(), (exponent[..., None] * (short * index)).exp()
        table = torch.einsum("cdsa,dsb->cdab", weight[..., None] * high, low)
        return 2 * table.real.flatten(-2)[..., :n]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Convolve with both kernels, activate, project."""
        check_input(x, mask, self.dim)
        packed, real, order = pack(x, mask)
        n = x.shape[1]
        size = 1 << (2 * n - 1).bit_length()  # at least 2N, so that the ends do not meet; a power of two is fastest
        ahead, back = self.kernels(n)
        both = torch.cat((ahead, ahead.new_zeros(self.dim, size - 2 * n), back.flip(-1)), -1)
        signal = packed.mT.to(both.dtype)  # (B, D, N)
        spectrum = torch.fft.rfft(signal, size) * torch.fft.rfft(both)
        mixed = torch.fft.irfft(spectrum, size)[..., :n] + self.skip[:, None] * signal
        gated = nn.functional.glu(self.out(self.dropout(nn.functional.gelu(mixed.mT).to(self.skip.dtype))), -1)
        return unpack(gated, real, order).to(x.dtype)


def s4d(
    dim: int,
    *,
    num_heads: int = 1,
    max_length: int | None = None,
    dropout: float = 0.0,
    states: int = 32,
    bias: bool = True,
) -> DiagonalStateSpace:
    """S4D; it has no heads, and ``num_heads`` and ``max_length`` are ignored.

    Example:
        >>> s4d(8, states=4).kernels(10).shape
        torch.Size([2, 8, 10])
    """
    return DiagonalStateSpace(dim, states=states, dropout=dropout, bias=bias)
