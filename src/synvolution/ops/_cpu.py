"""The compiled kernels, called with addresses. Shapes are checked before anything gets here.

Everything is dense, float32 or float64, on the CPU; the number of threads is torch's.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
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


def usable(*tensors: Tensor | None) -> bool:
    """Whether the kernels are built and can work on these tensors."""
    return kernels is not None and all(t is None or t.device.type == "cpu" for t in tensors)


def kernel(name: str, dtype: torch.dtype) -> Any:
    """The compiled function of that name for float32 or float64."""
    return getattr(kernels, f"{name}_{str(dtype).removeprefix('torch.')}")


def empty(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Uninitialised memory for a result, in large pages if it is big."""
    fresh = torch.empty(shape, dtype=dtype)
    if fresh.nbytes >= LARGE_BYTES:
        kernels.advise_large_pages(fresh.data_ptr(), fresh.nbytes)
    return fresh


def chain(x: Tensor, angles: Tensor, upper: bool) -> Tensor:
    """x (B, N, 2, D), angles (B, N−1, 3) → (B, N, 2, D)."""
    x, angles = x.contiguous(), angles.contiguous()
    batch, n, _, d = x.shape
    y = empty(x.shape, x.dtype)
    run = kernel("chain_forward", x.dtype)
    run(batch, n, d, torch.get_num_threads(), upper, x.data_ptr(), angles.data_ptr(), y.data_ptr())
    return y


def _chain_backward(
    y: Tensor, grad: Tensor, angles: Tensor, upper: bool, with_input: bool
) -> tuple[Tensor | None, Tensor, Tensor]:
    y, grad, angles = y.contiguous(), grad.contiguous(), angles.contiguous()
    batch, n, _, d = y.shape
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
    inputs = [t.contiguous() for t in (v, lower, upper, phase)]
    batch, n, _, d = v.shape
    out = empty(v.shape, v.dtype)
    run = kernel("synvolve_forward", v.dtype)
    run(
        *(batch, phase.shape[1], n, d, torch.get_num_threads()),
        *(t.data_ptr() for t in (*inputs, out)),
    )
    return out


def synvolve_backward(
    grad: Tensor, out: Tensor, lower: Tensor, upper: Tensor, phase: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of v, lower, upper, phase from the output."""
    inputs = [t.contiguous() for t in (grad, out, lower, upper, phase)]
    batch, n, _, d = out.shape
    g_v = empty(out.shape, out.dtype)
    others = [torch.zeros(t.shape, dtype=t.dtype) for t in (lower, upper, phase)]
    run = kernel("synvolve_backward", out.dtype)
    run(
        *(batch, phase.shape[1], n, d, torch.get_num_threads()),
        *(t.data_ptr() for t in (*inputs, g_v, *others)),
    )
    return g_v, others[0], others[1], others[2]
