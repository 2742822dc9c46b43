"""The Triton kernels against the loop, in Triton's interpreter on CPU tensors.

``tests/ops/test_triton.py`` runs this file in a process of its own, since Triton decides at its import whether it
interprets. By hand: ``TRITON_INTERPRET=1 pytest tests/ops/triton_cases.py``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch import Tensor

import synvolution as sv
from synvolution.ops import _backends, _triton
from tests.oracles import assert_near, gradients

if not _triton.INTERPRETED:
    pytest.skip("set TRITON_INTERPRET=1 before pytest starts", allow_module_level=True)

#: Rotations of a chunk in these tests; 4 are loaded at once, as on a device.
CHUNK = 4
LOOP = _backends.BACKENDS["loop"]
NAMES = ("value", "gradient of v", "gradient of lower", "gradient of upper", "gradient of phase")


@pytest.fixture(autouse=True)
def _poison() -> Iterator[None]:
    """Fresh memory holds NaN: what a kernel does not write shows."""
    torch.use_deterministic_algorithms(True)
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


def operands(batch: int, n: int, d: int, heads: int = 1, gamma: float | None = None) -> list[Tensor]:
    """v (B, N, 2, D), lower and upper (B, H, 1, N−1, 3), phase (B, H, N); all γ near ``gamma`` if given."""
    lower, upper = (2 * math.pi * torch.rand(batch, heads, 1, n - 1, 3) for _ in range(2))
    if gamma is not None:
        for angles in (lower, upper):
            angles[..., 2] = gamma + 0.01 * torch.randn(angles.shape[:-1])
    return [torch.randn(batch, n, 2, d), lower, upper, torch.randn(batch, heads, n)]


def both(inputs: list[Tensor], rows: int | None = CHUNK) -> list[Tensor]:
    """Output and all gradients of the kernels, for the incoming gradient of :func:`expected`."""
    v, *angles = inputs
    grad = torch.ones_like(v) + v.flip(1)
    out = _triton.synvolve(v, *angles, rows=rows)
    return [out, *_triton.synvolve_backward(grad, out, *angles, rows=rows)]


def expected(inputs: list[Tensor]) -> list[Tensor]:
    """The same of the loop, in float64."""
    v, *angles = (t.double() for t in inputs)
    out = LOOP.synvolve(v, *angles, None)
    return [out, *LOOP.synvolve_backward((torch.ones_like(inputs[0]) + inputs[0].flip(1)).double(), out, *angles, None)]


def assert_all_near(found: list[Tensor], wanted: list[Tensor], tolerance: float | None = None) -> None:
    for name, f, e in zip(NAMES, found, wanted, strict=True):
        assert not f.isnan().any(), f"{name}: not all is written"
        assert_near(f, e, tolerance, what=name)


SIZES = [
    *((1, n, 3, 1) for n in (1, 2, CHUNK, CHUNK + 1, 2 * CHUNK + 1)),
    (2, 3, 1, 1),
    (1, CHUNK + 2, 33, 1),
    (1, 3, 65, 1),
    (1, CHUNK + 2, 6, 2),
]


@pytest.mark.parametrize(("batch", "n", "d", "heads"), SIZES)
def test_equals_the_loop(batch: int, n: int, d: int, heads: int) -> None:
    inputs = operands(batch, n, d, heads)
    assert_all_near(both(inputs), expected(inputs))


@pytest.mark.parametrize("gamma", [0.0, 3.1])
def test_angle_regimes(gamma: float) -> None:
    """Near 0 neighbours barely mix, near π a carry goes through all chunks."""
    inputs = operands(1, 2 * CHUNK, 2, gamma=gamma)
    assert_all_near(both(inputs), expected(inputs))


def test_many_chunks_walk_in_steps() -> None:
    inputs = operands(1, 4 * (_triton.STEPS + 1), 1, gamma=3.1)
    out = _triton.synvolve(*inputs, rows=CHUNK)
    assert_near(out, expected(inputs)[0])


def test_default_chunk() -> None:
    sizes = {n: _triton.cut(torch.zeros(1, n, 2, 2), torch.zeros(1, 1, n)).rows for n in (1, 2, 9, 10, 65, 66, 1000)}
    assert sizes == {1: 8, 2: 8, 9: 8, 10: 16, 65: 64, 66: 64, 1000: 64}
    inputs = operands(1, 9, 2)
    assert_all_near(both(inputs, None), expected(inputs))
    with pytest.raises(ValueError, match="power of two"):
        both(inputs, 6)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.bfloat16, 2**-6), (torch.float16, 2**-9)])
def test_half_precision(dtype: torch.dtype, bound: float) -> None:
    """In and out in half precision, in between float32: within four roundings of the type, relative to the largest."""
    v, *angles = operands(1, CHUNK + 1, 5)
    out = _triton.synvolve(v.to(dtype), *angles, rows=CHUNK)
    found = [out, *_triton.synvolve_backward(torch.ones_like(out), out, *angles, rows=CHUNK)]
    exact = LOOP.synvolve(v.to(dtype).double(), *(t.double() for t in angles), None)
    wanted = [exact, *LOOP.synvolve_backward(torch.ones_like(exact), exact, *(t.double() for t in angles), None)]
    assert [t.dtype for t in found] == [dtype, dtype, *3 * [torch.float32]]
    assert_all_near([t.double() for t in found], wanted, bound)


def test_public_operator_with_masks() -> None:
    """Through the custom operator: right and left padding and a hole; padding may hold anything."""
    v, lower, upper, phase = operands(3, 7, 2)
    lower, upper, phase = lower[:, 0, 0], upper[:, 0, 0], phase[:, 0]
    mask = torch.tensor([[1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1], [1, 1, 0, 1, 1, 0, 1]]).bool()
    v[~mask] = 1e30

    def masked(backend: str, v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor) -> Tensor:
        return sv.synvolve(v, lower, upper, phase, mask, backend=backend)[mask]

    def run(backend: str) -> tuple[Tensor, ...]:
        return gradients(partial(masked, backend), [v, lower, upper, phase])

    for k, (found, wanted) in enumerate(zip(run("triton"), run("loop"), strict=True)):
        assert_near(found, wanted, what=NAMES[k])


def test_what_the_kernels_do_not_take_is_the_scan() -> None:
    for dtype, orders in itertools.product((torch.float32, torch.float64), (1, 2)):
        v, phase = torch.randn(1, 5, 2, 3, dtype=dtype), torch.randn(1, 5, dtype=dtype)
        lower, upper = (torch.randn(1, orders, 4, 3, dtype=dtype) for _ in range(2))
        found = sv.synvolve(v, lower, upper, phase, backend="triton")
        assert_near(found, sv.synvolve(v, lower, upper, phase, backend="loop"))
    empty = torch.zeros(0, 5, 2, 3)
    assert (
        sv.synvolve(empty, torch.zeros(0, 4, 3), torch.zeros(0, 4, 3), torch.zeros(0, 5), backend="triton").numel() == 0
    )


def test_half_precision_through_the_public_operator() -> None:
    v, lower, upper, phase = operands(1, 3, 2)
    half = v.bfloat16().requires_grad_()
    found = {
        name: sv.synvolve(half, lower[:, 0], upper[:, 0], phase[:, 0], backend=name) for name in ("triton", "scan")
    }
    assert_near(found["triton"].double(), found["scan"].double(), 2**-6)
    for out in found.values():
        (grad,) = torch.autograd.grad(out.sum(), half)
        assert out.dtype == grad.dtype == torch.bfloat16
