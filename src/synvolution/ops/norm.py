"""ScaleNorm of a sum, a mixture or sines, and dropout after it, in one pass: ``synvolution::scale_norm``.

    u = x,  x + other (in x's first features),  x + ζ other_real + (1−ζ) other_imaginary,  or sin(x)
    out = dropout(s · u / max(‖u‖, ε))

Only the operands are kept; the backward computes u, its length and the dropout's factors again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from synvolution.ops import _cpu
from synvolution.ops._autograd import call, register_gradient, register_loop_vmap
from synvolution.ops.dropout import draw_seed, dropout, plain_dropout, seeded

#: Below this length a vector is divided by it instead of its own, so that zero has a finite value and gradient.
EPSILON = 1e-5

#: Numbers of ``NormSource`` in csrc/kernels.hpp.
ALONE, JOINED, MIXED, SINE = range(4)


def scale_norm(
    x: Tensor,
    scale: Tensor,
    other: Tensor | None = None,
    zeta: Tensor | None = None,
    *,
    sine: bool = False,
    rate: float = 0.0,
) -> Tensor:
    """Bring the vectors u to length s, then drop elements.

    Args:
        x: (..., W).
        scale: s, a scalar.
        other: (..., D), D ≤ W, is added to the first D features of x; beside ``zeta`` it is (..., 2W), two planes.
        zeta: ζ, a scalar: u = x + ζ other[:W] + (1−ζ) other[W:].
        sine: u = sin(x); without ``other``.
        rate: of dropout.

    Returns:
        (..., W).

    Example:
        >>> x, one = torch.tensor([3.0, 0.0]), torch.ones(())
        >>> [round(v, 4) for v in scale_norm(x, one, torch.tensor([0.0, 4.0])).tolist()]
        [0.6, 0.8]
    """
    if not _cpu.fusible(x, other) or not _cpu.usable(scale, zeta):
        return dropout(_plain_norm(x, other, zeta, scale, sine), rate)
    # 0-dimensional tensors do not promote: x decides
    scale, zeta = scale.to(x.dtype), None if zeta is None else zeta.to(x.dtype)
    return call(torch.ops.synvolution.scale_norm, _plain, x, other, zeta, scale, draw_seed(rate), rate, sine)


def unit(x: Tensor) -> Tensor:
    """x / max(‖x‖, ε) over the last dimension."""
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(EPSILON)


def summed(x: Tensor, other: Tensor | None, zeta: Tensor | None) -> Tensor:
    """u = x + other, or x + ζ other_real + (1−ζ) other_imaginary; shapes as in :func:`scale_norm`."""
    if other is None:
        return x
    if zeta is not None:
        real, imaginary = other.chunk(2, -1)
        return x + zeta * real + (1 - zeta) * imaginary
    width = other.shape[-1]
    return torch.cat((x[..., :width] + other, x[..., width:]), -1) if width < x.shape[-1] else x + other


def _plain_norm(x: Tensor, other: Tensor | None, zeta: Tensor | None, scale: Tensor, sine: bool) -> Tensor:
    return scale * unit(torch.sin(x) if sine else summed(x, other, zeta))


def _plain(
    x: Tensor,
    other: Tensor | None,
    zeta: Tensor | None,
    scale: Tensor,
    seed: Tensor | None,
    rate: float,
    sine: bool,
) -> Tensor:
    return plain_dropout(_plain_norm(x, other, zeta, scale, sine), seed, rate)


def _kernel_arguments(
    x: Tensor, other: Tensor | None, zeta: Tensor | None, scale: Tensor, seed: Tensor | None, rate: float, sine: bool
) -> tuple[Any, ...]:
    """Sizes and numbers as the kernels want them, once the shapes are known to fit."""
    width = x.shape[-1] if x.ndim else 0
    joined = 0 if other is None else other.shape[-1]
    fits = other is None or (other.shape[:-1] == x.shape[:-1] and not sine)
    fits = fits and (joined <= width if zeta is None else joined == 2 * width)
    _cpu.demand(
        width > 0 and fits and scale.numel() == 1,
        f"x has shape {tuple(x.shape)}, other {None if other is None else tuple(other.shape)}: expected (..., W) and "
        "at most W features, or 2W beside zeta, and none beside sines",
    )
    source = MIXED if zeta is not None else JOINED if other is not None else SINE if sine else ALONE
    numbers = float(scale), 0.0 if zeta is None else float(zeta)
    return x.numel() // width, width, joined, torch.get_num_threads(), source, *numbers, *seeded(seed, rate)


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


@torch.library.custom_op("synvolution::scale_norm", mutates_args=(), device_types="cpu")
def scale_norm_op(
    x: Tensor, other: Tensor | None, zeta: Tensor | None, scale: Tensor, seed: Tensor | None, rate: float, sine: bool
) -> Tensor:
    """x (..., W), other (..., D) or (..., 2W), scalars zeta and scale → (..., W); no dropout without a seed."""
    arguments = _kernel_arguments(x, other, zeta, scale, seed, rate, sine)
    operands = _cpu.dense(x, x, other)
    out = _cpu.empty(x.shape, x.dtype)
    _cpu.kernel("norm_forward", x.dtype)(arguments, *map(_address, operands), out.data_ptr())
    return out


@torch.library.custom_op("synvolution::scale_norm_backward", mutates_args=(), device_types="cpu")
def scale_norm_backward(
    grad: Tensor,
    x: Tensor,
    other: Tensor | None,
    zeta: Tensor | None,
    scale: Tensor,
    seed: Tensor | None,
    rate: float,
    sine: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, of other (empty without zeta: it is then a part of x's), of zeta and of scale."""
    arguments = _kernel_arguments(x, other, zeta, scale, seed, rate, sine)
    _cpu.demand(grad.shape == x.shape, f"grad has shape {tuple(grad.shape)}: expected {tuple(x.shape)}")
    operands = _cpu.dense(x, grad, x, other)
    grad_x = _cpu.empty(x.shape, x.dtype)
    grad_other = _cpu.empty(_other_shape(other, zeta), x.dtype)
    grad_zeta, grad_scale = x.new_empty(()), x.new_empty(())
    results = (grad_x, None if zeta is None else grad_other, grad_scale, grad_zeta)
    _cpu.kernel("norm_backward", x.dtype)(arguments, *map(_address, (*operands, *results)))
    return grad_x, grad_other, grad_zeta, grad_scale


def _other_shape(other: Tensor | None, zeta: Tensor | None) -> tuple[int, ...]:
    return (0,) if other is None or zeta is None else tuple(other.shape)


@scale_norm_op.register_fake
def _(
    x: Tensor, other: Tensor | None, zeta: Tensor | None, scale: Tensor, seed: Tensor | None, rate: float, sine: bool
) -> Tensor:
    return x.new_empty(x.shape)


@scale_norm_backward.register_fake
def _(
    grad: Tensor,
    x: Tensor,
    other: Tensor | None,
    zeta: Tensor | None,
    scale: Tensor,
    seed: Tensor | None,
    rate: float,
    sine: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(_other_shape(other, zeta)), x.new_empty(()), x.new_empty(())


def _backward(grad: Tensor, x: Tensor, other: Tensor | None, zeta: Tensor | None, *rest: Any) -> tuple[Any, ...]:
    grad_x, grad_other, grad_zeta, grad_scale = torch.ops.synvolution.scale_norm_backward(grad, x, other, zeta, *rest)
    if other is not None and zeta is None:
        grad_other = grad_x if other.shape == x.shape else grad_x[..., : other.shape[-1]]
    return grad_x, grad_other, grad_zeta, grad_scale, None


register_gradient(scale_norm_op, _backward, _plain)
register_loop_vmap(scale_norm_op)
register_loop_vmap(scale_norm_backward)
