"""Chains of rotations of neighbouring rows: the operator ``synvolution::givens_chain``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from synvolution.ops import _backends, _reference
from synvolution.ops._autograd import batch_first, call, register_second_order
from synvolution.ops._checks import check_angles, check_planar, check_real
from synvolution.ops._reference import adjoint_angles, rotation_coefficients

__all__ = ["adjoint_angles", "lower_chain", "rotation_coefficients", "upper_chain"]


def upper_chain(x: Tensor, angles: Tensor, *, adjoint: bool = False, backend: str = "auto") -> Tensor:
    """Upper Hessenberg chain H_u = G_0 G_1 … G_{N−2} (eq. givens_lhhp), or its adjoint, applied to x.

    Args:
        x: (..., N, 2, D) planar.
        angles: (..., N−1, 3), α, β, γ of each rotation; leading sizes broadcast with those of x.
        adjoint: apply H_u^H, which is the inverse.
        backend: "auto", or one of ``_backends.BACKENDS``.

    Returns:
        (..., N, 2, D).

    Example:
        >>> x, angles = torch.randn(7, 2, 4), torch.randn(6, 3)
        >>> y = upper_chain(x, angles)
        >>> torch.allclose(upper_chain(y, angles, adjoint=True), x, atol=1e-5)
        True
    """
    return _apply(x, angles, True, adjoint, backend)


def lower_chain(x: Tensor, angles: Tensor, *, adjoint: bool = False, backend: str = "auto") -> Tensor:
    """Lower Hessenberg chain H_l = G_{N−2} … G_1 G_0 (eq. givens_lhhp), or its adjoint, applied to x.

    Arguments and result as in :func:`upper_chain`.

    Example:
        >>> x, angles = torch.randn(3, 7, 2, 4), torch.randn(6, 3)
        >>> torch.allclose(lower_chain(x, angles).norm(), x.norm())
        True
    """
    return _apply(x, angles, False, adjoint, backend)


def _apply(x: Tensor, angles: Tensor, upper: bool, adjoint: bool, backend: str) -> Tensor:
    _backends.check_backend(backend)
    check_real(x=x, angles=angles)
    check_planar("x", x)
    n, _, d = x.shape[-3:]
    check_angles("angles", angles, n)
    batch = torch.broadcast_shapes(x.shape[:-3], angles.shape[:-2])
    if adjoint:
        angles, upper = adjoint_angles(angles), not upper
    count = math.prod(batch)
    flat_x = x.expand(*batch, n, 2, d).reshape(count, n, 2, d)
    flat_angles = angles.expand(*batch, n - 1, 3).reshape(count, n - 1, 3)
    y = call(torch.ops.synvolution.givens_chain, _plain, flat_x, flat_angles, upper, backend)
    return y.reshape(*batch, n, 2, d)


@torch.library.custom_op("synvolution::givens_chain", mutates_args=())
def givens_chain(x: Tensor, angles: Tensor, upper: bool, backend: str) -> Tensor:
    """x (B, N, 2, D), angles (B, N−1, 3) → (B, N, 2, D)."""
    return _backends.choose(backend, x.device).chain(x, angles, upper)


@torch.library.custom_op("synvolution::givens_chain_backward", mutates_args=())
def givens_chain_backward(grad: Tensor, y: Tensor, angles: Tensor, upper: bool, backend: str) -> tuple[Tensor, Tensor]:
    """Gradients of x and of the angles from the output y alone, by un-rotation."""
    return _backends.choose(backend, y.device).chain_backward(grad, y, angles, upper)


@givens_chain.register_fake
def _(x: Tensor, angles: Tensor, upper: bool, backend: str) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


@givens_chain_backward.register_fake
def _(grad: Tensor, y: Tensor, angles: Tensor, upper: bool, backend: str) -> tuple[Tensor, Tensor]:
    return torch.empty(y.shape, dtype=y.dtype, device=y.device), torch.empty(
        angles.shape, dtype=y.dtype, device=y.device
    )


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, angles, ctx.upper, ctx.backend = inputs
    ctx.save_for_backward(output, angles)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    y, angles = ctx.saved_tensors
    g_x, g_angles = torch.ops.synvolution.givens_chain_backward(grad, y, angles, ctx.upper, ctx.backend)
    return g_x, g_angles, None, None


def _plain(x: Tensor, angles: Tensor, upper: bool, backend: str) -> Tensor:
    return _reference.scan(x, angles, upper)[0]


def _plain_backward(grad: Tensor, y: Tensor, angles: Tensor, upper: bool, backend: str) -> tuple[Tensor, Tensor]:
    return _reference.unrotate(_reference.scan, y, grad, angles, upper)[1:]


givens_chain.register_autograd(_backward, setup_context=_save)
register_second_order(givens_chain_backward, _plain_backward, tensors=3)


@givens_chain.register_vmap
def _(info: Any, dims: Sequence[int | None], x: Tensor, angles: Tensor, upper: bool, backend: str) -> tuple:
    flat = batch_first(info.batch_size, dims[:2], (x, angles))
    y = torch.ops.synvolution.givens_chain(*flat, upper, backend)
    return y.unflatten(0, (info.batch_size, -1)), 0


@givens_chain_backward.register_vmap
def _(
    info: Any, dims: Sequence[int | None], grad: Tensor, y: Tensor, angles: Tensor, upper: bool, backend: str
) -> tuple:
    flat = batch_first(info.batch_size, dims[:3], (grad, y, angles))
    grads = torch.ops.synvolution.givens_chain_backward(*flat, upper, backend)
    return tuple(g.unflatten(0, (info.batch_size, -1)) for g in grads), (0, 0)
