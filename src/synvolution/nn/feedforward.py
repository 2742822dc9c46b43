"""Feed-forward networks, position by position: gated for complex signals, ordinary for real ones."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synvolution.nn.dropout import Dropout
from synvolution.ops.gate import gate


class GFFN(nn.Module):
    """Gated feed-forward network, [softplus(Re z W_re) ⊙ tanh(Im z W_im)] W_o (eq. gffn): complex in, real out.

    Args:
        dim: number of features D.
        hidden: features D_hid between.
        dropout: rate on the gated features.
        bias: whether the three linear maps have one.

    Shape:
        planar (..., 2, D) → (..., D).

    Example:
        >>> GFFN(8, 32)(torch.randn(3, 10, 2, 8)).shape
        torch.Size([3, 10, 8])
    """

    def __init__(self, dim: int, hidden: int, *, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        _check_sizes(dim, hidden)
        self.dim, self.hidden = dim, hidden
        self.real = nn.Linear(dim, hidden, bias=bias)
        self.imaginary = nn.Linear(dim, hidden, bias=bias)
        self.dropout = Dropout(dropout)
        self.out = nn.Linear(hidden, dim, bias=bias)

    def forward(self, z: Tensor) -> Tensor:
        """The real part gives magnitude, the imaginary part sign."""
        if z.ndim < 2 or z.shape[-2:] != (2, self.dim):
            raise ValueError(f"z has shape {tuple(z.shape)}: expected planar (..., 2, D) with D = {self.dim}")
        # one leading dimension: a plane is then a matrix with gaps, which products take as it is
        real, imaginary = z.reshape(-1, 2, self.dim).unbind(1)
        out: Tensor = self.out(gate(self.real(real), self.imaginary(imaginary), self.dropout.rate))
        return torch.reshape(out, (*z.shape[:-2], self.dim))


class FFN(nn.Module):
    """Ordinary feed-forward network, gelu(x W_1) W_2, for mixers with real output.

    Args:
        dim: number of features D.
        hidden: features D_hid between.
        dropout: rate on the hidden features.
        bias: whether the two linear maps have one.

    Shape:
        (..., D) → (..., D).

    Example:
        >>> FFN(8, 32)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """

    def __init__(self, dim: int, hidden: int, *, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        _check_sizes(dim, hidden)
        self.dim, self.hidden = dim, hidden
        self.first = nn.Linear(dim, hidden, bias=bias)
        self.dropout = Dropout(dropout)
        self.out = nn.Linear(hidden, dim, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Position by position."""
        if x.shape[-1:] != (self.dim,):
            raise ValueError(f"x has shape {tuple(x.shape)}: expected (..., D) with D = {self.dim}")
        out: Tensor = self.out(self.dropout(F.gelu(self.first(x))))
        return out


def _check_sizes(dim: int, hidden: int) -> None:
    if dim < 1 or hidden < 1:
        raise ValueError(f"dim = {dim}, hidden = {hidden}: both must be at least 1")
