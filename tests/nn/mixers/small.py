"""Mixers with pieces so small that short sequences already have several of them, and an incomplete last one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from synvolution.nn import MIXERS, build_mixer

DIM, HEADS, MAX_LENGTH = 8, 2, 40

#: Options that make blocks, buckets, windows and landmarks small.
OPTIONS: dict[str, dict[str, int]] = {
    "sparse": {"stride": 3},
    "reformer": {"bucket_size": 4, "num_hashes": 2},
    "longformer": {"window": 4},
    "linformer": {"projected": 5},
    "bigbird": {"block_size": 3, "num_random": 2},
    "sinkhorn": {"block_size": 4},
    "performer": {"features": 12},
    "nystromformer": {"landmarks": 5, "kernel_size": 5},
    "luna": {"memory": 7},
    "s4d": {"states": 4},
}

#: The baselines: all with real output.
BASELINES = [name for name in MIXERS if name not in ("kernelution", "synvolution", "none")]


def small(name: str, dropout: float = 0.0) -> nn.Module:
    """The mixer with its small options, in evaluation mode."""
    options = OPTIONS.get(name, {})
    return build_mixer(name, DIM, num_heads=HEADS, max_length=MAX_LENGTH, dropout=dropout, **options).eval()


def mask_of(lengths: list[int], n: int, side: str = "right") -> Tensor:
    """(B, N) with as many real positions as given, padding on that side."""
    mask = torch.arange(n) < torch.tensor(lengths)[:, None]
    return mask if side == "right" else mask.flip(1)
