"""The gate of the GFFN, softplus(a) ⊙ tanh(b), and dropout after it: ``synvolution::gate``."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from synvolution.ops import _cpu
from synvolution.ops._autograd import call, register_gradient, register_loop_vmap
from synvolution.ops.dropout import draw_seed, dropout, plain_dropout, seeded


def gate(a: Tensor, b: Tensor, rate: float = 0.0) -> Tensor:
    """dropout(softplus(a) ⊙ tanh(b)), for a and b of one shape; only these are kept for the backward.

    Example:
        >>> gate(torch.zeros(3, 5), torch.ones(3, 5)).shape
        torch.Size([3, 5])
    """
    if not _cpu.fusible(a, b):
        return dropout(F.softplus(a) * torch.tanh(b), rate)
    return call(torch.ops.synvolution.gate, _plain, a, b, draw_seed(rate), rate)


def _plain(a: Tensor, b: Tensor, seed: Tensor | None, rate: float) -> Tensor:
    return plain_dropout(F.softplus(a) * torch.tanh(b), seed, rate)


def _operands(a: Tensor, *others: Tensor) -> list[Tensor]:
    _cpu.demand(all(t.shape == a.shape for t in others), f"operands of a gate differ from {tuple(a.shape)} in shape")
    return [t for t in _cpu.dense(a, a, *others) if t is not None]


@torch.library.custom_op("synvolution::gate", mutates_args=(), device_types="cpu")
def gate_op(a: Tensor, b: Tensor, seed: Tensor | None, rate: float) -> Tensor:
    """a, b of one shape → the same shape; no dropout without a seed."""
    operands = _operands(a, b)
    out = _cpu.empty(a.shape, a.dtype)
    elements = (a.numel(), torch.get_num_threads(), *seeded(seed, rate))
    _cpu.kernel("gate_forward", a.dtype)(elements, *(t.data_ptr() for t in (*operands, out)))
    return out


@torch.library.custom_op("synvolution::gate_backward", mutates_args=(), device_types="cpu")
def gate_backward(grad: Tensor, a: Tensor, b: Tensor, seed: Tensor | None, rate: float) -> tuple[Tensor, Tensor]:
    """Gradients of a and b."""
    operands = _operands(grad, a, b)
    grad_a, grad_b = _cpu.empty(a.shape, a.dtype), _cpu.empty(a.shape, a.dtype)
    elements = (a.numel(), torch.get_num_threads(), *seeded(seed, rate))
    _cpu.kernel("gate_backward", a.dtype)(elements, *(t.data_ptr() for t in (*operands, grad_a, grad_b)))
    return grad_a, grad_b


@gate_op.register_fake
def _(a: Tensor, b: Tensor, seed: Tensor | None, rate: float) -> Tensor:
    return a.new_empty(a.shape)


@gate_backward.register_fake
def _(grad: Tensor, a: Tensor, b: Tensor, seed: Tensor | None, rate: float) -> tuple[Tensor, Tensor]:
    return a.new_empty(a.shape), a.new_empty(a.shape)


def _backward(grad: Tensor, a: Tensor, b: Tensor, seed: Tensor | None, rate: float) -> tuple[Tensor | None, ...]:
    return *torch.ops.synvolution.gate_backward(grad, a, b, seed, rate), None


register_gradient(gate_op, _backward, _plain)
register_loop_vmap(gate_op)
register_loop_vmap(gate_backward)
