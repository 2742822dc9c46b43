"""The compiled kernels against the loop: every instruction set, odd sizes, 1 to 3 threads, NaN in fresh memory."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import synvolution as sv
from synvolution.ops import _cpu, lower_chain, upper_chain
from tests.oracles import assert_near, gradients

KERNELS = _cpu.kernels
ISAS = KERNELS.supported_isas() if KERNELS is not None else []
pytestmark = pytest.mark.skipif(KERNELS is None, reason="the kernels are not built")

#: B, N, D: around vector widths (2 to 16 lanes), two-vector tiles, blocks of rotations, and their neighbours.
SIZES = [
    (1, 1, 1),
    (1, 2, 3),
    (2, 3, 16),
    (3, 17, 15),
    (1, 16, 33),
    (2, 18, 32),
    (5, 33, 7),
    (1, 65, 70),
    (3, 40, 31),
    (4, 9, 48),
    (1, 300, 5),
    (1, 700, 50),  # from here on enough work for two and three threads
    (4, 900, 17),
    (5, 301, 40),
]


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """Uninitialised memory holds NaN; threads and instruction set are put back."""
    threads = torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)
    KERNELS.set_isa(ISAS[0])


def operands(batch: int, n: int, d: int, heads: int | None = None, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    own = (batch,) if heads is None else (batch, heads)
    lower, upper = (2 * math.pi * torch.rand(*own, n - 1, 3, dtype=dtype) for _ in range(2))
    return [torch.randn(batch, n, 2, d, dtype=dtype), lower, upper, torch.randn(*own, n, dtype=dtype)]


def assert_backends_agree(inputs: list[Tensor]) -> None:
    expected = gradients(lambda *a: sv.synvolve(*a, backend="loop"), inputs)
    for isa in ISAS:
        KERNELS.set_isa(isa)
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            for dtype in (torch.float64, torch.float32):
                found = gradients(lambda *a: sv.synvolve(*a, backend="cpp"), [t.to(dtype) for t in inputs])
                for k, (f, e) in enumerate(zip(found, expected, strict=True)):
                    assert f.dtype == dtype
                    assert_near(f, e, what=f"{isa}, {threads} threads, {dtype}, result {k}")


@pytest.mark.parametrize(("batch", "n", "d"), SIZES)
def test_synvolve_equals_the_loop(batch: int, n: int, d: int) -> None:
    assert_backends_agree(operands(batch, n, d))


@pytest.mark.parametrize(("batch", "n", "d", "heads"), [(1, 20, 6, 3), (2, 17, 34, 2), (3, 5, 64, 4), (1, 433, 96, 2)])
def test_heads_equal_the_loop(batch: int, n: int, d: int, heads: int) -> None:
    assert_backends_agree(operands(batch, n, d, heads))


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize(("batch", "n", "d"), SIZES)
def test_chains_equal_the_loop(batch: int, n: int, d: int, upper: bool) -> None:
    chain = upper_chain if upper else lower_chain
    x, angles, _, _ = operands(batch, n, d)
    expected = gradients(lambda *a: chain(*a, backend="loop"), [x, angles])
    for isa in ISAS:
        KERNELS.set_isa(isa)
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            for dtype in (torch.float64, torch.float32):
                found = gradients(lambda *a: chain(*a, backend="cpp"), [x.to(dtype), angles.to(dtype)])
                for f, e in zip(found, expected, strict=True):
                    assert_near(f, e, what=f"{isa}, {threads} threads, {dtype}")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e3, 1e5, 3e7])
def test_large_and_small_angles(isa: str, size: float) -> None:
    """Cosines and sines are those of torch, however many turns the angles make."""
    KERNELS.set_isa(isa)
    v, lower, upper, phase = operands(1, 50, 4)
    inputs = [v, lower * size, upper * size, phase * size]
    # angles of many turns lose digits when they are added up, in the loop as well
    tolerance = max(1e-12, 1e-13 * size)
    assert_near(sv.synvolve(*inputs, backend="cpp"), sv.synvolve(*inputs, backend="loop"), tolerance)


@pytest.mark.parametrize("isa", ISAS)
def test_absurd_angles_stay_unitary(isa: str) -> None:
    KERNELS.set_isa(isa)
    v, lower, upper, phase = operands(1, 50, 4)
    assert_near(sv.synvolve(v, lower * 1e15, upper * 1e300, phase * 1e12, backend="cpp").norm(), v.norm())


@pytest.mark.parametrize("isa", ISAS)
def test_infinite_angles_give_nan(isa: str) -> None:
    KERNELS.set_isa(isa)
    v, lower, upper, phase = operands(2, 20, 4)
    lower[0, 3, 2] = math.inf
    out = sv.synvolve(v, lower, upper, phase, backend="cpp")
    assert out[0].isnan().any()
    assert_near(out[1:], sv.synvolve(v[1:], lower[1:], upper[1:], phase[1:], backend="loop"))


def far_reaching(n: int, angles: Tensor, where: slice) -> None:
    """γ close to π, so that the carry of these rotations travels thousands of rows."""
    angles[:, where, 2] = math.pi - 0.02 * torch.rand_like(angles[:, where, 2])


@pytest.mark.parametrize("reach", ["short", "far", "far at the end", "far in one chain", "none", "cut into pieces"])
@pytest.mark.parametrize(("batch", "threads"), [(1, 1), (1, 3), (3, 2)])
def test_long_sequences_in_segments(reach: str, batch: int, threads: int) -> None:
    """Cutting a sequence where carries have died out changes nothing, and where they have not it is not cut."""
    n = 6001
    v, lower, upper, phase = operands(batch, n, 9)
    mask = None
    if reach in ("far", "far at the end"):
        far_reaching(n, lower, slice(0 if reach == "far" else n // 2, n))
        far_reaching(n, upper, slice(0 if reach == "far" else n // 2, n))
    elif reach == "far in one chain":
        far_reaching(n, upper, slice(0, n))
    elif reach == "none":
        lower, upper = torch.zeros_like(lower), torch.zeros_like(upper)
    elif reach == "cut into pieces":
        mask = torch.rand(batch, n) < 0.9

    def call(backend: str) -> tuple[Tensor, ...]:
        def masked(v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor) -> Tensor:
            return sv.synvolve(v, lower, upper, phase, mask, backend=backend)

        return gradients(masked, [v, lower, upper, phase])

    torch.set_num_threads(threads)
    expected = call("scan")
    for isa in ISAS:
        KERNELS.set_isa(isa)
        for k, (f, e) in enumerate(zip(call("cpp"), expected, strict=True)):
            assert_near(f, e, what=f"{isa}, result {k}")


@pytest.mark.parametrize("isa", ISAS)
def test_long_sequences_in_float32(isa: str) -> None:
    KERNELS.set_isa(isa)
    inputs = operands(1, 9000, 40, dtype=torch.float32)
    expected = gradients(lambda *a: sv.synvolve(*a, backend="scan"), [t.double() for t in inputs])
    found = gradients(lambda *a: sv.synvolve(*a, backend="cpp"), inputs)
    for f, e in zip(found, expected, strict=True):
        assert_near(f, e)


def test_deterministic() -> None:
    """The same bits in every run, for any number of threads when each sequence is one thread's work."""
    inputs = operands(4, 2000, 32, dtype=torch.float32)
    first = gradients(sv.synvolve, inputs)
    for _ in range(3):
        for a, b in zip(first, gradients(sv.synvolve, inputs), strict=True):
            assert torch.equal(a, b)


def test_expanded_and_strided_operands() -> None:
    v, lower, upper, phase = operands(3, 12, 8)
    one = lower[:1].expand(3, -1, -1)
    strided = v.transpose(0, 1).contiguous().transpose(0, 1)
    found = sv.synvolve(strided, one, upper, phase, backend="cpp")
    assert_near(found, sv.synvolve(v, one.contiguous(), upper, phase, backend="loop"))
    v.requires_grad_()
    (grad,) = torch.autograd.grad(sv.synvolve(v, lower, upper, phase, backend="cpp").sum(), v)
    (expected,) = torch.autograd.grad(sv.synvolve(v, lower, upper, phase, backend="loop").sum(), v)
    assert_near(grad, expected)


def test_operators_called_directly_refuse_bad_shapes() -> None:
    """No wrong shape may become a wrong address, whoever calls."""
    v, lower, upper, phase = operands(2, 9, 4)
    full = lower[:, None, None], upper[:, None, None], phase[:, None]
    call, chain = torch.ops.synvolution.synvolve, torch.ops.synvolution.givens_chain
    with pytest.raises(ValueError, match="lower is"):
        call(v, full[0][..., :5, :], *full[1:], None, "cpp")
    with pytest.raises(ValueError, match=r"upper is torch\.float32"):
        call(v, full[0], full[1].float(), full[2], None, "cpp")
    with pytest.raises(ValueError, match="phase has shape"):
        call(v, *full[:2], phase, None, "cpp")
    with pytest.raises(ValueError, match=r"expected \(B, N, 2, D\)"):
        call(v[:, :, 0], *full, None, "cpp")
    with pytest.raises(TypeError, match="float16"):
        call(v.half(), *(t.half() for t in full), None, "cpp")
    with pytest.raises(ValueError, match="grad is"):
        torch.ops.synvolution.synvolve_backward(v[:, :5], v, *full, None, "cpp")
    with pytest.raises(ValueError, match="angles is"):
        chain(v, lower[:1], True, "cpp")
    with pytest.raises(ValueError, match="angles is"):
        torch.ops.synvolution.givens_chain_backward(v, v, lower[:, :3], True, "cpp")


def test_fallback_without_kernels_warns_once() -> None:
    """An installation without kernels computes the same with the scan, and says so in one warning."""
    code = """
import sys, warnings
sys.modules["synvolution._kernels"] = None
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch, synvolution as sv
    sv.synvolve(torch.randn(1, 4, 2, 3), torch.randn(1, 3, 3), torch.randn(1, 3, 3), torch.randn(1, 4))
    sv.GRU(3, 4)(torch.randn(2, 1, 3))
    from synvolution.info import describe
ours = [str(w.message) for w in caught if "synvolution" in str(w.message)]
assert len(ours) == 1 and "without its compiled kernels" in ours[0], ours
assert describe()["backend"].startswith("scan"), describe()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
