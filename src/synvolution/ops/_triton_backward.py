"""The last GPU kernel of synvolve's backward: signal and gradient through the four sweeps, with the sums of gradients."""

from __future__ import annotations

import triton
import triton.language as tl

from synvolution.ops._triton_sweeps import (
    E0,
    E1,
    PHI,
    PLANES,
    R1,
    R2,
    _load_carries,
    _load_row,
    _pair,
    _place,
    _product,
    _rotate,
    _store_row,
    tuned,
)


@triton.jit
def _imaginary(g_re, g_im, x_re, x_im):
    """Im(ḡ x)."""
    return g_re * x_im - g_im * x_re


@triton.jit
def _sum_sweep(
    x,
    g,
    to_x,
    to_g,
    h,
    coefficients,
    terms,
    phases,
    lane,
    d,
    gap,
    count,
    PHASE: tl.constexpr,
    PHASE_SIGN: tl.constexpr,
    ROTATION: tl.constexpr,
    SIGN: tl.constexpr,
    UP: tl.constexpr,
    LAST: tl.constexpr,
    C: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """One sweep of signal x and gradient g, h the four parts of their carries, and three sums for each rotation.

    terms (count, 3): Σ over features of Im(ḡx) of slot minus carry before the rotation, of carry minus slot after it,
    and of Re(ḡ_slot x_carry − ḡ_carry x_slot). In the sweep after φ also −Σ Im(ḡx) of the slots, in phases (count).
    LAST: g alone is written, times Ē0.
    """
    x_re, x_im, g_re, g_im = h
    carried = _imaginary(g_re, g_im, x_re, x_im)
    blocks = (count + UNROLL - 1) // UNROLL
    for block in range(blocks):
        first = (blocks - 1 - block if UP else block) * UNROLL
        loaded = ()
        for t in tl.static_range(UNROLL):
            j = first + (UNROLL - 1 - t if UP else t)
            wanted = lane < tl.where(j < count, d, 0)
            loaded = loaded + (_load_row(x + j * 2 * gap, gap, wanted) + _load_row(g + j * 2 * gap, gap, wanted),)
        for t in tl.static_range(UNROLL):
            j = first + (UNROLL - 1 - t if UP else t)
            wanted = lane < tl.where(j < count, d, 0)
            cos, sin = _pair(coefficients, j, PHASE, PHASE_SIGN, C)
            a, b = _product(loaded[t][0], loaded[t][1], cos, sin)
            e, f = _product(loaded[t][2], loaded[t][3], cos, sin)
            slot = _imaginary(e, f, a, b)
            tl.store(terms + j * 3, tl.sum(slot - carried, 0), j < count)
            if PHASE == PHI:
                tl.store(phases + j, -tl.sum(slot, 0), j < count)
            c, s = _pair(coefficients, j, ROTATION, SIGN, C)
            a, b, x_re, x_im = _rotate(a, b, x_re, x_im, c, s, UP)
            e, f, g_re, g_im = _rotate(e, f, g_re, g_im, c, s, UP)
            carried = _imaginary(g_re, g_im, x_re, x_im)
            tl.store(terms + j * 3 + 1, tl.sum(carried - _imaginary(e, f, a, b), 0), j < count)
            crossed = e * x_re + f * x_im - g_re * a - g_im * b
            tl.store(terms + j * 3 + 2, tl.sum(crossed, 0), j < count)
            if LAST:
                cos, sin = _pair(coefficients, j, E0, -1, C)
                e, f = _product(e, f, cos, sin)
            else:
                _store_row(to_x + j * 2 * gap, gap, a, b, wanted)
            _store_row(to_g + j * 2 * gap, gap, e, f, wanted)
    tl.debug_barrier()  # whoever reads the slots next sees them


@triton.jit
def _twisted(h, h_g, k: tl.constexpr, twist):
    """Incoming carries of signal and gradient, taken into the turning frame of a sweep that goes backwards."""
    cos, sin = tl.load(twist), -tl.load(twist + 1)
    x, xi = _product(h[2 * k], h[2 * k + 1], cos, sin)
    g, gi = _product(h_g[2 * k], h_g[2 * k + 1], cos, sin)
    return (x, xi, g, gi)


@tuned(2, 4)  # 4 numbers per row and feature, and the sums: about 160 registers at 4
@triton.jit
def apply_backward(
    x,
    g,
    slots_x,
    slots_g,
    grad_v,
    terms,
    phases,
    coefficients,
    twists,
    carries_x,
    carries_g,
    n,
    d,
    heads,
    chunks,
    sequences,
    C: tl.constexpr,
    BLOCK: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """Un-rotate the output x and rotate its gradient g, with φ negated, and sum over the features of this program.

    Grid (S·K, T), T = ⌈D / BLOCK⌉. terms (T, 4, S, N−1, 3), see :func:`_sum_sweep`, of the four sweeps; phases (T, S, N)
    without the last row; slots: float32 of the shape of x, left with nothing of meaning (slots_g may be grad_v).
    """
    program, offset, count, lane = _place(chunks, heads, n, d, C, BLOCK)
    tile, sequence, first = tl.program_id(1).to(tl.int64), program // chunks, (program % chunks) * C
    coefficients += program * PLANES * C
    twists += program * 4
    phases += (tile * sequences + sequence) * n + first
    terms += ((tile * 4 * sequences + sequence) * (n - 1) + first) * 3
    step = sequences.to(tl.int64) * (n - 1) * 3
    h = _load_carries(carries_x, program, d, lane)
    h_g = _load_carries(carries_g, program, d, lane)
    to = (slots_x + offset, slots_g + offset)
    place = (lane, d, heads * d, count)
    incoming = (h[0], h[1], h_g[0], h_g[1])
    _sum_sweep(
        x + offset, g + offset, *to, incoming, coefficients, terms, phases, *place, E0, 1, R1, 1, True, False, C, UNROLL
    )
    terms += step
    incoming = (h[2], h[3], h_g[2], h_g[3])
    _sum_sweep(*to, *to, incoming, coefficients, terms, phases, *place, E1, 1, R2, 1, False, False, C, UNROLL)
    terms += step
    incoming = _twisted(h, h_g, 2, twists + 2)
    _sum_sweep(*to, *to, incoming, coefficients, terms, phases, *place, PHI, 1, R2, -1, True, False, C, UNROLL)
    terms += step
    incoming = _twisted(h, h_g, 3, twists)
    last = (slots_x + offset, grad_v + offset)
    _sum_sweep(*to, *last, incoming, coefficients, terms, phases, *place, E1, -1, R1, -1, False, True, C, UNROLL)
