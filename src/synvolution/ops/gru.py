"""One layer of a gated recurrent unit (GRU), with a mask for padding.

    r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)      z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
    n = tanh(W_in x + b_in + r (W_hn h + b_hn))     h' = (1 - z) n + z h

On the CPU the layer is one operator, `synvolution::gru`, in C++: a fixed number of steps at a time is projected and
then stepped through while it is in cache; the backward, `synvolution::gru_backward`, does the same from the end and
forms all gradients on the way. Letters: B batch, N steps, D inputs, H hidden.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from synvolution.ops import _cpu
from synvolution.ops._gru_reference import gru_reference


def gru(
    x: Tensor,
    h0: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    batch_first: bool = True,
) -> tuple[Tensor, Tensor]:
    """Run one GRU layer over a batch of sequences.

    A padded step costs nothing: the state passes it unchanged and its output is zero.

    Args:
        x: input (B, N, D), or (N, B, D) if not `batch_first`.
        h0: initial state (B, H).
        w_ih, w_hh: weights (3H, D) and (3H, H), gates in the order r, z, n as in `torch.nn.GRU`.
        b_ih, b_hh: biases (3H) or None.
        mask: (B, N) bool, True at real steps; None: all are.

    Returns:
        output (B, N, H) (or (N, B, H)) and the state after each row's last real step (B, H).

    Example:
        >>> x, h0 = torch.randn(2, 7, 3), torch.zeros(2, 4)
        >>> output, h_n = gru(x, h0, torch.randn(12, 3), torch.randn(12, 4))
        >>> torch.equal(output[:, -1], h_n)
        True
    """
    _check(x, h0, w_ih, w_hh, b_ih, b_hh, mask, batch_first)
    if not _cpu.usable(x) and not (torch.compiler.is_exporting() and x.device.type == "cpu"):
        return _in_full_precision(x, h0, w_ih, w_hh, b_ih, b_hh, mask, batch_first)
    tensors = (x, h0, w_ih, w_hh, b_ih, b_hh)
    save = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
    output, h_n, _ = torch.ops.synvolution.gru(*tensors, mask, batch_first, save)
    return output, h_n


def _in_full_precision(x: Tensor, *args: Any) -> tuple[Tensor, Tensor]:
    """The reference, out of reach of autocast: errors of a recurrence add up."""
    *rest, batch_first = args
    if not torch.amp.is_autocast_available(x.device.type):
        return gru_reference(x, *rest, batch_first=batch_first)
    with torch.autocast(x.device.type, enabled=False):
        return gru_reference(x, *rest, batch_first=batch_first)


def _check(
    x: Tensor,
    h0: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    mask: Tensor | None,
    batch_first: bool,
) -> None:
    """Refuse what the kernels cannot take, before an address is handed over."""
    layout = "(B, N, D)" if batch_first else "(N, B, D)"
    if x.dim() != 3:
        raise ValueError(f"input of shape {tuple(x.shape)}: expected three axes, {layout}")
    batch, steps = (x.shape[0], x.shape[1]) if batch_first else (x.shape[1], x.shape[0])
    inputs, hidden = x.shape[2], h0.shape[-1]
    if steps < 1 or inputs < 1 or hidden < 1:
        raise ValueError(f"input {tuple(x.shape)}, state {tuple(h0.shape)}: expected at least one step, input and unit")
    expected: dict[str, tuple[Tensor | None, tuple[int, ...]]] = {
        "h0": (h0, (batch, hidden)),
        "w_ih": (w_ih, (3 * hidden, inputs)),
        "w_hh": (w_hh, (3 * hidden, hidden)),
        "b_ih": (b_ih, (3 * hidden,)),
        "b_hh": (b_hh, (3 * hidden,)),
        "mask": (mask, (batch, steps)),
    }
    if x.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"input of type {x.dtype}: expected torch.float32 or torch.float64")
    for name, (tensor, shape) in expected.items():
        if tensor is None:
            continue
        if tensor.shape != shape:
            raise ValueError(
                f"{name} of shape {tuple(tensor.shape)}: expected {shape} for input {layout} = {tuple(x.shape)} "
                f"and {hidden} hidden units"
            )
        dtype = torch.bool if name == "mask" else x.dtype
        if tensor.dtype != dtype:
            raise TypeError(f"{name} of type {tensor.dtype}: expected {dtype}, as the input is {x.dtype}")
        if tensor.device != x.device:
            raise ValueError(f"{name} on {tensor.device}: expected {x.device}, where the input is")


def _sizes(x: Tensor, h0: Tensor, batch_first: bool) -> tuple[int, int, int, int]:
    """B, N, D, H"""
    batch, steps = (x.shape[0], x.shape[1]) if batch_first else (x.shape[1], x.shape[0])
    return batch, steps, x.shape[2], h0.shape[1]


def _sequence_shape(batch: int, steps: int, width: int, batch_first: bool) -> tuple[int, int, int]:
    return (batch, steps, width) if batch_first else (steps, batch, width)


def _dense(x: Tensor) -> Tensor:
    """`x` with its last axis dense, copied only if it is not."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _sequence(x: Tensor | None, batch_first: bool) -> tuple[int, int, int]:
    """Address and strides of batch and step axis, as the kernels want them; zeros for an absent tensor."""
    if x is None:
        return 0, 0, 0
    return (x.data_ptr(), x.stride(0), x.stride(1)) if batch_first else (x.data_ptr(), x.stride(1), x.stride(0))


def _contiguous(**tensors: Tensor | None) -> dict[str, Tensor | None]:
    return {name: None if t is None else t.contiguous() for name, t in tensors.items()}


def _addresses(tensors: dict[str, Tensor | None]) -> dict[str, int]:
    return {name: 0 if tensor is None else tensor.data_ptr() for name, tensor in tensors.items()}


@torch.library.custom_op("synvolution::gru", mutates_args=(), device_types="cpu")
def _gru(
    x: Tensor,
    h0: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    mask: Tensor | None,
    batch_first: bool,
    save: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Output, final state and, if `save`, what the backward needs: r, z, n and W_hn h + b_hn, (B, N, 4H)."""
    if _cpu.kernels is None and not save:  # in an exported program, for any length
        return *gru_reference(x, h0, w_ih, w_hh, b_ih, b_hh, mask, batch_first=batch_first), x.new_empty(0)
    batch, steps, inputs, hidden = _sizes(x, h0, batch_first)
    x = _dense(x)
    output = _cpu.empty(_sequence_shape(batch, steps, hidden, batch_first), x.dtype)
    h_n = torch.empty_like(h0, memory_format=torch.contiguous_format)
    gates = _cpu.empty(_sequence_shape(batch, steps, 4 * hidden, batch_first), x.dtype) if save else x.new_empty(0)
    flat = _contiguous(h0=h0, w_ih=w_ih, w_hh=w_hh, b_ih=b_ih, b_hh=b_hh, mask=mask)
    arrays = _addresses({**flat, "h_n": h_n}) | {
        "x": _sequence(x, batch_first),
        "out": _sequence(output, batch_first),
        "gates": _sequence(gates if save else None, batch_first),
    }
    sizes = (batch, steps, inputs, hidden, torch.get_num_threads())
    _cpu.kernel("gru_forward", x.dtype)(sizes, arrays)
    return output, h_n, gates


@_gru.register_fake
def _(
    x: Tensor,
    h0: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
    mask: Tensor | None,
    batch_first: bool,
    save: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    batch, steps, _, hidden = _sizes(x, h0, batch_first)
    output = x.new_empty(_sequence_shape(batch, steps, hidden, batch_first))
    gates = x.new_empty(_sequence_shape(batch, steps, 4 * hidden, batch_first)) if save else x.new_empty(0)
    return output, torch.empty_like(h0, memory_format=torch.contiguous_format), gates


@torch.library.custom_op("synvolution::gru_backward", mutates_args=(), device_types="cpu")
def _gru_backward(
    grad_output: Tensor,
    grad_h_n: Tensor,
    x: Tensor,
    h0: Tensor,
    output: Tensor,
    gates: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    mask: Tensor | None,
    batch_first: bool,
    want_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x (empty unless `want_x`), h0, w_ih, w_hh, b_ih and b_hh."""
    batch, steps, inputs, hidden = _sizes(x, h0, batch_first)
    grad_output, x = _dense(grad_output), _dense(x)
    a, b, c, d, e, f = (_cpu.empty(shape, x.dtype) for shape in _gradient_shapes(x, h0, want_x, batch_first))
    grads = (a, b, c, d, e, f)
    flat = _contiguous(grad_h_n=grad_h_n, h0=h0, w_ih=w_ih, w_hh=w_hh, mask=mask)
    names = ("grad_h0", "grad_w_ih", "grad_w_hh", "grad_b_ih", "grad_b_hh")
    arrays = _addresses({**flat, **dict(zip(names, grads[1:], strict=True))}) | {
        "grad_out": _sequence(grad_output, batch_first),
        "x": _sequence(x, batch_first),
        "out": _sequence(output, batch_first),
        "gates": _sequence(gates, batch_first),
        "grad_x": _sequence(grads[0] if want_x else None, batch_first),
    }
    sizes = (batch, steps, inputs, hidden, torch.get_num_threads())
    _cpu.kernel("gru_backward", x.dtype)(sizes, arrays)
    return grads


def _gradient_shapes(x: Tensor, h0: Tensor, want_x: bool, batch_first: bool) -> list[tuple[int, ...]]:
    """Shapes of what `gru_backward` returns"""
    batch, steps, inputs, hidden = _sizes(x, h0, batch_first)
    grad_x: tuple[int, ...] = _sequence_shape(batch, steps, inputs, batch_first) if want_x else (0,)
    return [grad_x, (batch, hidden), (3 * hidden, inputs), (3 * hidden, hidden), (3 * hidden,), (3 * hidden,)]


@_gru_backward.register_fake
def _(
    grad_output: Tensor,
    grad_h_n: Tensor,
    x: Tensor,
    h0: Tensor,
    output: Tensor,
    gates: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    mask: Tensor | None,
    batch_first: bool,
    want_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    a, b, c, d, e, f = (x.new_empty(shape) for shape in _gradient_shapes(x, h0, want_x, batch_first))
    return a, b, c, d, e, f


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    x, h0, w_ih, w_hh, b_ih, b_hh, mask, ctx.batch_first, ctx.saved = inputs
    result, _, gates = output
    ctx.biases = (b_ih is not None, b_hh is not None)
    ctx.mark_non_differentiable(gates)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, h0, result, gates, w_ih, w_hh, mask)


def _backward(ctx: Any, grad_output: Tensor | None, grad_h_n: Tensor | None, _: Tensor | None) -> tuple[Any, ...]:
    if not ctx.saved:
        raise RuntimeError("synvolution::gru was called with save=False, which keeps nothing for a backward pass")
    x, h0, output, gates, w_ih, w_hh, mask = ctx.saved_tensors
    if grad_output is None:
        grad_output = torch.zeros_like(output)
    if grad_h_n is None:
        grad_h_n = torch.zeros_like(h0)
    want_x = ctx.needs_input_grad[0]
    grad_x, grad_h0, grad_w_ih, grad_w_hh, grad_b_ih, grad_b_hh = torch.ops.synvolution.gru_backward(
        grad_output, grad_h_n, x, h0, output, gates, w_ih, w_hh, mask, ctx.batch_first, want_x
    )
    grad_biases = (grad_b_ih if ctx.biases[0] else None, grad_b_hh if ctx.biases[1] else None)
    return grad_x if want_x else None, grad_h0, grad_w_ih, grad_w_hh, *grad_biases, None, None, None


def _no_second_backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
    raise RuntimeError("synvolution's GRU has no second derivative: use torch.nn.GRU where one is needed")


def _no_vmap(*args: Any) -> Any:
    raise RuntimeError("synvolution's GRU does not support torch.vmap: use its batch axis, or torch.nn.GRU")


_gru.register_autograd(_backward, setup_context=_setup_context)
_gru.register_vmap(_no_vmap)
_gru_backward.register_autograd(_no_second_backward)
_gru_backward.register_vmap(_no_vmap)
