"""Pooling: one vector per sequence, from its real positions alone. Listed in ``POOLINGS``.

To add one, write a function ``(x, mask) -> (B, D)`` and add its line to the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from synvolution.nn.norm import wide


def _mean(x: Tensor, mask: Tensor) -> Tensor:
    return _sum(x, mask) / mask.sum(-1, keepdim=True)


def _sum(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask[..., None], x, 0.0).sum(1)


def _max(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask[..., None], x, -math.inf).amax(1)


def _first(x: Tensor, mask: Tensor) -> Tensor:
    return _row(x, mask.long().argmax(-1))


def _last(x: Tensor, mask: Tensor) -> Tensor:
    return _row(x, mask.shape[1] - 1 - mask.long().flip(-1).argmax(-1))


def _ends(x: Tensor, mask: Tensor) -> Tensor:
    return torch.cat((_mean(x, mask), _first(x, mask), _last(x, mask)), -1)


def _row(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index[:, None, None].expand(-1, 1, x.shape[-1])).squeeze(1)


#: Every pooling by name.
POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": _mean,
    "first": _first,
    "last": _last,
    "sum": _sum,
    "max": _max,
    "ends": _ends,
}


class Pooling(nn.Module):
    """Pool the real positions of each sequence to one vector.

    "mean" (the paper's), "first", "last", "sum", "max", or "ends": mean, first and last concatenated. Padding may be on
    either side; what stands there does not matter.

    Args:
        kind: a name in ``POOLINGS``.

    Shape:
        x (B, N, D), mask (B, N) bool, True where a position is real → (B, D), or (B, 3D) for "ends"; the dtype of x,
        summed in float32 at least.

    Example:
        >>> x = torch.arange(6.0).reshape(1, 3, 2)
        >>> Pooling("mean")(x, torch.tensor([[True, True, False]])).tolist()
        [[1.0, 2.0]]
        >>> Pooling("ends")(x).tolist(), Pooling("ends").width(2)
        ([[2.0, 3.0, 0.0, 1.0, 4.0, 5.0]], 6)
    """

    def __init__(self, kind: str = "mean") -> None:
        super().__init__()
        if kind not in POOLINGS:
            raise ValueError(f"unknown pooling {kind!r}: choose one of {', '.join(POOLINGS)}")
        self.kind = kind

    def width(self, dim: int) -> int:
        """Number of features of the result for D features of the input."""
        return 3 * dim if self.kind == "ends" else dim

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """One vector per sequence."""
        if x.ndim != 3 or x.shape[1] < 1:
            raise ValueError(f"x has shape {tuple(x.shape)}: expected (B, N, D) with N ≥ 1")
        if mask is None:
            mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        elif mask.dtype != torch.bool:
            raise TypeError(f"mask is {mask.dtype}: expected torch.bool, True where a position is real")
        elif mask.shape != x.shape[:2]:
            raise ValueError(f"mask has shape {tuple(mask.shape)}: expected {tuple(x.shape[:2])} for (B, N)")
        elif not torch.compiler.is_compiling() and not bool(mask.any(-1).all()):
            row = int((~mask.any(-1)).nonzero()[0])
            raise ValueError(f"row {row} of the mask has no real position: give each sequence at least one, or drop it")
        return POOLINGS[self.kind](wide(x), mask).to(x.dtype)

    def extra_repr(self) -> str:
        """The settings, for printing."""
        return repr(self.kind)
