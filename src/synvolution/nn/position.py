"""Position embeddings: modules that add to (B, N, D) what tells positions apart. Listed in ``POSITIONS``.

All count from the first real token of a sequence, so that padding on either side changes nothing.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from synvolution.nn.gru import GRU


def _ranks(mask: Tensor) -> Tensor:
    """(B, N) bool → (B, N) int64: the number of each real position within its sequence; 0 before the first."""
    return (mask.cumsum(-1) - 1).clamp_min(0)


class NoPosition(nn.Module):
    """No position embedding: x as it is (the paper's NoPE).

    Args:
        dim: number of features D.

    Shape:
        x (B, N, D), mask (B, N) bool → (B, N, D).

    Example:
        >>> x = torch.randn(2, 5, 8)
        >>> NoPosition(8)(x) is x
        True
    """

    def __init__(self, dim: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The input."""
        return x


class RecurrentPosition(nn.Module):
    """Recurrent position embedding: x + GRU(x), two layers (the paper's RPE; Neishi and Yoshinaga, 2019).

    Args:
        dim: number of features D.
        num_layers: of the GRU.

    Shape:
        x (B, N, D), mask (B, N) bool → (B, N, D), any N; in the dtype of x, the recurrence in float32 at least.

    Example:
        >>> RecurrentPosition(8)(torch.randn(2, 5, 8)).shape
        torch.Size([2, 5, 8])
    """

    def __init__(self, dim: int, *, num_layers: int = 2) -> None:
        super().__init__()
        self.gru = GRU(dim, dim, num_layers=num_layers, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The input plus the state of the GRU at each position."""
        states, _ = self.gru(x, mask=mask)
        return x + states.to(x.dtype)


class LearnedPosition(nn.Module):
    """Learned absolute position embedding: x_n + E_n (the paper's APE).

    Args:
        dim: number of features D.
        max_length: longest sequence.

    Shape:
        x (B, N, D), mask (B, N) bool → (B, N, D); sequences of up to ``max_length`` positions.

    Example:
        >>> LearnedPosition(8, max_length=5)(torch.randn(2, 5, 8)).shape
        torch.Size([2, 5, 8])
    """

    def __init__(self, dim: int, *, max_length: int) -> None:
        super().__init__()
        if dim < 1 or max_length < 1:
            raise ValueError(f"dim = {dim}, max_length = {max_length}: both must be at least 1")
        self.weight = nn.Parameter(torch.empty(max_length, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal, with standard deviation 0.02."""
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The input plus the row of each position."""
        n, allowed = x.shape[1], self.weight.shape[0]
        if n > allowed:
            known = mask is not None and not torch.compiler.is_compiling()
            longest = int(mask.sum(-1).max()) if known and mask is not None else n
            if longest > allowed:
                raise ValueError(
                    f"a sequence of {longest} positions, the learned position embedding has {allowed}: "
                    "raise max_length, cut the sequence, or use 'rpe', 'spe' or 'none'"
                )
        if mask is None:
            return x + self.weight[:n].to(x.dtype)
        return x + self.weight[_ranks(mask).clamp_max(allowed - 1)].to(x.dtype)

    def extra_repr(self) -> str:
        """The settings, for printing."""
        return f"{self.weight.shape[1]}, max_length={self.weight.shape[0]}"


class SinusoidalPosition(nn.Module):
    """Sinusoidal position embedding: sin(n ω_i), cos(n ω_i) in turn, ω_i = 10000^{−2i/D} (the paper's SPE).

    Args:
        dim: number of features D.

    Shape:
        x (B, N, D), mask (B, N) bool → (B, N, D), any N.

    Example:
        >>> SinusoidalPosition(4)(torch.zeros(1, 3, 4))[0, 0].tolist()
        [0.0, 1.0, 0.0, 1.0]
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim is {dim}: expected at least 1 feature")
        self.dim = dim

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The input plus sines and cosines of each position's number."""
        # float64: a million radians in float32 are known to 0.06 only. Apple's devices have no float64.
        dtype = torch.float32 if x.device.type == "mps" else torch.float64
        n = torch.arange(x.shape[1], dtype=dtype, device=x.device)
        pairs = torch.arange(0, self.dim, 2, dtype=dtype, device=x.device)
        angles = n[:, None] * torch.exp(pairs * (-math.log(10_000.0) / self.dim))
        table = torch.stack((torch.sin(angles), torch.cos(angles)), -1).flatten(1)[:, : self.dim].to(x.dtype)
        return x + (table if mask is None else table[_ranks(mask)])


#: Every position embedding by name; all take ``dim``, "ape" also ``max_length``.
POSITIONS: dict[str, type[nn.Module]] = {
    "rpe": RecurrentPosition,
    "ape": LearnedPosition,
    "spe": SinusoidalPosition,
    "none": NoPosition,
}
