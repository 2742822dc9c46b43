"""One block of a Converter, and the same around mixers with real output."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from synvolution.nn.dropout import Dropout
from synvolution.nn.feedforward import FFN, GFFN
from synvolution.nn.kernelution import Kernelution
from synvolution.nn.norm import ScaleNorm

#: Numbers of the widest intermediate result that a piece may have where no gradient is needed: about 2 MiB.
PIECE = 2**19


def in_pieces(function: Callable[..., Tensor], width: int, *inputs: Tensor) -> Tensor:
    """A function of each position, over the positions in pieces that stay in cache, unless a gradient is needed.

    Args:
        function: maps tensors (B, n, …) to one (B, n, …), position by position.
        width: features of its widest intermediate result.
        inputs: (B, N, …) each.

    Example:
        >>> with torch.no_grad():
        ...     in_pieces(torch.sin, 2**16, torch.zeros(2, 30, 4)).shape
        torch.Size([2, 30, 4])
    """
    batch, n = inputs[0].shape[:2]
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or batch * n * width <= PIECE:
        return function(*inputs)
    rows = max(1, PIECE // (batch * width))
    pieces = zip(*(tensor.split(rows, 1) for tensor in inputs), strict=True)
    return torch.cat([function(*piece) for piece in pieces], 1)


class NoMixer(nn.Module):
    """The control: values without any mixing of positions, V = X W_V, as if Φ^{-1} e^{iΛ} Φ were the identity.

    Args:
        dim: number of features D.
        value_dropout: rate on the values.
        bias: whether the value projection has one.

    Shape:
        x (B, N, D), mask ignored → planar (B, N, 2, D).

    Example:
        >>> NoMixer(8)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 2, 8])
    """

    planar = True

    def __init__(self, dim: int, *, value_dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim is {dim}: expected at least 1 feature")
        self.dim = dim
        self.value = nn.Linear(dim, 2 * dim, bias=bias)
        self.value_dropout = Dropout(value_dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Values, position by position, in the dtype of x."""
        values: Tensor = self.value_dropout(self.value(x))
        return values.unflatten(-1, (2, self.dim)).to(x.dtype)

    def penalty(self) -> Tensor:
        """Nothing to add to the loss."""
        return self.value.weight.new_zeros(())


class ConverterBlock(nn.Module):
    """One block of a Converter, post-norm (the paper's PostScaleNorm and eq. gffn).

    z = ScaleNorm(x + Kern(x)), complex: x joins the real plane; y = ScaleNorm(GFFN(z) + ζ Re z + (1−ζ) Im z) with a
    learned ζ in [0, 1].

    Args:
        dim: number of features D.
        hidden: features D_hid of the GFFN.
        mixer: a module (x, mask) → planar (B, N, 2, D); None for ``Kernelution(dim)``. :class:`NoMixer` is the control.
        dropout: rate inside the GFFN.
        zeta: initial ζ, strictly between 0 and 1.
        bias: whether the GFFN's linear maps have one.

    Shape:
        x (B, N, D), mask (B, N) bool, True where a position is real → (B, N, D).

    Example:
        >>> block = ConverterBlock(8, 32, Kernelution(8, num_heads=2))
        >>> block(torch.randn(3, 10, 8)).shape, round(block.zeta.item(), 3)
        (torch.Size([3, 10, 8]), 0.5)
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        mixer: nn.Module | None = None,
        *,
        dropout: float = 0.0,
        zeta: float = 0.5,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if not 0 < zeta < 1:
            raise ValueError(f"zeta is {zeta}: expected a value strictly between 0 and 1")
        self._initial_zeta = zeta
        self.mixer = Kernelution(dim) if mixer is None else mixer
        self.mixer_norm = ScaleNorm(dim, planar=True)
        self.feedforward = GFFN(dim, hidden, dropout=dropout, bias=bias)
        self.zeta_logit = nn.Parameter(torch.empty(()))
        self.feedforward_norm = ScaleNorm(dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """ζ at its initial value; the parts have their own rules."""
        nn.init.constant_(self.zeta_logit, math.log(self._initial_zeta / (1 - self._initial_zeta)))

    @property
    def zeta(self) -> Tensor:
        """ζ, the share of the real plane in the residual, a scalar in [0, 1]."""
        return torch.sigmoid(self.zeta_logit)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the positions, then each position by itself."""
        return in_pieces(self._each_position, self.feedforward.hidden, x, self.mixer(x, mask))

    def _each_position(self, x: Tensor, mixed: Tensor) -> Tensor:
        z = self.mixer_norm(mixed, x)
        y: Tensor = self.feedforward_norm(self.feedforward(z), z, self.zeta)
        return y.to(x.dtype)

    def penalty(self) -> Tensor:
        """What the mixer adds to the loss, a scalar: the kernel polynomial loss for Kernelution, else 0."""
        return _penalty(self.mixer, self.zeta_logit)


class RealBlock(nn.Module):
    """The same frame around a mixer with real output: z = ScaleNorm(x + mixer(x)), y = ScaleNorm(z + FFN(z)).

    Args:
        dim: number of features D.
        hidden: features of the FFN.
        mixer: a module (x, mask) → (B, N, D), e.g. attention.
        dropout: rate inside the FFN.
        bias: whether the FFN's linear maps have one.

    Shape:
        x (B, N, D), mask (B, N) bool → (B, N, D).

    Example:
        >>> class Shift(nn.Module):
        ...     def forward(self, x, mask=None):
        ...         return x.roll(1, 1)
        >>> RealBlock(8, 32, Shift())(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """

    def __init__(self, dim: int, hidden: int, mixer: nn.Module, *, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.mixer = mixer
        self.mixer_norm = ScaleNorm(dim)
        self.feedforward = FFN(dim, hidden, dropout=dropout, bias=bias)
        self.feedforward_norm = ScaleNorm(dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the positions, then each position by itself."""
        return in_pieces(self._each_position, self.feedforward.hidden, x, self.mixer(x, mask))

    def _each_position(self, x: Tensor, mixed: Tensor) -> Tensor:
        z = self.mixer_norm(mixed, x)
        y: Tensor = self.feedforward_norm(self.feedforward(z), z)
        return y.to(x.dtype)

    def penalty(self) -> Tensor:
        """What the mixer adds to the loss, a scalar: 0 unless it has a ``penalty()``."""
        return _penalty(self.mixer, self.mixer_norm.scale)


def block_around(
    mixer: nn.Module, dim: int, hidden: int, *, dropout: float = 0.0, bias: bool = True
) -> ConverterBlock | RealBlock:
    """The block that fits a mixer: :class:`ConverterBlock` if its result is planar, else :class:`RealBlock`.

    Example:
        >>> type(block_around(NoMixer(8), 8, 32)).__name__
        'ConverterBlock'
    """
    kind = ConverterBlock if getattr(mixer, "planar", False) else RealBlock
    return kind(dim, hidden, mixer, dropout=dropout, bias=bias)


def _penalty(mixer: nn.Module, like: Tensor) -> Tensor:
    penalty = getattr(mixer, "penalty", None)
    found: Tensor = like.new_zeros(()) if penalty is None else penalty()
    return found
