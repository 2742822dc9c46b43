"""Our operators and what torch's exporter lacks, in ONNX: standard operators on real tensors, for any batch and length.

Complex signals travel as pairs of real tensors, (real, imaginary), each (B, H, N, D/H).
"""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import FLOAT, script
from onnxscript import opset18 as op

OPSET = 18
Pair = tuple[Any, Any]

#: Positions are counted along this axis of (B, H, N, D/H).
ROWS = 2


@script(default_opset=op)
def doubled(state: FLOAT[...]) -> FLOAT[...]:
    """h_t = c_t h_{t−1} + u_t, h_0 = u_0 (c_0 = 0), in ⌈log₂ N⌉ rounds (Hillis and Steele, 1986).

    After a round with step s, (c_t, u_t) sum up 2s positions. One tensor goes from round to round, which holds the
    features (c_re, c_im, u_re, u_im): (B, H, N, 2 + 2D/H). A round too many changes nothing.
    """
    rows = op.Constant(value_ints=[2])
    features = op.Constant(value_ints=[3])
    zero = op.Constant(value_ints=[0])
    two = op.Constant(value_ints=[2])
    end = op.Constant(value_ints=[9223372036854775807])
    length = op.Shape(state, start=2, end=3)
    exact = op.Log(op.Cast(op.Squeeze(length), to=1)) / 0.6931472
    rounds = op.Cast(op.Ceil(exact + 0.01), to=7)
    for turn in range(rounds):
        step = op.Min(op.Pow(two, turn), length)
        later = op.Slice(state, step, length, rows)
        earlier = op.Slice(state, zero, length - step, rows)
        c_re, c_im = op.Split(op.Slice(later, zero, two, features), num_outputs=2, axis=3)
        e_re, e_im = op.Split(op.Slice(earlier, zero, two, features), num_outputs=2, axis=3)
        u_re, u_im = op.Split(op.Slice(later, two, end, features), num_outputs=2, axis=3)
        v_re, v_im = op.Split(op.Slice(earlier, two, end, features), num_outputs=2, axis=3)
        new = op.Concat(
            c_re * e_re - c_im * e_im,
            c_re * e_im + c_im * e_re,
            u_re + c_re * v_re - c_im * v_im,
            u_im + c_re * v_im + c_im * v_re,
            axis=3,
        )
        state = op.Concat(op.Slice(state, zero, step, rows), new, axis=2)
    return state


def recurrence(c: Pair, u: Pair) -> Pair:
    """h_t = c_t h_{t−1} + u_t with h_0 = u_0; c (B, H, N, 1) with c_0 = 0, u (B, H, N, D/H)."""
    state = doubled(op.Concat(*c, *u, axis=3))
    h_re, h_im = op.Split(op.Slice(state, [2], [torch.iinfo(torch.int64).max], [3]), num_outputs=2, axis=3)
    return h_re, h_im


def _times(x: Pair, y: Pair) -> Pair:
    return op.Sub(op.Mul(x[0], y[0]), op.Mul(x[1], y[1])), op.Add(op.Mul(x[0], y[1]), op.Mul(x[1], y[0]))


def _plus(x: Pair, y: Pair) -> Pair:
    return op.Add(x[0], y[0]), op.Add(x[1], y[1])


def _minus(x: Pair) -> Pair:
    return op.Neg(x[0]), op.Neg(x[1])


def _conjugate(x: Pair) -> Pair:
    return x[0], op.Neg(x[1])


def _from(x: Pair, start: int, end: int) -> Pair:
    """Rows start … end−1."""
    return op.Slice(x[0], [start], [end], [ROWS]), op.Slice(x[1], [start], [end], [ROWS])


def _reversed(x: Pair) -> Pair:
    last = torch.iinfo(torch.int64).min + 1
    return op.Slice(x[0], [-1], [last], [ROWS], [-1]), op.Slice(x[1], [-1], [last], [ROWS], [-1])


def _joined(x: Pair, y: Pair) -> Pair:
    return op.Concat(x[0], y[0], axis=ROWS), op.Concat(x[1], y[1], axis=ROWS)


def coefficients(angles: Any, order: int) -> tuple[Pair, Pair]:
    """a, b of the rotations of one order; angles (B, H, L, N−1, 3) → pairs of (B, H, N−1, 1).

    As :func:`synvolution.ops._reference.rotation_coefficients`.
    """
    half = op.Mul(op.Gather(angles, op.Constant(value_int=order), axis=2), op.Constant(value_float=0.5))
    alpha, beta, gamma = op.Split(half, num_outputs=3, axis=-1)
    cos, sin = op.Cos(gamma), op.Neg(op.Sin(gamma))
    total, difference = op.Add(alpha, beta), op.Sub(alpha, beta)
    a = op.Mul(cos, op.Cos(total)), op.Neg(op.Mul(cos, op.Sin(total)))
    return a, (op.Mul(sin, op.Cos(difference)), op.Mul(sin, op.Sin(difference)))


def chain(x: Pair, a: Pair, b: Pair, upper: bool) -> Pair:
    """One chain of rotations, as :func:`synvolution.ops._reference.scan`; a, b (B, H, N−1, 1)."""
    if upper:  # a lower chain in a mirror: rows in reverse order, angles negated
        mirrored = _reversed(_conjugate(a)), _reversed(_minus(_conjugate(b)))
        return _reversed(chain(_reversed(x), *mirrored, upper=False))
    end = torch.iinfo(torch.int64).max
    first, later = _from(x, 0, 1), _from(x, 1, end)
    zero = op.Mul(op.ReduceSum(first[0], [-1]), op.Constant(value_float=0.0))  # (B, H, 1, 1)
    c = _joined((zero, zero), _minus(_conjugate(b)))
    h = recurrence(c, _joined(first, _times(_conjugate(a), later)))
    rotated = _plus(_times(a, _from(h, 0, -1)), _times(b, later))
    return _joined(rotated, _from(h, -1, end))


def _permuted(x: Pair, index: Any) -> Pair:
    """(P x)_i = x_{index[i]}; index (B or 1, N)."""
    where = op.Expand(op.Unsqueeze(index, [1, 3]), op.Shape(x[0]))
    return op.GatherElements(x[0], where, axis=ROWS), op.GatherElements(x[1], where, axis=ROWS)


def _inverse(index: Any) -> Any:
    """Row numbers of the inverse permutation, (B or 1, N)."""
    rows = op.Expand(op.Range(0, op.Squeeze(op.Shape(index, start=1, end=2)), 1), op.Shape(index))
    return op.ScatterElements(index, index, rows, axis=1)


def synvolve(v: Any, lower: Any, upper: Any, phase: Any, index: Any, backend: str) -> Any:
    """``synvolution::synvolve``: v (B, N, 2, D), lower and upper (B, H, L, N−1, 3), phase (B, H, N) → (B, N, 2, D)."""
    heads, orders, width = int(lower.shape[1]), int(lower.shape[2]), int(v.shape[3])
    parts = op.Transpose(op.Reshape(v, [0, 0, 2, heads, width // heads]), perm=[2, 0, 3, 1, 4])  # (2, B, H, N, D/H)
    s: Pair = op.Gather(parts, op.Constant(value_int=0), axis=0), op.Gather(parts, op.Constant(value_int=1), axis=0)
    down = [coefficients(lower, order) for order in range(orders)]
    up = [coefficients(upper, order) for order in range(orders)]
    rows = [None if index is None else op.Gather(index, op.Constant(value_int=k), axis=1) for k in range(orders)]
    for order in reversed(range(orders)):
        s = s if index is None else _permuted(s, rows[order])
        s = chain(chain(s, *up[order], upper=True), *down[order], upper=False)
    turn = op.Unsqueeze(phase, [-1])
    s = _times((op.Cos(turn), op.Sin(turn)), s)
    for order in range(orders):
        s = chain(s, *_adjoint(*down[order]), upper=True)
        s = chain(s, *_adjoint(*up[order]), upper=False)
        s = s if index is None else _permuted(s, _inverse(rows[order]))
    stacked = op.Concat(op.Unsqueeze(s[0], [2]), op.Unsqueeze(s[1], [2]), axis=2)  # (B, H, 2, N, D/H)
    return op.Reshape(op.Transpose(stacked, perm=[0, 3, 2, 1, 4]), [0, 0, 2, width])


def _adjoint(a: Pair, b: Pair) -> tuple[Pair, Pair]:
    """Coefficients of the adjoint rotations."""
    return _conjugate(a), _minus(b)


def gru(x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, mask: Any, batch_first: bool, save: bool) -> Any:
    """``synvolution::gru`` as the operator GRU: x (B, N, D), mask (B, N) → output (B, N, H), state, nothing.

    The state passes a padded step unchanged: real steps are moved to the front, where no mask is needed.
    """
    if not batch_first or save:
        raise ValueError("the GRU of a model in evaluation mode, batch first, is what can be exported")
    hidden = int(h0.shape[1])
    slot = None if mask is None else op.Unsqueeze(_slots(mask), [2])
    if slot is not None:
        kept = op.Where(op.Unsqueeze(mask, [2]), x, op.Constant(value_float=0.0))
        x = op.ScatterElements(kept, op.Expand(slot, op.Shape(kept)), kept, axis=1)
    weights = [op.Unsqueeze(_reordered(w, hidden), [0]) for w in (w_ih, w_hh)]
    bias = None
    if b_ih is not None:
        bias = op.Unsqueeze(op.Concat(_reordered(b_ih, hidden), _reordered(b_hh, hidden), axis=0), [0])
    steps, last = op.GRU(
        op.Transpose(x, perm=[1, 0, 2]),
        *weights,
        bias,
        None if mask is None else op.Cast(op.ReduceSum(op.Cast(mask, to=7), [1], keepdims=0), to=6),
        op.Unsqueeze(h0, [0]),
        hidden_size=hidden,
        linear_before_reset=1,  # as torch has it: n = tanh(W x + r (U h + b))
    )
    output = op.Transpose(op.Squeeze(steps, [1]), perm=[1, 0, 2])
    if slot is not None:
        found = op.GatherElements(output, op.Expand(slot, op.Shape(output)), axis=1)
        output = op.Where(op.Unsqueeze(mask, [2]), found, op.Constant(value_float=0.0))
    return output, op.Squeeze(last, [0]), op.Slice(output, [0], [0], [0])


def _slots(mask: Any) -> Any:
    """Where each step goes, real ones first: (B, N) int64."""
    real = op.Cast(mask, to=7)
    padded = op.Sub(op.Constant(value_int=1), real)
    behind = op.Add(op.ReduceSum(real, [1]), op.CumSum(padded, op.Constant(value_int=1)))
    one = op.Constant(value_int=1)
    return op.Sub(op.Where(mask, op.CumSum(real, op.Constant(value_int=1)), behind), one)


def _reordered(weight: Any, hidden: int) -> Any:
    """Gates r, z, n of torch in ONNX's order z, r, n; (3H, …)."""
    order = [*range(hidden, 2 * hidden), *range(hidden), *range(2 * hidden, 3 * hidden)]
    return op.Gather(weight, op.Constant(value_ints=order), axis=0)


def stable_sort(x: Any, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """``aten::sort.stable``: among equal values TopK takes the lower index first, as the standard demands."""
    size = op.Gather(op.Shape(x), op.Constant(value_ints=[dim]))
    return op.TopK(op.Cast(x, to=7), size, axis=dim, largest=int(descending), sorted=1)


#: Translations by torch's operator.
TRANSLATIONS: dict[Any, Any] = {
    torch.ops.synvolution.synvolve.default: synvolve,
    torch.ops.synvolution.gru.default: gru,
    torch.ops.aten.sort.stable: stable_sort,
}
