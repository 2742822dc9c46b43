"""What can mix the positions of a block, by name: the table ``MIXERS``.

To add a mixer, write a file with a function ``(dim, *, num_heads, max_length, dropout, **options) -> nn.Module`` and
add its line here. The module maps x (B, N, D) and mask (B, N) bool, True where a position is real, to (B, N, D).
One whose result is planar, (B, N, 2, D), says so: ``planar = True``. A package it needs is imported in the function.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from torch import nn

from synvolution.nn.mixers.bigbird import bigbird
from synvolution.nn.mixers.converter import kernelution, none, synvolution
from synvolution.nn.mixers.cosformer import cosformer
from synvolution.nn.mixers.fnet import fnet
from synvolution.nn.mixers.linear import linear
from synvolution.nn.mixers.linformer import linformer
from synvolution.nn.mixers.longformer import longformer
from synvolution.nn.mixers.luna import luna
from synvolution.nn.mixers.nystromformer import nystromformer
from synvolution.nn.mixers.paramixer import paramixer
from synvolution.nn.mixers.performer import performer
from synvolution.nn.mixers.reformer import reformer
from synvolution.nn.mixers.s4d import s4d
from synvolution.nn.mixers.sinkhorn import sinkhorn
from synvolution.nn.mixers.sparse import sparse
from synvolution.nn.mixers.synthesizer import synthesizer
from synvolution.nn.mixers.vanilla import vanilla

__all__ = ["MIXERS", "PADDING_MATTERS", "build_mixer"]

#: Every mixer by name.
MIXERS: dict[str, Callable[..., nn.Module]] = {
    "kernelution": kernelution,
    "synvolution": synvolution,
    "none": none,
    "vanilla": vanilla,
    "sparse": sparse,
    "reformer": reformer,
    "longformer": longformer,
    "linformer": linformer,
    "bigbird": bigbird,
    "linear": linear,
    "sinkhorn": sinkhorn,
    "performer": performer,
    "synthesizer": synthesizer,
    "nystromformer": nystromformer,
    "luna": luna,
    "fnet": fnet,
    "cosformer": cosformer,
    "paramixer": paramixer,
    "s4d": s4d,
}

#: The mixers whose result depends on padding, and why. All others give a sequence the same result in any batch.
PADDING_MATTERS: dict[str, str] = {
    "fnet": "the Fourier transform runs over the padded length",
}


def build_mixer(
    name: str,
    dim: int,
    *,
    num_heads: int = 1,
    max_length: int | None = None,
    dropout: float = 0.0,
    **options: object,
) -> nn.Module:
    """Make the mixer called ``name``.

    Args:
        name: a key of ``MIXERS``.
        dim: number of features D.
        num_heads: H.
        max_length: longest sequence, for mixers with a parameter per position; others ignore it.
        dropout: rate on the values (on the attention weights where a method has it there).
        options: the mixer's own.

    Example:
        >>> build_mixer("kernelution", 8, num_heads=2, reach="spread").planar
        True
    """
    if name not in MIXERS:
        near = difflib.get_close_matches(name, MIXERS, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown mixer {name!r}: {hint}choose one of {', '.join(MIXERS)}")
    return MIXERS[name](dim, num_heads=num_heads, max_length=max_length, dropout=dropout, **options)
