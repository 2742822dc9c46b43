"""The Kernelution layer, generators and all, against attention and against itself with the paper's algorithm."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from synvolution.experiments.paper_layers import PaperKernelution, paper_algorithm
from synvolution.experiments.timing import Goal, Row, compare
from synvolution.nn.kernelution import Kernelution

Shape = tuple[int, int, int]


class SelfAttention(nn.Module):
    """nn.MultiheadAttention of a sequence with itself."""

    def __init__(self, dim: int, heads: int = 4) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, D) → (B, N, D)."""
        out: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return out


def layer_step(layer: nn.Module, shape: Shape) -> Callable[[], object]:
    """Output and gradients of input and parameters."""
    x = torch.randn(shape, requires_grad=True)
    grad = torch.randn_like(layer(x))
    return lambda: torch.autograd.grad(layer(x), [x, *layer.parameters()], grad, allow_unused=True)


def rows(repeats: int, quick: bool) -> Iterator[Row]:
    """All rows of ``synvolution bench layer``."""
    algorithm, times_ours = paper_algorithm(), Goal(None, at_least=True)
    shapes: list[Shape] = [(2, 64, 8)] if quick else [(32, 2000, 32), (8, 4096, 64), (2, 16384, 128)]
    for shape in shapes:
        dim = shape[2]
        ours = layer_step(Kernelution(dim), shape)
        attention = layer_step(SelfAttention(dim), shape)
        yield compare("MultiheadAttention ÷ Kernelution", str(shape), ours, attention, times_ours, repeats)
        if algorithm is not None:
            paper = layer_step(PaperKernelution(algorithm, dim), shape)
            yield compare("the same by the paper's algorithm ÷ ours", str(shape), ours, paper, times_ours, repeats)
