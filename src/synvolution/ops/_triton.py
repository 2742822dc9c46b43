"""synvolve on CUDA and ROCm devices: Triton kernels where they fit, the portable scan elsewhere.

The kernels take one order without permutation in float32, float16 or bfloat16 (computed in float32). Anything else
(single chains, more orders, float64, devices older than compute capability 7.0) is the scan. Triton is imported with
the first call; torch's CUDA builds bring it. With ``TRITON_INTERPRET=1`` set it runs on CPU tensors, slowly: for tests.

Letters: B batch, N positions, H heads, D features, S = B·H, K chunks.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
from importlib import metadata
from typing import Any, NamedTuple

import torch
from torch import Tensor

#: Oldest Triton for which the kernels were seen to compile (torch 2.8 brings it); with an older one the scan is used.
OLDEST = (3, 4)


def triton_version() -> str | None:
    """Version of the Triton that is installed, under whichever name torch's builds give it; None: there is none.

    Example:
        >>> triton_version() is None or "." in triton_version()
        True
    """
    if importlib.util.find_spec("triton") is None:
        return None
    for name in ("triton", "pytorch-triton", "pytorch-triton-rocm"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return None


def recent_enough(version: str | None) -> bool:
    """Whether the kernels can use that Triton.

    Example:
        >>> [recent_enough(version) for version in (None, "2.3.1", "3.4.0", "3.10.0+git")]
        [False, False, True, True]
    """
    numbers = re.findall(r"\d+", version or "")[:2]
    return len(numbers) == 2 and tuple(map(int, numbers)) >= OLDEST


#: Whether such a Triton is there, and whether its interpreter will be used.
INSTALLED = recent_enough(triton_version())
INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"
DEVICES = ("cuda", "cpu") if INTERPRETED else ("cuda",)

#: Rotations of a chunk. Longer chunks mean fewer carries between them, which cost 16/ROWS of a pass over the signal and
#: walk from chunk to chunk one after the other; shorter ones mean more programs. 64 rows give the long documents (4
#: sequences of 16,384, width 128) 2,048 warps, about 20 for each of the 108 multiprocessors of an A100.
ROWS = 64
#: Chunks whose carries are loaded at once in the walk from chunk to chunk.
STEPS = 8
#: Lanes of the kernel that finds what carries do to carries and slots: four for each chunk.
RESPONSE_LANES = 32
#: Features of a program: a warp's worth, so that sums over features need no more than shuffles. Two per thread halve
#: these and the loads of coefficients, but leave half of the threads idle for narrow heads.
BLOCKS = (32, 64)
#: Rows loaded ahead of the rotations that need them where this is not tuned (``_triton_sweeps.tuned``).
UNROLL = 4

HALVES = (torch.float16, torch.bfloat16)


class Cut(NamedTuple):
    """Sizes of a call: sequences times heads S, positions N, features of a head D, heads H, rows of a chunk, chunks."""

    sequences: int
    n: int
    d: int
    heads: int
    rows: int
    chunks: int

    @property
    def block(self) -> int:
        """Features of a program."""
        return BLOCKS[0] if self.d <= BLOCKS[0] else BLOCKS[1]

    @property
    def tiles(self) -> int:
        """Programs side by side over the features."""
        return -(-self.d // self.block)

    @property
    def steps(self) -> int:
        """Chunks whose carries are loaded at once."""
        return min(STEPS, 1 << max(self.chunks - 1, 0).bit_length())

    @property
    def grid(self) -> tuple[int, int]:
        """Programs for each chunk and each tile of features."""
        return self.sequences * self.chunks, self.tiles


def cut(v: Tensor, phase: Tensor, rows: int | None = None) -> Cut:
    """How v (B, N, 2, H·D) is cut into chunks of ``rows`` rotations; None: ROWS, less for a short sequence.

    Example:
        >>> cut(torch.zeros(2, 150, 2, 6), torch.zeros(2, 3, 150))
        Cut(sequences=6, n=150, d=2, heads=3, rows=64, chunks=3)
    """
    if rows is None:
        rows = min(ROWS, max(8, 1 << (v.shape[1] - 2).bit_length())) if v.shape[1] > 1 else 8
    if rows < UNROLL or rows & (rows - 1):
        raise ValueError(f"chunks of {rows} rotations: expected a power of two, at least {UNROLL}")
    batch, n, _, features = v.shape
    heads = phase.shape[1]
    return Cut(batch * heads, n, features // heads, heads, rows, -(-(n - 1) // rows))


def takes(signal: Tensor, lower: Tensor, phase: Tensor, index: Tensor | None) -> bool:
    """Whether the kernels can compute this; if not, the scan does."""
    fits = index is None and lower.shape[2] == 1 and signal.numel() > 0
    types = signal.dtype in (torch.float32, *HALVES) and lower.dtype == phase.dtype == torch.float32
    return fits and types and _recent(signal.device)


def _recent(device: torch.device) -> bool:
    """Triton's own limit; the interpreter has none."""
    if device.type != "cuda" or torch.version.hip is not None:
        return True
    return torch.cuda.get_device_capability(device) >= (7, 0)


def _kernels() -> Any:
    return importlib.import_module("synvolution.ops._triton_kernels")


#: Products and sums may be fused, as Triton has always done; said aloud, since its default will change.
OPTIONS: dict[str, Any] = {} if INTERPRETED else {"enable_fp_fusion": True}
#: What tuning chooses on a device.
FIXED: dict[str, Any] = {"UNROLL": UNROLL, "num_warps": 1}
TUNED: dict[str, Any] = FIXED if INTERPRETED else {}


class Chunks:
    """Coefficients of all chunks, made from the angles, and the carries of a signal."""

    def __init__(self, sizes: Cut, lower: Tensor, upper: Tensor, phase: Tensor, sign: int) -> None:
        self.sizes, self.phase, self.sign, self.kernels = sizes, phase, sign, _kernels()
        shape = (sizes.sequences, sizes.chunks)
        self.coefficients = phase.new_empty(*shape, 10, sizes.rows)
        self.twists, self.replies = phase.new_empty(*shape, 2, 2), phase.new_empty(*shape, 4, 4, 2)
        self.slot_replies = phase.new_empty(*shape, sizes.rows, 2, 4)
        total = sizes.sequences * sizes.chunks
        if total == 0:
            return
        angles = lower, upper, phase, self.coefficients, self.twists
        self.kernels.prepare[(total,)](*angles, sizes.n, sizes.chunks, SIGN=sign, C=sizes.rows, num_warps=1, **OPTIONS)
        options = {"C": sizes.rows, "LANES": RESPONSE_LANES, **FIXED, **OPTIONS}
        tables = self.coefficients, self.twists, self.replies, self.slot_replies
        self.kernels.respond[(-(-4 * total // RESPONSE_LANES),)](*tables, total, **options)

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """n, d, heads, chunks, as the kernels take them."""
        return self.sizes.n, self.sizes.d, self.sizes.heads, self.sizes.chunks

    @property
    def options(self) -> dict[str, Any]:
        """What the kernels over chunks are compiled for."""
        return {"C": self.sizes.rows, "BLOCK": self.sizes.block, **OPTIONS}

    def carries(self, x: Tensor, slots: Tensor, out: Tensor, write: bool) -> tuple[Tensor, Tensor]:
        """Carries into each chunk (S, K, 4, 2, D) and at the end of each sweep (S, 4, 2, D); writes out's last row.

        slots: float32 like x, gets the slots without carries if ``write`` is set, else nothing of meaning.
        """
        sizes = self.sizes
        carries = self.phase.new_empty(sizes.sequences, sizes.chunks, 4, 2, sizes.d)
        ends = self.phase.new_empty(sizes.sequences, 4, 2, sizes.d)
        if sizes.chunks:
            tables = self.coefficients, self.twists, carries
            self.kernels.local[sizes.grid](x, slots, *tables, *self.numbers, WRITE=write, **self.options, **TUNED)
        for which in range(4):  # launches of their own: a kernel sees what the one before has written
            tensors = x, out, self.phase, self.replies, carries, ends
            options = {"WHICH": which, "SIGN": self.sign, "STEPS": sizes.steps, "BLOCK": sizes.block, "num_warps": 1}
            self.kernels.carry[(sizes.sequences, sizes.tiles)](*tensors, *self.numbers, **options, **OPTIONS)
        return carries, ends


def synvolve(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, *, rows: int | None = None) -> Tensor:
    """v (B, N, 2, D), lower and upper (B, H, 1, N−1, 3), phase (B, H, N) → (B, N, 2, D)."""
    v, lower, upper, phase = (t.contiguous() for t in (v, lower, upper, phase))
    sizes, out = cut(v, phase, rows), torch.empty_like(v)
    slots = out if out.dtype == torch.float32 else torch.empty_like(out, dtype=torch.float32)
    with torch.cuda.device_of(v):
        chunks = Chunks(sizes, lower, upper, phase, 1)
        carries, _ = chunks.carries(v, slots, out, write=True)
        if sizes.chunks:
            tensors = slots, out, chunks.slot_replies, carries
            chunks.kernels.fix_up[sizes.grid](*tensors, *chunks.numbers, **chunks.options, **FIXED)
    return out


def synvolve_backward(
    grad: Tensor, out: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, *, rows: int | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of v, lower, upper, phase from the output: the forward with φ negated, on output and gradient."""
    grad, out, lower, upper, phase = (t.contiguous() for t in (grad, out, lower, upper, phase))
    sizes, g_v = cut(out, phase, rows), torch.empty_like(out)
    slots = torch.empty_like(out, dtype=torch.float32)
    slots_g = g_v if g_v.dtype == torch.float32 else torch.empty_like(slots)
    # each tile of features has sums of its own: adding them up afterwards gives the same bits every time
    terms = phase.new_empty(sizes.tiles, 4, *lower.shape)
    phases = phase.new_zeros(sizes.tiles, *phase.shape)
    with torch.cuda.device_of(out):
        chunks = Chunks(sizes, lower, upper, phase, -1)
        carries, ends = chunks.carries(out, slots, slots, write=False)
        carries_g, ends_g = chunks.carries(grad, slots, g_v, write=False)
        if sizes.chunks:
            tensors = out, grad, slots, slots_g, g_v, terms, phases, chunks.coefficients, chunks.twists
            numbers = *chunks.numbers, sizes.sequences
            kernels = importlib.import_module("synvolution.ops._triton_backward")
            kernels.apply_backward[sizes.grid](*tensors, carries, carries_g, *numbers, **chunks.options, **TUNED)
    x, g = ends[:, 1], ends_g[:, 1]  # the last row where φ is applied
    g_phase = phases.sum(0)
    g_phase[..., -1] = (g[:, 1] * x[:, 0] - g[:, 0] * x[:, 1]).sum(-1).reshape(phase.shape[:2])
    return g_v, *_angle_gradients(terms.sum(0)), g_phase


def _angle_gradients(terms: Tensor) -> tuple[Tensor, Tensor]:
    """Of lower and upper from the terms (4, …, 3) of the sweeps up, down, up, down.

    A chain enters with its own terms and with those of its adjoint, for which before and after change places.
    """
    up, down, adjoint_down, adjoint_up = terms
    swapped = [1, 0, 2]
    return (down + adjoint_down[..., swapped]) / 2, -(up + adjoint_up[..., swapped]) / 2
