"""The compiled kernels, called with addresses: dense tensors, float32 or float64; the number of threads is torch's.

The public functions explain bad arguments; here they are refused once more, since a custom operator can be called
without them and a wrong shape would be a wrong address.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

kernels: Any = None
try:
    kernels = importlib.import_module("synvolution._kernels")
except ImportError:
    warnings.warn(
        "synvolution runs without its compiled kernels, with a slower portable scan: no C++17 compiler was found when "
        "it was installed. Install one (Debian: g++) and reinstall the package",
        RuntimeWarning,
        stacklevel=2,
    )

#: From this size on, memory for a result is asked for in large pages: touching fresh pages costs as much as computing.
LARGE_BYTES = 1 << 22


_switched_on = True


@contextlib.contextmanager
def switched_off() -> Iterator[None]:
    """Layers in plain torch instead of kernels: for tests, and for what kernels are measured against."""
    global _switched_on
    before, _switched_on = _switched_on, False
    try:
        yield
    finally:
        _switched_on = before


def usable(*tensors: Tensor | None) -> bool:
    """Whether the kernels are built and can work on these tensors."""
    return kernels is not None and _switched_on and all(t is None or t.device.type == "cpu" for t in tensors)


def fusible(x: Tensor, *others: Tensor | None) -> bool:
    """Whether the kernels can, and all tensors are float32 or all float64: else plain torch, which promotes types."""
    real = x.dtype in (torch.float32, torch.float64)
    return real and usable(x, *others) and all(t is None or t.dtype == x.dtype for t in others)


def demand(condition: bool, message: str) -> None:
    """Refuse what would become a wrong address."""
    if not condition:
        raise ValueError(message)


def dense(like: Tensor, *tensors: Tensor | None) -> list[Tensor | None]:
    """All of the dtype of the first, on the CPU, float32 or float64, and contiguous."""
    _demand(like, **{f"operand {i}": (t, tuple(t.shape)) for i, t in enumerate(tensors) if t is not None})
    return [None if t is None else t.contiguous() for t in tensors]


def kernel(name: str, dtype: torch.dtype) -> Any:
    """The compiled function of that name for float32 or float64."""
    return getattr(kernels, f"{name}_{str(dtype).removeprefix('torch.')}")


def empty(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Uninitialised memory for a result, in large pages if it is big."""
    fresh = torch.empty(shape, dtype=dtype)
    if fresh.nbytes >= LARGE_BYTES:
        kernels.advise_large_pages(fresh.data_ptr(), fresh.nbytes)
    return fresh


def _demand(like: Tensor, **shapes: tuple[Tensor, tuple[int, ...]]) -> None:
    """Every tensor has its shape, and dtype and device of the first."""
    if like.dtype not in (torch.float32, torch.float64) or like.device.type != "cpu":
        raise TypeError(f"the compiled kernels take float32 or float64 on the CPU, not {like.dtype} on {like.device}")
    for name, (tensor, shape) in shapes.items():
        if tensor.shape != shape or tensor.dtype != like.dtype or tensor.device != like.device:
            raise ValueError(
                f"{name} is {tensor.dtype} {tuple(tensor.shape)} on {tensor.device}: "
                f"expected {like.dtype} {shape} on {like.device}"
            )


def _signal_shape(x: Tensor) -> tuple[int, int, int]:
    """B, N, D of a planar signal."""
    if x.ndim != 4 or x.shape[2] != 2 or x.shape[1] < 1:
        raise ValueError(f"a signal has shape {tuple(x.shape)}: expected (B, N, 2, D)")
    return x.shape[0], x.shape[1], x.shape[3]


def _demand_synvolve(signal: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, **others: Tensor) -> int:
    """The shapes of synvolve's operands fit; returns the number of heads H."""
    batch, n, d = _signal_shape(signal)
    heads = phase.shape[1] if phase.ndim == 3 else 0
    if heads < 1 or d % heads:
        raise ValueError(f"phase has shape {tuple(phase.shape)}: expected (B, H, N) with H a divisor of {d} features")
    angles = (batch, heads, 1, n - 1, 3)
    same = {name: (tensor, tuple(signal.shape)) for name, tensor in others.items()}
    _demand(signal, lower=(lower, angles), upper=(upper, angles), phase=(phase, (batch, heads, n)), **same)
    return heads


def chain(x: Tensor, angles: Tensor, upper: bool) -> Tensor:
    """x (B, N, 2, D), angles (B, N−1, 3) → (B, N, 2, D)."""
    batch, n, d = _signal_shape(x)
    _demand(x, angles=(angles, (batch, n - 1, 3)))
    x, angles = x.contiguous(), angles.contiguous()
    y = empty(x.shape, x.dtype)
    run = kernel("chain_forward", x.dtype)
    run(batch, n, d, torch.get_num_threads(), upper, x.data_ptr(), angles.data_ptr(), y.data_ptr())
    return y


def _chain_backward(
    y: Tensor, grad: Tensor, angles: Tensor, upper: bool, with_input: bool
) -> tuple[Tensor | None, Tensor, Tensor]:
    batch, n, d = _signal_shape(y)
    _demand(y, grad=(grad, tuple(y.shape)), angles=(angles, (batch, n - 1, 3)))
    y, grad, angles = y.contiguous(), grad.contiguous(), angles.contiguous()
    x = empty(y.shape, y.dtype) if with_input else None
    g_x, g_angles = empty(y.shape, y.dtype), torch.zeros_like(angles)
    run = kernel("chain_backward", y.dtype)
    run(
        *(batch, n, d, torch.get_num_threads(), upper),
        *(t.data_ptr() for t in (y, grad, angles)),
        x.data_ptr() if x is not None else 0,
        *(g_x.data_ptr(), g_angles.data_ptr()),
    )
    return x, g_x, g_angles


def unrotate(y: Tensor, grad: Tensor, angles: Tensor, upper: bool) -> tuple[Tensor, Tensor, Tensor]:
    """A chain's input, its gradient and the angles' gradient, from output and gradient."""
    x, g_x, g_angles = _chain_backward(y, grad, angles, upper, with_input=True)
    assert x is not None
    return x, g_x, g_angles


def chain_backward(grad: Tensor, y: Tensor, angles: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    """Gradients of a chain's input and angles from its output."""
    return _chain_backward(y, grad, angles, upper, with_input=False)[1:]


def synvolve(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor) -> Tensor:
    """v (B, N, 2, D), lower and upper (B, H, 1, N−1, 3), phase (B, H, N) → (B, N, 2, D)."""
    heads = _demand_synvolve(v, lower, upper, phase)
    inputs = [t.contiguous() for t in (v, lower, upper, phase)]
    batch, n, _, d = v.shape
    out = empty(v.shape, v.dtype)
    run = kernel("synvolve_forward", v.dtype)
    run(
        *(batch, heads, n, d, torch.get_num_threads()),
        *(t.data_ptr() for t in (*inputs, out)),
    )
    return out


def synvolve_backward(
    grad: Tensor, out: Tensor, lower: Tensor, upper: Tensor, phase: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of v, lower, upper, phase from the output."""
    heads = _demand_synvolve(out, lower, upper, phase, grad=grad)
    inputs = [t.contiguous() for t in (grad, out, lower, upper, phase)]
    batch, n, _, d = out.shape
    g_v = empty(out.shape, out.dtype)
    others = [torch.zeros(t.shape, dtype=t.dtype) for t in (lower, upper, phase)]
    run = kernel("synvolve_backward", out.dtype)
    run(
        *(batch, heads, n, d, torch.get_num_threads()),
        *(t.data_ptr() for t in (*inputs, g_v, *others)),
    )
    return g_v, others[0], others[1], others[2]
