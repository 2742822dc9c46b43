"""Norms, gate, dropout and means of sines: kernels against plain torch, everywhere and differentiated in every way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from synvolution.ops import _cpu
from synvolution.ops.dropout import dropout
from synvolution.ops.gate import gate
from synvolution.ops.means import sine_means
from synvolution.ops.norm import scale_norm
from tests.oracles import assert_near, assert_same_gradients, gradients

KERNELS = _cpu.kernels
ISAS = KERNELS.supported_isas() if KERNELS is not None else []
pytestmark = pytest.mark.skipif(KERNELS is None, reason="the kernels are not built")

#: Rows, features: around vector widths, one row longer than a piece, and enough work for three threads.
SIZES = [((5,), 1), ((2, 7), 3), ((3, 5), 17), ((4, 9), 32), ((1, 3), 100), ((2,), 2500), ((40, 100), 33), ((0, 4), 8)]


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """Uninitialised memory holds NaN; threads and instruction set are put back."""
    threads = torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)
    KERNELS.set_isa(ISAS[0])


def normal(*shape: int, size: float = 1.0) -> Tensor:
    """Normal numbers, none close to 0: a row of one feature would have a large gradient of a constant."""
    x = torch.randn(*shape, dtype=torch.float64)
    return size * torch.where(x.abs() < 0.2, x + 0.4 * x.sign(), x)


def scalar(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


Case = tuple[Callable[..., Tensor], list[Tensor]]


def cases(rows: tuple[int, ...], d: int, rate: float = 0.0) -> dict[str, Case]:
    """Every operator with operands of this size; groups of three features where they divide."""
    torch.manual_seed(1)  # not that of `gradients`: a gradient along its row would come to nothing
    x, s, zeta = normal(*rows, d), scalar(1.7), scalar(0.3)
    planar = normal(*rows, 2 * d)
    groups = d // 3 if d % 3 == 0 else d
    return {
        "norm": (lambda x, s: scale_norm(x, s, rate=rate), [x, s]),
        "norm of sum": (lambda x, s, y: scale_norm(x, s, y, rate=rate), [x, s, normal(*rows, d)]),
        "planar norm": (lambda x, s, y: scale_norm(x, s, y, rate=rate), [planar, s, x]),
        "norm of mixture": (lambda x, s, y, z: scale_norm(x, s, y, z, rate=rate), [x, s, planar, zeta]),
        "norm of sines": (lambda x, s: scale_norm(x, s, sine=True, rate=rate), [x, s]),
        "gate": (lambda a, b: gate(a, b, rate), [normal(*rows, d, size=12.0), normal(*rows, d, size=3.0)]),
        "means": (lambda x: sine_means(x, groups), [normal(*rows, d, size=30.0)]),
        "unit means": (lambda x: sine_means(x, groups, unit=True), [x]),
        "dropout": (lambda x: dropout(x, rate), [x]),
    }


NAMES = list(cases((1,), 1))


def plain(function: Callable[..., Tensor], inputs: list[Tensor]) -> tuple[Tensor, ...]:
    with _cpu.switched_off():
        return gradients(function, inputs)


@pytest.mark.parametrize(("rows", "d"), SIZES)
def test_kernels_equal_plain_torch(rows: tuple[int, ...], d: int) -> None:
    for name, (function, inputs) in cases(rows, d).items():
        expected = plain(function, inputs)
        for isa in ISAS:
            KERNELS.set_isa(isa)
            for threads in (1, 2, 3):
                torch.set_num_threads(threads)
                for dtype in (torch.float64, torch.float32):
                    found = gradients(function, [t.to(dtype) for t in inputs])
                    for k, (f, e) in enumerate(zip(found, expected, strict=True)):
                        assert f.dtype == dtype
                        assert_near(f, e, what=f"{name}, {isa}, {threads} threads, {dtype}, result {k}")


@pytest.mark.parametrize("name", NAMES)
def test_strided_operands_and_gradients(name: str) -> None:
    function, inputs = cases((3, 6), 9)[name]
    strided = [t.mT.contiguous().mT if t.ndim else t for t in inputs]
    expected = plain(lambda *a: function(*a).mT, inputs)
    for f, e in zip(gradients(lambda *a: function(*a).mT, strided), expected, strict=True):
        assert_near(f, e)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_for_any_number_of_threads(name: str) -> None:
    function, inputs = cases((50, 70), 32, rate=0.1)[name]
    results = []
    for threads in (1, 2, 3, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        results.append(gradients(function, [t.float() for t in inputs]))
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", NAMES)
def test_nan_and_infinity_go_where_plain_torch_takes_them(name: str, value: float) -> None:
    function, inputs = cases((4, 5), 33)[name]
    for t in inputs:
        if t.ndim:
            t[1, 2, 20] = value
    found, expected = gradients(function, inputs), plain(function, inputs)
    for k, (f, e) in enumerate(zip(found, expected, strict=True)):
        assert torch.equal(f.isnan(), e.isnan()), f"result {k}"
        assert torch.equal(f.isinf(), e.isinf()), f"result {k}"


@pytest.mark.parametrize("length", [0.0, 1e-30, 0.9e-5, 1.1e-5])
@pytest.mark.parametrize("name", [name for name in NAMES if "norm" in name or "unit" in name])
def test_short_rows(name: str, length: float) -> None:
    function, inputs = cases((3,), 4)[name]
    for t in inputs:
        if t.ndim:
            t[1] *= length / t[1].norm()
    found, expected = gradients(function, inputs), plain(function, inputs)
    for f, e in zip(found, expected, strict=True):
        assert bool(f.isfinite().all())
        assert_near(f, e)


@pytest.mark.parametrize("isa", ISAS)
def test_sines_of_large_numbers(isa: str) -> None:
    KERNELS.set_isa(isa)
    for size in (1e3, 1e5, 1e7):
        x = size * torch.randn(7, 30, dtype=torch.float64)
        assert_near(sine_means(x, 30), torch.sin(x), 1e-15 * size)
        assert_near(sine_means(x.float(), 30), torch.sin(x.float()), 1e-6)


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("name", NAMES)
def test_gradcheck_twice(name: str, rate: float) -> None:
    """First derivatives by the kernels, second ones through plain torch, with the same elements dropped."""
    function, inputs = cases((2,), 3, rate)[name]

    def seeded(*tensors: Tensor) -> Tensor:
        torch.manual_seed(3)
        return function(*tensors)

    leaves = [t.requires_grad_() for t in inputs]
    assert torch.autograd.gradcheck(seeded, leaves)
    assert torch.autograd.gradgradcheck(seeded, leaves)


@pytest.mark.parametrize("name", NAMES)
def test_function_transforms(name: str) -> None:
    """torch.func and forward mode, which custom operators do not take, go through plain torch."""
    function, inputs = cases((4,), 3)[name]
    every = tuple(range(len(inputs)))
    expected = torch.autograd.functional.jacobian(function, tuple(inputs))
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        for f, e in zip(transform(function, every)(*inputs), expected, strict=True):
            assert_near(f, e)
    dims = tuple(0 if t.ndim else None for t in inputs)
    assert_near(torch.vmap(function, in_dims=dims)(*inputs), function(*inputs))
    jacobian = torch.autograd.functional.jacobian(function, tuple(inputs), vectorize=True)
    for f, e in zip(jacobian, expected, strict=True):
        assert_near(f, e)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_opcheck() -> None:
    torch.use_deterministic_algorithms(False)
    ops, seed = torch.ops.synvolution, torch.tensor(5)
    x, y, planar = (torch.randn(2, 3, d, requires_grad=True) for d in (4, 4, 8))
    s, zeta = torch.tensor(2.0, requires_grad=True), torch.tensor(0.3, requires_grad=True)
    norms = [(x, None, None), (x, y, None), (planar, x, None), (x, planar, zeta)]
    for operands in norms:
        torch.library.opcheck(ops.scale_norm.default, (*operands, s, seed, 0.1, False))
        grad = torch.ones(operands[0].shape)
        detached = [None if t is None else t.detach() for t in operands]
        torch.library.opcheck(ops.scale_norm_backward.default, (grad, *detached, s.detach(), None, 0.0, False))
    torch.library.opcheck(ops.scale_norm.default, (x, None, None, s, None, 0.0, True))
    torch.library.opcheck(ops.gate.default, (x, y, seed, 0.1))
    torch.library.opcheck(ops.gate_backward.default, (x.detach(), x.detach(), y.detach(), None, 0.0))
    torch.library.opcheck(ops.dropout.default, (x, seed, 0.1))
    torch.library.opcheck(ops.sine_means.default, (x, 2, True))
    torch.library.opcheck(ops.sine_means_backward.default, (torch.ones(2, 3, 2), x.detach(), 2, False))


def test_second_derivatives_of_all_operands() -> None:
    function, inputs = cases((3,), 5)["norm of mixture"]

    def slope(*tensors: Tensor) -> Tensor:
        leaves = [t if t.requires_grad else t.requires_grad_() for t in tensors]
        return torch.autograd.grad(function(*leaves).sin().sum(), leaves, create_graph=True)[0]

    def plain_slope(*tensors: Tensor) -> Tensor:
        with _cpu.switched_off():
            return slope(*tensors)

    assert_same_gradients(slope, plain_slope, inputs)


def test_operators_called_directly_refuse_bad_shapes() -> None:
    ops, x, s = torch.ops.synvolution, torch.zeros(2, 4), torch.ones(())
    with pytest.raises(ValueError, match=r"other \(2, 5\): expected"):
        ops.scale_norm(x, torch.zeros(2, 5), None, s, None, 0.0, False)
    with pytest.raises(ValueError, match=r"other \(2, 4\): expected"):
        ops.scale_norm(x, x, s, s, None, 0.0, False)
    with pytest.raises(ValueError, match=r"other \(2, 4\): expected"):
        ops.scale_norm(x, x, None, s, None, 0.0, True)
    with pytest.raises(TypeError, match="float16"):
        ops.scale_norm(x.half(), None, None, s, None, 0.0, False)
    with pytest.raises(ValueError, match=r"torch\.float64 \(2, 4\)"):
        ops.scale_norm(x, x.double(), None, s, None, 0.0, False)
    with pytest.raises(ValueError, match="grad has shape"):
        ops.scale_norm_backward(x[:1], x, None, None, s, None, 0.0, False)
    with pytest.raises(ValueError, match="differ from"):
        ops.gate(x, x[:1], None, 0.0)
    with pytest.raises(ValueError, match="rate is 2"):
        ops.dropout(x, torch.tensor(1), 2.0)
    with pytest.raises(ValueError, match="3 groups do not divide 4 features"):
        ops.sine_means(x, 3, False)
    with pytest.raises(ValueError, match="3 groups do not divide 4 features"):
        sine_means(x, 3)
