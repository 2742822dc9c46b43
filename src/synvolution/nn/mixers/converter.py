"""The paper's own mixers and the control, behind the table's arguments."""

from __future__ import annotations

from typing import Any

from synvolution.nn.block import NoMixer
from synvolution.nn.kernelution import Kernelution, Synvolution


def kernelution(
    dim: int, *, num_heads: int = 1, max_length: int | None = None, dropout: float = 0.0, **options: Any
) -> Kernelution:
    """:class:`~synvolution.Kernelution`, with all its options.

    Example:
        >>> kernelution(8, num_heads=2, order=3).polynomial.order
        3
    """
    return Kernelution(dim, num_heads=num_heads, value_dropout=dropout, **_with_length(options, max_length))


def synvolution(
    dim: int, *, num_heads: int = 1, max_length: int | None = None, dropout: float = 0.0, **options: Any
) -> Synvolution:
    """:class:`~synvolution.Synvolution`, with all its options.

    Example:
        >>> synvolution(8, num_heads=2).num_heads
        2
    """
    return Synvolution(dim, num_heads=num_heads, value_dropout=dropout, **_with_length(options, max_length))


def none(
    dim: int, *, num_heads: int = 1, max_length: int | None = None, dropout: float = 0.0, bias: bool = True
) -> NoMixer:
    """The control, :class:`~synvolution.nn.NoMixer`: no position sees another.

    Example:
        >>> none(8).dim
        8
    """
    return NoMixer(dim, value_dropout=dropout, bias=bias)


def _with_length(options: dict[str, Any], max_length: int | None) -> dict[str, Any]:
    """A learned permutation has a parameter per pair of positions; nothing else asks for the longest sequence."""
    return {**options, "length": max_length} if options.get("permutation") == "learned" else options
