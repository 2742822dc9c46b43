"""What the GPU kernels of synvolve in Triton are made of: the four sweeps over a chunk. docs/performance.md explains.

A sequence is cut into chunks of C rotations. Slot j of a chunk holds row j before an upward sweep and row j+1 after it,
row j+1 before a downward sweep and row j after it: the four sweeps up, down, up, down of

    out = Ē0 R1ᵀ Ē1 R2ᵀ e^{iφ} R2 E1 R1 E0 v

never move a slot. A program is a warp that takes a chunk of some features through all four, a thread for each feature;
between sweeps the slots lie in global memory, where they stay in cache. Chunks meet in the four carries alone.

Letters: S sequences times heads, K chunks, C slots of a chunk, D features of a head. Layouts, all contiguous float32:
coefficients (S, K, 10, C), twists (S, K, 2, 2), replies of carries to carries (S, K, 4, 4, 2) and of slots to carries
(S, K, C, 2, 4), carries (S, K, 4, 2, D), ends (S, 4, 2, D). A signal is (B, N, 2, H·D), of any floating type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from synvolution.ops._triton import INTERPRETED

# Planes of the coefficients, cosine and sine of each; E0, E1 the rows' phases, R1, R2 the upper and lower rotations.
E0 = tl.constexpr(0)
E1 = tl.constexpr(2)
PHI = tl.constexpr(4)
R1 = tl.constexpr(6)
R2 = tl.constexpr(8)
PLANES = tl.constexpr(10)


def tuned(*unroll: int) -> Callable[[Any], Any]:
    """Let Triton try how many rows to load ahead, once for each width and type; a warp per program in any case.

    More rows ahead hide more of the caches' latency within a warp; fewer need fewer registers, so that more warps are
    there to hide it. Only what computes the same when run again may be tuned. The interpreter has nothing to tune.
    """
    if INTERPRETED:
        return lambda kernel: kernel
    return triton.autotune([triton.Config({"UNROLL": rows}, num_warps=1) for rows in unroll], key=["d"])


@triton.jit
def _product(re, im, cos, sin):
    return cos * re - sin * im, cos * im + sin * re


@triton.jit
def _load_row(row, gap, wanted):
    return tl.load(row, wanted, 0.0).to(tl.float32), tl.load(row + gap, wanted, 0.0).to(tl.float32)


@triton.jit
def _store_row(row, gap, re, im, wanted):
    tl.store(row, re.to(row.dtype.element_ty), wanted)
    tl.store(row + gap, im.to(row.dtype.element_ty), wanted)


@triton.jit
def _pair(coefficients, j, PLANE: tl.constexpr, SIGN: tl.constexpr, C: tl.constexpr):
    """Cosine and sine of slot j in a plane; SIGN −1: of the opposite angle."""
    return tl.load(coefficients + PLANE * C + j), SIGN * tl.load(coefficients + PLANE * C + C + j)


@triton.jit
def _rotate(re, im, h_re, h_im, c, s, UP: tl.constexpr):
    """Slot and carry → slot and carry; the carry is the lower row going up, the upper row going down."""
    if UP:
        return s * re + c * h_re, s * im + c * h_im, c * re - s * h_re, c * im - s * h_im
    return c * h_re - s * re, c * h_im - s * im, s * h_re + c * re, s * h_im + c * im


@triton.jit
def _sweep(
    source,
    target,
    h_re,
    h_im,
    coefficients,
    lane,
    d,
    gap,
    count,
    PHASE: tl.constexpr,
    PHASE_SIGN: tl.constexpr,
    ROTATION: tl.constexpr,
    SIGN: tl.constexpr,
    UP: tl.constexpr,
    EMPTY: tl.constexpr,
    WRITE: tl.constexpr,
    LAST: tl.constexpr,
    C: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """One sweep over slots 0 … count − 1: times a phase, rotated with the carry; LAST: times Ē0. Returns the carry.

    source and target point to the features of slot 0; a row has 2·gap numbers. EMPTY: all slots are 0 before.
    """
    blocks = (count + UNROLL - 1) // UNROLL
    for block in range(blocks):
        first = (blocks - 1 - block if UP else block) * UNROLL
        loaded = ()
        for t in tl.static_range(UNROLL):  # all loads first: their latency is paid once
            j = first + (UNROLL - 1 - t if UP else t)
            if EMPTY:
                loaded = loaded + ((0.0 * h_re, 0.0 * h_im),)
            else:
                loaded = loaded + (_load_row(source + j * 2 * gap, gap, lane < tl.where(j < count, d, 0)),)
        for t in tl.static_range(UNROLL):
            j = first + (UNROLL - 1 - t if UP else t)
            cos, sin = _pair(coefficients, j, PHASE, PHASE_SIGN, C)
            re, im = _product(loaded[t][0], loaded[t][1], cos, sin)
            c, s = _pair(coefficients, j, ROTATION, SIGN, C)
            re, im, h_re, h_im = _rotate(re, im, h_re, h_im, c, s, UP)
            if LAST:
                cos, sin = _pair(coefficients, j, E0, -1, C)
                re, im = _product(re, im, cos, sin)
            if WRITE:
                _store_row(target + j * 2 * gap, gap, re, im, lane < tl.where(j < count, d, 0))
    tl.debug_barrier()  # whoever reads the slots next sees them
    return h_re, h_im


@triton.jit
def _sweeps(
    source,
    target,
    h,
    coefficients,
    twists,
    lane,
    d,
    gap,
    count,
    EMPTY: tl.constexpr,
    WRITE: tl.constexpr,
    C: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """The four sweeps of a chunk. h: incoming carries, (re, im) of each in turn; returns the outgoing ones.

    Carries are in the frame of the signal outside, in the turning frame of the phases inside: twists lead over.
    """
    place = (lane, d, gap, count)
    a_re, a_im = _sweep(
        source, target, h[0], h[1], coefficients, *place, E0, 1, R1, 1, True, EMPTY, True, False, C, UNROLL
    )
    a_re, a_im = _product(a_re, a_im, tl.load(twists), tl.load(twists + 1))
    b_re, b_im = _sweep(
        target, target, h[2], h[3], coefficients, *place, E1, 1, R2, 1, False, False, True, False, C, UNROLL
    )
    b_re, b_im = _product(b_re, b_im, tl.load(twists + 2), tl.load(twists + 3))
    c_re, c_im = _product(h[4], h[5], tl.load(twists + 2), -tl.load(twists + 3))
    c_re, c_im = _sweep(
        target, target, c_re, c_im, coefficients, *place, PHI, 1, R2, -1, True, False, True, False, C, UNROLL
    )
    d_re, d_im = _product(h[6], h[7], tl.load(twists), -tl.load(twists + 1))
    d_re, d_im = _sweep(
        target, target, d_re, d_im, coefficients, *place, E1, -1, R1, -1, False, False, WRITE, True, C, UNROLL
    )
    return (a_re, a_im, b_re, b_im, c_re, c_im, d_re, d_im)


@triton.jit
def _place(chunks, heads, n, d, C: tl.constexpr, BLOCK: tl.constexpr):
    """Chunk, offset of its first slot in a signal, number of its slots, and the features of this program."""
    program = tl.program_id(0).to(tl.int64)
    lane = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sequence, first = program // chunks, (program % chunks) * C
    row = (sequence // heads) * n + first
    return program, row * 2 * heads * d + (sequence % heads) * d + lane, tl.minimum(C, n - 1 - first), lane


@triton.jit
def _load_carries(carries, program, d, lane):
    h = ()
    for k in tl.static_range(8):
        h = h + (tl.load(carries + (program * 8 + k) * d + lane, lane < d, 0.0),)
    return h
