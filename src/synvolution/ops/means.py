"""Means of groups of sines, from which eigenvalues and angles are made: ``synvolution::sine_means``."""

from __future__ import annotations

import torch
from torch import Tensor

from synvolution.ops import _cpu
from synvolution.ops._autograd import call, register_gradient, register_loop_vmap
from synvolution.ops.norm import EPSILON


def sine_means(x: Tensor, groups: int, *, unit: bool = False) -> Tensor:
    """Mean of each group of sin(x), with ``unit`` after bringing all groups together to unit length.

    Args:
        x: (..., G·A), G groups of A features.
        groups: G.

    Returns:
        (..., G).

    Example:
        >>> sine_means(torch.full((4, 6), 1.5707963), 2)[0].tolist()
        [1.0, 1.0]
    """
    if x.shape[-1] % groups:
        raise ValueError(f"{groups} groups do not divide {x.shape[-1]} features")
    if not _cpu.fusible(x):
        return _plain(x, groups, unit)
    return call(torch.ops.synvolution.sine_means, _plain, x, groups, unit)


def _plain(x: Tensor, groups: int, unit: bool) -> Tensor:
    sines = torch.sin(x)
    means = sines.unflatten(-1, (groups, -1)).mean(-1)
    # divided after the mean, which is the same and much less to divide
    return means / torch.linalg.vector_norm(sines, dim=-1, keepdim=True).clamp_min(EPSILON) if unit else means


def _sizes(x: Tensor, groups: int) -> tuple[int, int, int]:
    """Rows, groups in a row, features of a group."""
    width = x.shape[-1] if x.ndim else 0
    _cpu.demand(width > 0 and groups > 0 and width % groups == 0, f"{groups} groups do not divide {width} features")
    return x.numel() // width, groups, width // groups


@torch.library.custom_op("synvolution::sine_means", mutates_args=(), device_types="cpu")
def sine_means_op(x: Tensor, groups: int, unit: bool) -> Tensor:
    """(..., G·A) → (..., G)."""
    sizes = _sizes(x, groups)
    (dense,) = _cpu.dense(x, x)
    assert dense is not None
    out = _cpu.empty((*x.shape[:-1], groups), x.dtype)
    _cpu.kernel("means_forward", x.dtype)(*sizes, unit, torch.get_num_threads(), dense.data_ptr(), out.data_ptr())
    return out


@torch.library.custom_op("synvolution::sine_means_backward", mutates_args=(), device_types="cpu")
def sine_means_backward(grad: Tensor, x: Tensor, groups: int, unit: bool) -> Tensor:
    """Gradient of x."""
    sizes = _sizes(x, groups)
    _cpu.demand(grad.shape == (*x.shape[:-1], groups), f"grad has shape {tuple(grad.shape)} for {tuple(x.shape)}")
    operands = [t for t in _cpu.dense(x, grad, x) if t is not None]
    grad_x = _cpu.empty(x.shape, x.dtype)
    addresses = (t.data_ptr() for t in (*operands, grad_x))
    _cpu.kernel("means_backward", x.dtype)(*sizes, unit, torch.get_num_threads(), *addresses)
    return grad_x


@sine_means_op.register_fake
def _(x: Tensor, groups: int, unit: bool) -> Tensor:
    return x.new_empty((*x.shape[:-1], groups))


@sine_means_backward.register_fake
def _(grad: Tensor, x: Tensor, groups: int, unit: bool) -> Tensor:
    return x.new_empty(x.shape)


def _backward(grad: Tensor, x: Tensor, groups: int, unit: bool) -> tuple[Tensor]:
    return (torch.ops.synvolution.sine_means_backward(grad, x, groups, unit),)


register_gradient(sine_means_op, _backward, _plain)
register_loop_vmap(sine_means_op)
register_loop_vmap(sine_means_backward)
