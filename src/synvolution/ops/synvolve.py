"""Synvolution's operator, Q^H e^{iφ} Q with Q a product of chains: ``synvolution::synvolve``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from synvolution.ops import _backends, _reference
from synvolution.ops._autograd import batch_first, call, register_second_order
from synvolution.ops._checks import check_angles, check_beside, check_index, check_planar, check_real, check_shape
from synvolution.ops.givens import lower_chain, upper_chain

#: Types that values may have beside float32 angles.
HALVES = (torch.float16, torch.bfloat16)


def synvolve(
    v: Tensor,
    lower: Tensor,
    upper: Tensor,
    phase: Tensor,
    mask: Tensor | None = None,
    *,
    permutation: Tensor | None = None,
    backend: str = "auto",
) -> Tensor:
    """Unitary digraph convolution Φ^{-1} [e^{iφ} ⊙ (Φ v)] (eq. synvolution), Φ = ∏_l H_l H_u P.

    The diagonal D of Φ cancels and is not asked for. Only the output is kept for the backward pass.

    Args:
        v: (B, N, 2, D) planar values; with H heads, head h owns features h·D/H … (h+1)·D/H − 1. float16 and bfloat16
            beside float32 angles and phase are computed in float32 and come out as they went in.
        lower, upper: (B, N−1, 3) angles of the chains, or (B, L, N−1, 3) for L orders; with heads (B, H, …).
        phase: (B, N) phases φ of the eigenvalues; with heads (B, H, N).
        mask: (B, N) bool, True where a position is real. Rotations that touch another row become the identity, so
            that a padded batch gives what each sequence gives alone; any finite values may stand in padded rows, which
            come out as they went in.
        permutation: None for the identity; int64 rows (N,), (L, N) or (B, L, N) with (P x)_i = x_{permutation[i]}; or
            float matrices (N, N), (L, N, N) or (B, L, N, N), e.g. soft permutations while they are learned, for which
            P^H stands in for the inverse.
        backend: "auto", or one of ``_backends.BACKENDS``.

    Returns:
        (B, N, 2, D).

    Example:
        >>> v, phase = torch.randn(2, 9, 2, 4), torch.randn(2, 9)
        >>> lower, upper = torch.randn(2, 8, 3), torch.randn(2, 8, 3)
        >>> out = synvolve(v, lower, upper, phase)
        >>> torch.allclose(out.norm(), v.norm())
        True
    """
    _backends.check_backend(backend)
    if isinstance(v, Tensor) and v.dtype in HALVES:
        check_real(lower=lower, upper=upper, phase=phase)
        if permutation is not None or not _backends.takes_half(backend, v, lower, phase):
            wide = v.to(phase.dtype)
            out = synvolve(wide, lower, upper, phase, mask, permutation=permutation, backend=backend)
            return out.to(v.dtype)
        check_beside("lower", lower, v)
    else:
        check_real(v=v, lower=lower, upper=upper, phase=phase)
    lower, upper, phase = _canonical(v, lower, upper, phase)
    batch, _, orders = lower.shape[:3]
    n = v.shape[1]
    if mask is not None:
        check_beside("mask", mask, v)
        lower, upper, phase = _masked(mask, lower, upper, phase)
    if permutation is None:
        return call(torch.ops.synvolution.synvolve, _plain, v, lower, upper, phase, None, backend)
    check_beside("permutation", permutation, v)
    if permutation.is_floating_point():
        if mask is not None:
            raise ValueError("a permutation matrix moves padded rows among the real ones: use it without a mask")
        return _synvolve_soft(v, lower, upper, phase, permutation, backend)
    index = _rows(permutation, batch, orders, n)
    if mask is not None:
        _check_padding_stays(mask, permutation)
    return call(torch.ops.synvolution.synvolve, _plain, v, lower, upper, phase, index, backend)


def _canonical(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Check shapes; angles → (B, H, L, N−1, 3), phase → (B, H, N)."""
    check_planar("v", v)
    if v.ndim != 4:
        raise ValueError(f"v has shape {tuple(v.shape)}: expected (B, N, 2, D)")
    batch, n, _, d = v.shape
    if phase.ndim not in (2, 3):
        raise ValueError(f"phase has shape {tuple(phase.shape)}: expected (B, N), or (B, H, N) with heads")
    full_phase = phase if phase.ndim == 3 else phase[:, None]
    heads = full_phase.shape[1]
    check_shape("phase", phase, (batch, n) if phase.ndim == 2 else (batch, heads, n), "(B, N) or (B, H, N)")
    if heads < 1 or d % heads:
        raise ValueError(f"{heads} heads do not divide {d} features")
    angles = []
    for name, given in (("lower", lower), ("upper", upper)):
        check_angles(name, given, n)
        own = phase.ndim - 1
        orders = given.shape[own] if given.ndim == own + 3 else 1
        if given.ndim not in (own + 2, own + 3) or given.shape[:own] != phase.shape[:own] or orders < 1:
            raise ValueError(
                f"{name} has shape {tuple(given.shape)} beside phase {tuple(phase.shape)}: "
                "expected (B, [H,] [L,] N-1, 3), with H exactly when phase is (B, H, N), and L ≥ 1"
            )
        angles.append(given.reshape(batch, heads, orders, n - 1, 3))
    if angles[0].shape != angles[1].shape:
        raise ValueError(f"lower has {angles[0].shape[2]} orders, upper has {angles[1].shape[2]}: give both the same")
    return angles[0], angles[1], full_phase


def _masked(mask: Tensor, lower: Tensor, upper: Tensor, phase: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Zero angles where a rotation touches a padded row, zero phase there (docs/math.md)."""
    if mask.dtype != torch.bool:
        raise TypeError(f"mask is {mask.dtype}: expected torch.bool, True where a position is real")
    check_shape("mask", mask, (phase.shape[0], phase.shape[-1]), "(B, N)")
    both = (mask[:, :-1] & mask[:, 1:])[:, None, None, :, None]
    zero = torch.zeros((), dtype=phase.dtype, device=phase.device)
    return torch.where(both, lower, zero), torch.where(both, upper, zero), torch.where(mask[:, None], phase, zero)


def _rows(permutation: Tensor, batch: int, orders: int, n: int) -> Tensor:
    """Row numbers (N,), (L, N) or (B, L, N) → (1 or B, L, N)."""
    check_index("permutation", permutation, n)
    index = permutation.reshape((1,) * (3 - permutation.ndim) + tuple(permutation.shape))
    if index.ndim != 3 or index.shape[1] not in (1, orders) or index.shape[0] not in (1, batch):
        raise ValueError(
            f"permutation has shape {tuple(permutation.shape)}: expected (N,), (L, N) or (B, L, N) "
            f"with B = {batch}, L = {orders}, N = {n}"
        )
    return index.expand(-1, orders, -1).contiguous()


def _check_padding_stays(mask: Tensor, permutation: Tensor) -> None:
    """With a mask every sequence needs rows of its own length, or padding would change the answer."""
    if torch.compiler.is_compiling():
        return
    rows = torch.arange(mask.shape[1], device=mask.device)
    if not bool(((permutation == rows) | mask[:, None]).all()):
        raise ValueError(
            "permutation moves padded rows, so padding would change the result: give (B, L, N) rows, one permutation "
            "per sequence over its own length and padded rows left where they are"
        )


def _synvolve_soft(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, matrix: Tensor, backend: str) -> Tensor:
    """The same with dense matrices in place of permutations, chain by chain."""
    batch, heads, orders, _, _ = lower.shape
    n = v.shape[1]
    check_real(v=v, permutation=matrix)
    full = matrix.reshape((1,) * (4 - matrix.ndim) + tuple(matrix.shape)) if matrix.ndim <= 4 else matrix
    if (
        full.ndim != 4
        or full.shape[2:] != (n, n)
        or full.shape[1] not in (1, orders)
        or full.shape[0] not in (1, batch)
    ):
        raise ValueError(
            f"permutation has shape {tuple(matrix.shape)}: expected (N, N), (L, N, N) or (B, L, N, N) "
            f"with B = {batch}, L = {orders}, N = {n}"
        )
    full = full.expand(batch, orders, n, n).repeat_interleave(heads, 0)
    s = _backends.fold_heads(v, heads)
    lower, upper, phase = lower.flatten(0, 1), upper.flatten(0, 1), phase.flatten(0, 1)
    for order in reversed(range(orders)):
        s = torch.einsum("bij,bjcd->bicd", full[:, order], s)
        s = lower_chain(upper_chain(s, upper[:, order], backend=backend), lower[:, order], backend=backend)
    s = _reference.phase_product(phase, s)
    for order in range(orders):
        s = lower_chain(s, lower[:, order], adjoint=True, backend=backend)
        s = upper_chain(s, upper[:, order], adjoint=True, backend=backend)
        s = torch.einsum("bji,bjcd->bicd", full[:, order], s)
    return _backends.unfold_heads(s, heads)


@torch.library.custom_op("synvolution::synvolve", mutates_args=())
def synvolve_op(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None, backend: str) -> Tensor:
    """v (B, N, 2, D), lower and upper (B, H, L, N−1, 3), phase (B, H, N), index (B or 1, L, N) → (B, N, 2, D)."""
    return _backends.choose(backend, v.device).synvolve(v, lower, upper, phase, index)


@torch.library.custom_op("synvolution::synvolve_backward", mutates_args=())
def synvolve_backward(
    grad: Tensor, out: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None, backend: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of v, lower, upper, phase from the output alone, by un-rotation."""
    return _backends.choose(backend, out.device).synvolve_backward(grad, out, lower, upper, phase, index)


def _like(t: Tensor) -> Tensor:
    return torch.empty(t.shape, dtype=t.dtype, device=t.device)


@synvolve_op.register_fake
def _(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None, backend: str) -> Tensor:
    return _like(v)


@synvolve_backward.register_fake
def _(
    grad: Tensor, out: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None, backend: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _like(out), _like(lower), _like(upper), _like(phase)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, lower, upper, phase, index, ctx.backend = inputs
    ctx.save_for_backward(output, lower, upper, phase, index)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    grads = torch.ops.synvolution.synvolve_backward(grad, *ctx.saved_tensors, ctx.backend)
    return *grads, None, None


def _plain(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None, backend: str) -> Tensor:
    return _backends.composed_synvolve(partial(_reference.apply_chain, _reference.scan), v, lower, upper, phase, index)


def _plain_backward(
    grad: Tensor, out: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None, backend: str
) -> tuple[Tensor, ...]:
    undo = partial(_reference.unrotate, _reference.scan)
    return _backends.composed_synvolve_backward(undo, grad, out, lower, upper, phase, index)


synvolve_op.register_autograd(_backward, setup_context=_save)
register_second_order(synvolve_backward, _plain_backward, tensors=5)


def _batch_index(size: int, dim: int | None, index: Tensor | None, batch: int) -> Tensor | None:
    """Merge the mapped dimension into the batch of an index (B or 1, L, N), kept at 1 where it is shared."""
    if index is None or (dim is None and index.shape[0] == 1):
        return index
    mapped = index.expand(size, *index.shape) if dim is None else index.movedim(dim, 0)
    return mapped.expand(size, batch, *mapped.shape[2:]).flatten(0, 1)


@synvolve_op.register_vmap
def _(
    info: Any,
    dims: Sequence[int | None],
    v: Tensor,
    lower: Tensor,
    upper: Tensor,
    phase: Tensor,
    index: Tensor | None,
    backend: str,
) -> tuple[Tensor, int]:
    size = info.batch_size
    flat = batch_first(size, dims[:4], (v, lower, upper, phase))
    rows = _batch_index(size, dims[4], index, flat[0].shape[0] // size)
    return torch.ops.synvolution.synvolve(*flat, rows, backend).unflatten(0, (size, -1)), 0


@synvolve_backward.register_vmap
def _(
    info: Any,
    dims: Sequence[int | None],
    grad: Tensor,
    out: Tensor,
    lower: Tensor,
    upper: Tensor,
    phase: Tensor,
    index: Tensor | None,
    backend: str,
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    size = info.batch_size
    flat = batch_first(size, dims[:5], (grad, out, lower, upper, phase))
    rows = _batch_index(size, dims[5], index, flat[0].shape[0] // size)
    grads = torch.ops.synvolution.synvolve_backward(*flat, rows, backend)
    return tuple(g.unflatten(0, (size, -1)) for g in grads), (0, 0, 0, 0)
