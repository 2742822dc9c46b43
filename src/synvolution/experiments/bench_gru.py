"""sv.GRU against torch.nn.GRU: two layers, forward and all gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from synvolution.experiments.timing import Goal, Row, compare
from synvolution.nn.gru import GRU

Shape = tuple[int, int, int]


def gru_step(layer: torch.nn.Module, shape: Shape) -> Callable[[], object]:
    """Output and gradients of input and parameters."""
    x, grad = torch.randn(shape, requires_grad=True), torch.randn(shape)
    return lambda: torch.autograd.grad(layer(x)[0], [x, *layer.parameters()], grad)


def rows(repeats: int, quick: bool) -> Iterator[Row]:
    """All rows of ``synvolution bench gru``."""
    sizes = {(4, 16384, 128): 10.0, (32, 2000, 32): 8.0, (128, 512, 64): 1.0}
    for shape, bound in ({(2, 32, 8): 1.0} if quick else sizes).items():
        width = shape[2]
        ours, theirs = GRU(width, width, 2, batch_first=True), torch.nn.GRU(width, width, 2, batch_first=True)
        ours.load_state_dict(theirs.state_dict())
        goal = Goal(bound, at_least=True)
        name = "torch.nn.GRU ÷ sv.GRU, fwd+bwd"
        yield compare(name, str(shape), gru_step(ours, shape), gru_step(theirs, shape), goal, repeats)
