"""GPU kernels of synvolve in Triton: the forward, and what the backward shares with it. ``_triton.py`` calls them.

Letters, layouts and the sweeps themselves are in ``_triton_sweeps.py``.
"""

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
    _place,
    _product,
    _store_row,
    _sweeps,
    tuned,
)


@triton.jit
def _angles(pointer, sequence, rotation, rotations, real):
    at = pointer + (sequence * rotations + rotation) * 3
    return tl.load(at, real, 0.0), tl.load(at + 1, real, 0.0), tl.load(at + 2, real, 0.0)


@triton.jit
def _store_phase(pointer, angle, C: tl.constexpr):
    tl.store(pointer, tl.cos(angle))
    tl.store(pointer + C, tl.sin(angle))


@triton.jit
def prepare(lower, upper, phase, coefficients, twists, n, chunks, SIGN: tl.constexpr, C: tl.constexpr):
    """Angles → coefficients and twists of one chunk. Grid (S·K). SIGN: of the phase φ.

    The frame of a carry turns with the phases it meets (csrc/phases.hpp), from 0 at the chunk's first rotation; the
    twist is where it ends. Slots after the last rotation hand the carry on: a quarter turn.
    """
    program = tl.program_id(0).to(tl.int64)
    sequence, slot = program // chunks, tl.arange(0, C)
    rotation = (program % chunks) * C + slot
    real = rotation < n - 1
    to = coefficients + program * PLANES * C + slot
    alpha_u, beta_u, gamma_u = _angles(upper, sequence, rotation, n - 1, real)
    alpha_l, beta_l, gamma_l = _angles(lower, sequence, rotation, n - 1, real)
    half_u, half_l = 0.5 * (alpha_u - beta_u), 0.5 * (alpha_l - beta_l)
    psi_u = tl.cumsum(half_u, 0, reverse=True) - half_u
    psi_l = half_l - tl.cumsum(half_l, 0)
    _store_phase(to + E0 * C, -(alpha_u + psi_u), C)
    _store_phase(to + E1 * C, psi_u + 0.5 * (alpha_u + beta_u) + alpha_l - psi_l, C)
    _store_phase(to + PHI * C, SIGN * tl.load(phase + sequence * n + rotation, real, 0.0), C)
    tl.store(to + R1 * C, tl.where(real, tl.cos(0.5 * gamma_u), 0.0))
    tl.store(to + R1 * C + C, tl.where(real, tl.sin(0.5 * gamma_u), -1.0))
    tl.store(to + R2 * C, tl.where(real, tl.cos(0.5 * gamma_l), 0.0))
    tl.store(to + R2 * C + C, tl.where(real, tl.sin(0.5 * gamma_l), 1.0))
    end_u, end_l = tl.sum(half_u, 0), -tl.sum(half_l, 0)
    tl.store(twists + program * 4, tl.cos(end_u))
    tl.store(twists + program * 4 + 1, tl.sin(end_u))
    tl.store(twists + program * 4 + 2, tl.cos(end_l))
    tl.store(twists + program * 4 + 3, tl.sin(end_l))


@triton.jit
def respond(
    coefficients, twists, replies, slot_replies, total, C: tl.constexpr, LANES: tl.constexpr, UNROLL: tl.constexpr
):
    """What outgoing carries and slots get from each incoming carry. Grid (⌈4·S·K / LANES⌉), a lane for each of them."""
    lane = (tl.program_id(0) * LANES + tl.arange(0, LANES)).to(tl.int64)
    chunk, which = lane // 4, lane % 4
    limit = tl.where(chunk < total, 4, 0)  # lanes beyond the last chunk compute it once more and store nothing
    chunk = tl.minimum(chunk, total - 1)
    zero = tl.zeros([LANES], tl.float32)
    h = ()
    for k in tl.static_range(4):
        h = h + (tl.where(which == k, 1.0, 0.0), zero)
    slots = slot_replies + chunk * C * 8 + which
    h = _sweeps(
        slots,
        slots,
        h,
        coefficients + chunk * PLANES * C,
        twists + chunk * 4,
        which,
        limit,
        4,
        C,
        True,
        True,
        C,
        UNROLL,
    )
    for k in tl.static_range(4):
        to = replies + ((chunk * 4 + k) * 4 + which) * 2
        tl.store(to, h[2 * k], which < limit)
        tl.store(to + 1, h[2 * k + 1], which < limit)


@tuned(4, 8)  # 2 numbers per row and feature: 64 registers at 4
@triton.jit
def local(
    x,
    slots,
    coefficients,
    twists,
    carries,
    n,
    d,
    heads,
    chunks,
    WRITE: tl.constexpr,
    C: tl.constexpr,
    BLOCK: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """Carries that leave each chunk, and its slots, if no carries come in. Grid (S·K, ⌈D / BLOCK⌉).

    slots: float32 of the shape of x; without WRITE what is left there means nothing.
    """
    program, offset, count, lane = _place(chunks, heads, n, d, C, BLOCK)
    h = ()
    for _ in tl.static_range(8):
        h = h + (tl.zeros([BLOCK], tl.float32),)
    tables = (coefficients + program * PLANES * C, twists + program * 4)
    h = _sweeps(x + offset, slots + offset, h, *tables, lane, d, heads * d, count, False, WRITE, C, UNROLL)
    for k in tl.static_range(8):
        tl.store(carries + (program * 8 + k) * d + lane, h[k], lane < d)


@triton.jit
def _end_row(signal, sequence, n, d, heads, lane):
    """Where the last row of a sequence and head lies."""
    return signal + ((sequence // heads) * n + n - 1) * 2 * heads * d + (sequence % heads) * d + lane


@triton.jit
def _known(carries, replies, chunk, real, lane, d, WHICH: tl.constexpr):
    """Of a chunk: its local carry plus what earlier sweeps' carries add to it, and its reply to its own."""
    at = carries + chunk * 8 * d + lane
    wanted = lane < tl.where(real, d, 0)
    re, im = _load_row(at + 2 * WHICH * d, d, wanted)
    reply = replies + (chunk * 4 + WHICH) * 8
    for m in tl.static_range(WHICH):
        other_re, other_im = _load_row(at + 2 * m * d, d, wanted)
        cos, sin = tl.load(reply + 2 * m, real, 0.0), tl.load(reply + 2 * m + 1, real, 0.0)
        add_re, add_im = _product(other_re, other_im, cos, sin)
        re += add_re
        im += add_im
    return re, im, tl.load(reply + 2 * WHICH, real, 1.0), tl.load(reply + 2 * WHICH + 1, real, 0.0)


@triton.jit
def carry(
    x,
    out,
    phase,
    replies,
    carries,
    ends,
    n,
    d,
    heads,
    chunks,
    WHICH: tl.constexpr,
    SIGN: tl.constexpr,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One sweep from chunk to chunk: outgoing local carries become incoming true ones, in place. Grid (S, ⌈D / BLOCK⌉).

    STEPS chunks are loaded at once, so that the latency of memory is paid once for all of them. The first sweep starts
    with the last row of x, the last one ends with the last row of out.
    """
    sequence = tl.program_id(0).to(tl.int64)
    lane = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    end = ends + sequence * 8 * d + lane
    if WHICH == 0:
        h_re, h_im = _load_row(_end_row(x, sequence, n, d, heads, lane), heads * d, lane < d)
    else:
        h_re, h_im = _load_row(end + (2 * WHICH - 2) * d, d, lane < d)
    if WHICH == 2:
        angle = SIGN * tl.load(phase + sequence * n + n - 1)
        h_re, h_im = _product(h_re, h_im, tl.cos(angle), tl.sin(angle))
    for begin in range(0, chunks, STEPS):
        known = ()
        for t in tl.static_range(STEPS):
            index = begin + t if WHICH % 2 == 1 else chunks - 1 - begin - t
            real = (index >= 0) & (index < chunks)
            known = known + (_known(carries, replies, sequence * chunks + index, real, lane, d, WHICH),)
        for t in tl.static_range(STEPS):
            index = begin + t if WHICH % 2 == 1 else chunks - 1 - begin - t
            real = (index >= 0) & (index < chunks)
            to = carries + ((sequence * chunks + index) * 8 + 2 * WHICH) * d + lane
            _store_row(to, d, h_re, h_im, lane < tl.where(real, d, 0))
            a, b = _product(h_re, h_im, known[t][2], known[t][3])
            h_re = a + known[t][0]
            h_im = b + known[t][1]
    _store_row(end + 2 * WHICH * d, d, h_re, h_im, lane < d)
    if WHICH == 3:
        _store_row(_end_row(out, sequence, n, d, heads, lane), heads * d, h_re, h_im, lane < d)


@triton.jit
def fix_up(
    slots,
    out,
    slot_replies,
    carries,
    n,
    d,
    heads,
    chunks,
    C: tl.constexpr,
    BLOCK: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """out = slots + replies to the true carries, rows 0 … n − 2; slots may be out itself. Grid (S·K, ⌈D / BLOCK⌉)."""
    program, offset, count, lane = _place(chunks, heads, n, d, C, BLOCK)
    gap = heads * d
    h = _load_carries(carries, program, d, lane)
    for first in range(0, count, UNROLL):
        for t in tl.static_range(UNROLL):
            j = first + t
            wanted = lane < tl.where(j < count, d, 0)
            re, im = _load_row(slots + offset + j * 2 * gap, gap, wanted)
            reply = slot_replies + (program * C + j) * 8
            for k in tl.static_range(4):
                add_re, add_im = _product(h[2 * k], h[2 * k + 1], tl.load(reply + k), tl.load(reply + 4 + k))
                re += add_re
                im += add_im
            _store_row(out + offset + j * 2 * gap, gap, re, im, wanted)
