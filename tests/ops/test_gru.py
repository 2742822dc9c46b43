"""The GRU operator against its definition, the loop: values and every gradient."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest
import torch
from torch import Tensor

from synvolution.ops import _cpu
from synvolution.ops._gru_reference import gru_reference
from synvolution.ops.gru import gru

KERNELS = _cpu.kernels
ISAS = KERNELS.supported_isas() if KERNELS is not None else []
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
NAMES = ("x", "h0", "w_ih", "w_hh", "b_ih", "b_hh")

needs_kernels = pytest.mark.skipif(KERNELS is None, reason="the kernels are not built")


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    """Each test leaves threads and instruction set as they were, and sees NaN in uninitialised memory."""
    threads = torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)
    if KERNELS is not None:
        KERNELS.set_isa(ISAS[0])


def make(batch: int, steps: int, inputs: int, hidden: int, batch_first: bool = True) -> list[Tensor]:
    """x, h0, w_ih, w_hh, b_ih, b_hh in float64"""
    generator = torch.Generator().manual_seed(batch + 10 * steps + 1000 * hidden)
    shape = (batch, steps, inputs) if batch_first else (steps, batch, inputs)
    shapes = (shape, (batch, hidden), (3 * hidden, inputs), (3 * hidden, hidden), (3 * hidden,), (3 * hidden,))
    scales = (1.0, 0.5, inputs**-0.5, hidden**-0.5, 0.3, 0.3)
    draws = (torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes)
    return [draw * scale for draw, scale in zip(draws, scales, strict=True)]


def results(
    function: Callable, tensors: Sequence[Tensor | None], mask: Tensor | None = None, **options: bool
) -> list[Tensor]:
    """output, h_n and the gradient of every given tensor, for one fixed random loss"""
    leaves = [None if t is None else t.detach().clone().requires_grad_() for t in tensors]
    output, h_n = function(*leaves, mask, **options)
    loss = sum((torch.arange(t.numel()).sin().to(t).view_as(t) * t).sum() for t in (output, h_n))
    grads = torch.autograd.grad(loss, [leaf for leaf in leaves if leaf is not None])
    return [output.detach(), h_n.detach(), *grads]


def assert_equal(given: list[Tensor], expected: list[Tensor], note: str) -> None:
    for name, a, b in zip(("output", "h_n", *NAMES), given, expected, strict=False):
        tolerance = TOLERANCE[a.dtype]
        scale = max(1.0, b.abs().max().item()) if b.numel() else 1.0
        torch.testing.assert_close(
            a.double(), b.double(), rtol=tolerance, atol=tolerance * scale, msg=partial("{}: {}: {}".format, note, name)
        )


def cast(tensors: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
    return [t.to(dtype) for t in tensors]


def padding_mask(batch: int, steps: int, side: str) -> Tensor:
    """Padding on the right (row 0 empty), on the left, or anywhere."""
    lengths = torch.arange(batch) * steps // max(1, batch - 1)
    right = torch.arange(steps) < lengths[:, None]
    if side == "right":
        return right
    if side == "left":
        return right.flip(1)
    return torch.rand(batch, steps, generator=torch.Generator().manual_seed(7)) < 0.6


@needs_kernels
@pytest.mark.parametrize("hidden", [1, 2, 3, 5, 16, 17, 32, 33, 64, 128, 130])
@pytest.mark.parametrize("batch", [1, 2, 3, 5])
def test_equals_reference(batch: int, hidden: int) -> None:
    for steps in (1, 2, 7, 33):
        tensors = make(batch, steps, (hidden * 7) % 19 + 1, hidden)
        expected = results(gru_reference, tensors)
        for isa, dtype in itertools.product(ISAS, TOLERANCE):
            KERNELS.set_isa(isa)
            torch.set_num_threads((steps + batch) % 3 + 1)
            assert_equal(results(gru, cast(tensors, dtype)), expected, f"{isa} {dtype} N={steps}")


@needs_kernels
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("batch", "steps", "inputs", "hidden"), [(1, 300, 5, 20), (2, 150, 70, 9), (37, 20, 33, 24)])
def test_many_chunks_and_blocks(isa: str, threads: int, batch: int, steps: int, inputs: int, hidden: int) -> None:
    KERNELS.set_isa(isa)
    torch.set_num_threads(threads)
    tensors = make(batch, steps, inputs, hidden)
    expected = results(gru_reference, tensors)
    for dtype in TOLERANCE:
        assert_equal(results(gru, cast(tensors, dtype)), expected, f"{dtype}")


@pytest.mark.parametrize("side", ["right", "left", "holes"])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("batch", [1, 5, 19])
def test_mask_equals_reference(side: str, batch_first: bool, batch: int) -> None:
    tensors, mask = make(batch, 23, 6, 18, batch_first), padding_mask(batch, 23, side)
    expected = results(gru_reference, tensors, mask, batch_first=batch_first)
    for threads, dtype in itertools.product((1, 3), TOLERANCE):
        torch.set_num_threads(threads)
        given = results(gru, cast(tensors, dtype), mask, batch_first=batch_first)
        assert_equal(given, expected, f"{side} {dtype} {threads} threads")


@pytest.mark.parametrize("function", [gru, gru_reference])
@pytest.mark.parametrize("side", ["right", "left", "holes"])
def test_padding_changes_nothing(function: Callable, side: str) -> None:
    """A padded row equals its real steps run alone; NaN in the padding reaches nothing."""
    tensors, mask = make(4, 12, 3, 5), padding_mask(4, 12, side)
    tensors[0][~mask] = float("nan")
    output, h_n, grad_x, *grads = results(function, tensors, mask)
    assert not output[~mask].any()
    assert not grad_x[~mask].any()
    assert all(grad.isfinite().all() for grad in grads)
    for row in range(4):
        real = tensors[0][row : row + 1, mask[row]]
        h0 = tensors[1][row : row + 1]
        if real.shape[1] == 0:
            assert torch.equal(h_n[row : row + 1], h0)
            continue
        alone, last = function(real, h0, *tensors[2:])
        torch.testing.assert_close(output[row : row + 1, mask[row]], alone, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(h_n[row : row + 1], last, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("absent", [(4,), (5,), (4, 5)])
def test_absent_biases(absent: tuple[int, ...]) -> None:
    tensors: list[Tensor | None] = [t if i not in absent else None for i, t in enumerate(make(2, 5, 3, 4))]
    assert_equal(results(gru, tensors), results(gru_reference, tensors), f"without {absent}")


def test_non_contiguous() -> None:
    """Views with odd strides, and an expanded gradient."""
    tensors = make(3, 6, 4, 5)
    views = [t.transpose(0, 1).contiguous().transpose(0, 1) if t.dim() > 1 else t for t in tensors]
    views[0] = torch.stack([tensors[0]] * 2, -1)[..., 0]  # last axis not dense
    assert_equal(results(gru, views), results(gru_reference, tensors), "views")
    x = tensors[0].requires_grad_()
    grads = [torch.autograd.grad(f(*tensors)[0].sum(), x)[0] for f in (gru, gru_reference)]
    torch.testing.assert_close(*grads, rtol=1e-12, atol=1e-12)


def test_only_some_gradients() -> None:
    tensors = make(2, 4, 3, 5)
    tensors[3].requires_grad_()
    for pick in (0, 1):
        grads = [torch.autograd.grad(f(*tensors)[pick].sum(), tensors[3])[0] for f in (gru, gru_reference)]
        torch.testing.assert_close(*grads, rtol=1e-12, atol=1e-12)


@needs_kernels
@pytest.mark.parametrize("isa", ISAS)
def test_extreme_values(isa: str) -> None:
    """Saturated gates are exact, tiny ones keep their digits, NaN stays NaN."""
    KERNELS.set_isa(isa)
    for dtype, tolerance in ((torch.float32, 4e-7), (torch.float64, 2e-15)):
        values = torch.cat([torch.logspace(-30, 3, 400), torch.tensor([float("nan")])]).double()
        values = torch.cat([values, -values])
        x = torch.zeros(len(values), 1, 3, dtype=torch.float64)
        x[:, 0, 2] = values
        x[:, 0, 1] = -1000.0  # z = 0: the output is tanh of the last
        ones = torch.eye(3, dtype=dtype)
        zeros = torch.zeros(3, 1, dtype=dtype)
        output = gru(x.to(dtype), torch.zeros(len(values), 1, dtype=dtype), ones, zeros)[0].flatten().double()
        expected = torch.tanh(values.to(dtype).double())
        torch.testing.assert_close(output, expected, rtol=tolerance, atol=0.0, equal_nan=True)


@needs_kernels
def test_no_gradient_saves_nothing() -> None:
    tensors = make(2, 4, 3, 5)
    assert torch.ops.synvolution.gru(*tensors, None, True, False)[2].numel() == 0
    assert torch.ops.synvolution.gru(*tensors, None, True, True)[2].shape == (2, 4, 20)


def test_empty_batch() -> None:
    output, h_n, *grads = results(gru, make(0, 4, 3, 5))
    assert output.shape == (0, 4, 5)
    assert h_n.shape == (0, 5)
    assert all(not grad.any() for grad in grads)


def test_gradcheck() -> None:
    tensors = [t.requires_grad_() for t in make(3, 4, 2, 3)]
    mask = padding_mask(3, 4, "holes")
    torch.autograd.gradcheck(gru, tensors)
    torch.autograd.gradcheck(partial(gru, mask=mask), tensors)


@needs_kernels
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("batch_first", [True, False])
def test_opcheck(masked: bool, batch_first: bool) -> None:
    torch.use_deterministic_algorithms(False)
    tensors = [t.requires_grad_() for t in make(3, 5, 2, 4, batch_first)]
    mask = padding_mask(3, 5, "right") if masked else None
    torch.library.opcheck(torch.ops.synvolution.gru.default, (*tensors, mask, batch_first, True))
    with torch.no_grad():
        output, h_n, gates = torch.ops.synvolution.gru(*tensors, mask, batch_first, True)
    x, h0, w_ih, w_hh = (t.detach() for t in tensors[:4])
    for want_x in (True, False):
        args = (torch.ones_like(output), torch.ones_like(h_n), x, h0, output, gates, w_ih, w_hh, mask)
        torch.library.opcheck(torch.ops.synvolution.gru_backward.default, (*args, batch_first, want_x))


@needs_kernels
def test_second_derivative_is_refused() -> None:
    tensors = [t.requires_grad_() for t in make(2, 3, 2, 2)]
    (grad,) = torch.autograd.grad(gru(*tensors)[0].square().sum(), tensors[0], create_graph=True)
    with pytest.raises(RuntimeError, match=r"torch\.nn\.GRU"):
        grad.sum().backward()


@needs_kernels
def test_vmap_is_refused() -> None:
    tensors = make(2, 3, 2, 2)
    with pytest.raises(RuntimeError, match=r"torch\.nn\.GRU"):
        torch.vmap(lambda x: gru(x, *tensors[1:])[0])(tensors[0][None])


@pytest.mark.parametrize(
    ("index", "change", "error", "message"),
    [
        (0, lambda t: t[0], ValueError, "three axes"),
        (0, lambda t: t[:, :0], ValueError, "at least one step"),
        (0, lambda t: t.half(), TypeError, "float16"),
        (0, lambda t: t.float(), TypeError, "h0 of type torch.float64"),
        (1, lambda t: t[:1], ValueError, r"h0 of shape \(1, 5\): expected \(2, 5\)"),
        (2, lambda t: t[:, :1], ValueError, "w_ih of shape"),
        (3, lambda t: t[:3], ValueError, "w_hh of shape"),
        (4, lambda t: t[:3], ValueError, "b_ih of shape"),
        (5, lambda t: t.to("meta"), ValueError, "b_hh on meta"),
        (6, lambda t: t[:, :1], ValueError, "mask of shape"),
        (6, lambda t: t.long(), TypeError, "mask of type torch.int64"),
    ],
)
def test_refuses(index: int, change: Callable, error: type[Exception], message: str) -> None:
    arguments = [*make(2, 4, 3, 5), torch.ones(2, 4, dtype=torch.bool)]
    arguments[index] = change(arguments[index])
    with pytest.raises(error, match=message):
        gru(*arguments)


@needs_kernels
def test_one_openmp_library() -> None:
    """The kernels share torch's OpenMP library, and so its threads."""
    try:
        with open("/proc/self/maps") as maps:
            libraries = {line.split()[-1] for line in maps if "libgomp" in line}
    except OSError:
        pytest.skip("no /proc/self/maps on this system")
    assert len(libraries) <= 1, libraries


@needs_kernels
def test_instruction_sets() -> None:
    assert KERNELS.isa() == ISAS[0]
    assert ISAS[-1] == "plain"
    with pytest.raises(ValueError, match="supported_isas"):
        KERNELS.set_isa("avx1024")
