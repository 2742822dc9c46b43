"""Which code computes an operator: the table of backends and the choice among them.

A backend is four functions with the shapes of the custom operators in ``givens.py`` and ``synvolve.py``. To add one,
write a file with these four and add a line to ``BACKENDS``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from synvolution.ops import _cpu, _reference, _triton


class Backend(NamedTuple):
    """The four functions of a backend, and the devices it runs on (None: all)."""

    chain: Callable[[Tensor, Tensor, bool], Tensor]
    chain_backward: Callable[[Tensor, Tensor, Tensor, bool], tuple[Tensor, Tensor]]
    synvolve: Callable[..., Tensor]
    synvolve_backward: Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]]
    devices: tuple[str, ...] | None = None


def fold_heads(v: Tensor, heads: int) -> Tensor:
    """(B, N, 2, H·D) → (B·H, N, 2, D)."""
    return v.unflatten(-1, (heads, v.shape[-1] // heads)).movedim(3, 1).flatten(0, 1)


def unfold_heads(v: Tensor, heads: int) -> Tensor:
    """(B·H, N, 2, D) → (B, N, 2, H·D)."""
    return v.unflatten(0, (v.shape[0] // heads, heads)).movedim(1, 3).flatten(-2)


def _fold_index(index: Tensor | None, batch: int, heads: int) -> Tensor | None:
    """(B or 1, L, N) → (B·H, L, N)."""
    return None if index is None else index.expand(batch, -1, -1).repeat_interleave(heads, 0)


def composed_synvolve(
    apply: _reference.Apply, v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None
) -> Tensor:
    """Synvolve, with heads, from single chains."""
    batch, heads = phase.shape[:2]
    folded = _fold_index(index, batch, heads)
    angles = lower.flatten(0, 1), upper.flatten(0, 1), phase.flatten(0, 1)
    return unfold_heads(_reference.synvolve(apply, fold_heads(v, heads), *angles, folded), heads).contiguous()


def composed_synvolve_backward(
    undo: _reference.Undo,
    grad: Tensor,
    out: Tensor,
    lower: Tensor,
    upper: Tensor,
    phase: Tensor,
    index: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Its gradients, from the un-rotation of single chains."""
    batch, heads = phase.shape[:2]
    folded = _fold_index(index, batch, heads)
    signals = fold_heads(grad, heads), fold_heads(out, heads)
    angles = lower.flatten(0, 1), upper.flatten(0, 1), phase.flatten(0, 1)
    g_v, *rest = _reference.synvolve_backward(undo, *signals, *angles, folded)
    g_lower, g_upper, g_phase = (g.unflatten(0, (batch, heads)).contiguous() for g in rest)
    return unfold_heads(g_v, heads).contiguous(), g_lower, g_upper, g_phase


def _from_runner(run: _reference.Runner) -> Backend:
    def chain(x: Tensor, angles: Tensor, upper: bool) -> Tensor:
        # a custom operator must not return its input, which the carry of a single row is
        return run(x, angles, upper)[0].clone(memory_format=torch.contiguous_format)

    def chain_backward(grad: Tensor, y: Tensor, angles: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
        _, g_x, g_angles = _reference.unrotate(run, y, grad, angles, upper)
        return g_x.clone(memory_format=torch.contiguous_format), g_angles

    apply, undo = partial(_reference.apply_chain, run), partial(_reference.unrotate, run)
    return Backend(chain, chain_backward, partial(composed_synvolve, apply), partial(composed_synvolve_backward, undo))


def _compiled() -> Backend:
    """The C++ kernels: synvolve of one order is one call, more orders and permutations are composed of chains."""

    def synvolve(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None) -> Tensor:
        if lower.shape[2] == 1 and index is None:
            return _cpu.synvolve(v, lower, upper, phase)
        return composed_synvolve(_cpu.chain, v, lower, upper, phase, index)

    def synvolve_backward(
        grad: Tensor, out: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        if lower.shape[2] == 1 and index is None:
            return _cpu.synvolve_backward(grad, out, lower, upper, phase)
        return composed_synvolve_backward(_cpu.unrotate, grad, out, lower, upper, phase, index)

    return Backend(_cpu.chain, _cpu.chain_backward, synvolve, synvolve_backward, ("cpu",))


def _on_gpu() -> Backend:
    """The Triton kernels for synvolve of one order; the scan for what they do not take."""
    scan = _from_runner(_reference.scan)

    def synvolve(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None) -> Tensor:
        if _triton.takes(v, lower, phase, index):
            return _triton.synvolve(v, lower, upper, phase)
        return scan.synvolve(v, lower, upper, phase, index)

    def synvolve_backward(
        grad: Tensor, out: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        if _triton.takes(out, lower, phase, index):
            return _triton.synvolve_backward(grad, out, lower, upper, phase)
        return scan.synvolve_backward(grad, out, lower, upper, phase, index)

    return Backend(scan.chain, scan.chain_backward, synvolve, synvolve_backward, _triton.DEVICES)


#: Backends in order of preference for ``backend="auto"``; ``loop`` is the definition and never chosen by itself.
BACKENDS: dict[str, Backend] = {
    **({"cpp": _compiled()} if _cpu.kernels else {}),
    **({"triton": _on_gpu()} if _triton.INSTALLED else {}),
    "scan": _from_runner(_reference.scan),
    "loop": _from_runner(_reference.loop),
}


def choose(name: str, device: torch.device) -> Backend:
    """The backend of that name, or for ``"auto"`` the first that runs on the device."""
    if name == "auto":
        return next(b for b in BACKENDS.values() if b.devices is None or device.type in b.devices)
    backend = BACKENDS[name]
    if backend.devices is not None and device.type not in backend.devices:
        raise ValueError(f"backend {name!r} runs on {', '.join(backend.devices)}, the tensors are on {device.type}")
    return backend


def automatic(device: torch.device) -> str:
    """Name of the backend that ``"auto"`` stands for on a device.

    Example:
        >>> automatic(torch.device("meta"))
        'scan'
    """
    return next(name for name, b in BACKENDS.items() if b is choose("auto", device))


def runnable(device: torch.device) -> list[str]:
    """Names of the backends that run on a device.

    Example:
        >>> runnable(torch.device("mps"))
        ['scan', 'loop']
    """
    return [name for name, b in BACKENDS.items() if b.devices is None or device.type in b.devices]


def takes_half(name: str, v: Tensor, lower: Tensor, phase: Tensor) -> bool:
    """Whether a backend reads and writes values in half precision itself, for angles (B, …, N−1, 3)."""
    if "triton" not in BACKENDS or choose(name, v.device) is not BACKENDS["triton"]:
        return False
    orders = lower.shape[-3] if lower.ndim == phase.ndim + 2 else 1
    return orders == 1 and lower.dtype == torch.float32 and v.numel() > 0


def check_backend(name: str) -> None:
    """Refuse a backend that does not exist."""
    if name == "triton" and not _triton.INSTALLED:
        found, oldest = _triton.triton_version() or "none", ".".join(map(str, _triton.OLDEST))
        raise ValueError(f"backend 'triton' needs Triton {oldest} or newer, found {found}: pip install triton (Linux)")
    if name != "auto" and name not in BACKENDS:
        raise ValueError(f"unknown backend {name!r}: choose one of {', '.join(['auto', *BACKENDS])}")
