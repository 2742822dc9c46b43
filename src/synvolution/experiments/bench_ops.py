"""The operator against copying, Fourier transform, attention and the paper's algorithm."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType

import torch
from torch import Tensor

from synvolution.experiments.operands import synvolve_operands
from synvolution.experiments.paper_layers import paper_algorithm
from synvolution.experiments.peak_memory import measure_in_child
from synvolution.experiments.timing import NO_GOAL, Goal, Row, compare, medians, quantity
from synvolution.ops import _cpu
from synvolution.ops.synvolve import synvolve

Shape = tuple[int, int, int]


def synvolve_step(shape: Shape) -> Callable[[], object]:
    """Forward and all gradients of synvolve."""
    inputs = synvolve_operands(*shape)
    grad = torch.randn_like(inputs[0])
    return lambda: torch.autograd.grad(synvolve(*inputs), inputs, grad)


def fnet_step(shape: Shape) -> Callable[[], object]:
    """FNet's mixing, the real part of the two-dimensional Fourier transform, and its gradient."""
    x, grad = torch.randn(shape, requires_grad=True), torch.randn(shape)
    return lambda: torch.autograd.grad(torch.fft.fft2(x).real, x, grad)


def attention_step(shape: Shape, heads: int = 4) -> Callable[[], object]:
    """Scaled dot-product attention and its gradients."""
    batch, n, d = shape
    q, k, v = (torch.randn(batch, heads, n, d // heads, requires_grad=True) for _ in range(3))
    grad = torch.randn(batch, heads, n, d // heads)
    attention = torch.nn.functional.scaled_dot_product_attention
    return lambda: torch.autograd.grad(attention(q, k, v), (q, k, v), grad)


def paper_step(module: ModuleType, shape: Shape) -> Callable[[], object]:
    """Forward and gradients of the algorithm as printed."""
    v, lower, upper, phase = synvolve_operands(*shape)
    theta = torch.rand_like(phase).requires_grad_()
    x = torch.complex(v[:, :, 0], v[:, :, 1]).detach().requires_grad_()
    inputs: list[Tensor] = [x, lower, upper, phase, theta]
    grad = torch.randn_like(x)
    # theta cancels exactly, so its gradient may come out absent
    return lambda: torch.autograd.grad(module.paper_synvolve(*inputs), inputs, grad, allow_unused=True)


def copy_like_ours(v: Tensor) -> Tensor:
    """A copy into memory of the kind our results get, large pages where the kernels are built."""
    return _cpu.empty(v.shape, v.dtype).copy_(v) if _cpu.usable(v) else v.clone()


def forward_rows(shapes: list[Shape], repeats: int) -> Iterator[Row]:
    """Forward against a copy of the tensor: torch's, and one that gets the same kind of fresh memory as we do."""
    for shape in shapes:
        inputs = [t.detach() for t in synvolve_operands(*shape)]
        ours, v = partial(synvolve, *inputs), inputs[0]
        yield compare("forward ÷ clone", str(shape), ours, v.clone, Goal(1.5), repeats)
        if v.device.type != "cpu":  # where there is no other kind of memory
            continue
        like_ours = partial(copy_like_ours, v)
        yield compare("forward ÷ copy into large pages", str(shape), ours, like_ours, NO_GOAL, repeats)


def growth_rows(lengths: list[int], d: int, repeats: int) -> Iterator[Row]:
    """Cost against length, forward and backward, with the exponent between 4096 (or the shortest) and the longest."""
    times: dict[int, float] = {}
    for n in lengths:
        (times[n],) = medians(repeats, synvolve_step((1, n, d)))
        yield quantity("fwd+bwd", f"(1, {n}, {d})", 1e6 * times[n] / n, "ns/token")
    first, last = max(min(lengths), min(4096, max(lengths) // 2)), max(lengths)
    exponent = math.log(times[last] / times[first]) / math.log(last / first)
    yield quantity("growth exponent in N", f"{first} … {last}, D = {d}", exponent, "", Goal(1.05))


def memory_rows(shapes: list[Shape]) -> Iterator[Row]:
    """Peak memory beyond the inputs."""
    for shape in shapes:
        found = measure_in_child(*shape)
        yield quantity("peak extra memory, fwd+bwd", str(shape), found["tensors"], "inputs", Goal(3))
        yield quantity("the same, per token", str(shape), found["bytes_per_token"], "bytes")


def rows(repeats: int, quick: bool) -> Iterator[Row]:
    """All rows of ``synvolution bench ops``; quick: small sizes that say nothing about the goals."""
    long: Shape = (1, 256, 16) if quick else (2, 16384, 128)
    yield from forward_rows([(2, 64, 8)] if quick else [(128, 2048, 32), (4, 16384, 128)], repeats)
    for shape in [long] if quick else [long, (32, 2000, 32), (8, 4096, 64)]:
        yield compare(
            "fwd+bwd ÷ FNet's fft2",
            str(shape),
            synvolve_step(shape),
            fnet_step(shape),
            Goal(1.0),
            repeats,
        )
    module = paper_algorithm()
    if module is not None:
        paper = paper_step(module, long)
        goal = Goal(30, at_least=True)
        name = "paper's algorithm ÷ fwd+bwd"
        yield compare(name, str(long), synvolve_step(long), paper, goal, repeats)
    goal = Goal(100, at_least=True)
    name = "attention, 4 heads ÷ fwd+bwd"
    yield compare(name, str(long), synvolve_step(long), attention_step(long), goal, repeats)
    lengths = [64, 128, 256] if quick else [2**k for k in range(10, 21)]
    yield from growth_rows(lengths, 8 if quick else 64, repeats)
    on_cpu = torch.get_default_device().type == "cpu"
    if on_cpu and sys.platform != "win32":  # which does not tell a process its peak
        yield from memory_rows([(1, 4096, 64)] if quick else [(4, 16384, 128), (1, 1_048_576, 64)])
