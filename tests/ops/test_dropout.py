"""Dropout: the generator's known answers, kernels against the definition, statistics, and where the seed comes from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from synvolution.nn.dropout import Dropout
from synvolution.ops import _cpu
from synvolution.ops.dropout import dropout, plain_dropout, threefry
from synvolution.ops.gate import gate
from tests.oracles import assert_near

KERNELS = _cpu.kernels
ISAS = KERNELS.supported_isas() if KERNELS is not None else []
needs_kernels = pytest.mark.skipif(KERNELS is None, reason="the kernels are not built")


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    if KERNELS is not None:
        KERNELS.set_isa(ISAS[0])


def kept(count: int, seed: int, rate: float = 0.5) -> Tensor:
    """1 where an element is kept, float64."""
    ones = torch.ones(count, dtype=torch.float64)
    return (torch.ops.synvolution.dropout(ones, torch.tensor(seed), rate) > 0).double()


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [  # of Random123's kat_vectors
        ("00000000 " * 4, "00000000 " * 4, "531c7e4f 39491ee5 2c855a92 3d6abf9a"),
        ("ffffffff " * 4, "ffffffff " * 4, "c4189358 1c9cc83a d5881c67 6a0a89e0"),
        (
            "243f6a88 85a308d3 13198a2e 03707344",
            "a4093822 299f31d0 082efa98 ec4e6c89",
            "4aa71d8f 734738c2 431fc6a8 ae6debf1",
        ),
    ],
)
def test_threefry_known_answers(counter: str, key: str, answer: str) -> None:
    def words(text: str) -> tuple[Tensor, ...]:
        return tuple(torch.tensor(int(word, 16)) for word in text.split())

    assert [int(w) for w in threefry(words(counter), words(key))] == [int(w) for w in words(answer)]


@needs_kernels
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (63,), (64,), (65,), (5, 1000), (3, 11, 3000)])
def test_kernels_equal_the_definition(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=torch.float64)
    for seed, rate in ((0, 0.1), (2**63 - 2, 0.5), (12345678901234, 0.999), (7, 1.0)):
        expected = plain_dropout(x, torch.tensor(seed), rate)
        for isa in ISAS:
            KERNELS.set_isa(isa)
            for threads in (1, 3):
                torch.set_num_threads(threads)
                for dtype in (torch.float64, torch.float32):
                    found = torch.ops.synvolution.dropout(x.to(dtype), torch.tensor(seed), rate)
                    assert_near(found, expected.to(dtype), 1e-6 if dtype == torch.float32 else 1e-15)
                    assert torch.equal(found == 0, expected == 0)


@needs_kernels
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_rate_and_mean(rate: float) -> None:
    """Within four standard deviations, of all elements and of each place in a block of the generator."""
    count = 64 * 20_000
    found = kept(count, 1, rate)
    deviation = (rate * (1 - rate)) ** 0.5
    assert abs(found.mean().item() - (1 - rate)) < 4 * deviation / count**0.5
    places = found.reshape(-1, 64).mean(0)
    assert (places - (1 - rate)).abs().max().item() < 5 * deviation / 20_000**0.5
    assert places.std().item() > 0.5 * deviation / 20_000**0.5  # not more even than chance either


def correlation(a: Tensor, b: Tensor) -> float:
    """In standard deviations of independent numbers."""
    a, b = a - a.mean(), b - b.mean()
    return abs((a * b).sum().item()) / (a.norm() * b.norm()).item() * len(a) ** 0.5


@needs_kernels
def test_elements_are_independent() -> None:
    """Neighbours, the words and counters of a block, neighbouring blocks, rows of usual widths."""
    found = kept(2**20, 2)
    for distance in (1, 2, 4, 8, 15, 16, 17, 32, 48, 63, 64, 65, 128, 256, 1024, 4096, 2**16):
        assert correlation(found[:-distance], found[distance:]) < 4.5, distance
    for first, second in ((1, 2), (16, 32), (64, 128)):  # and of three
        parity = found[second:] == found[first : len(found) - second + first]
        assert correlation(parity.double(), found[:-second]) < 4.5


@needs_kernels
def test_calls_are_independent() -> None:
    """Seeds next to each other, those that differ in one bit, and those that torch draws."""
    count = 2**18
    found = kept(count, 5)
    for seed in (4, 6, 5 + 2**20, 5 + 2**31, 5 + 2**32, 5 + 2**62):
        other = kept(count, seed)
        for shift in (0, 1, 16, 64):
            assert correlation(found[: count - shift], other[shift:]) < 4.5
    torch.manual_seed(0)
    drawn = [(dropout(torch.ones(count), 0.5) > 0).double() for _ in range(4)]
    assert max(correlation(a, b) for i, a in enumerate(drawn) for b in drawn[:i]) < 4.5


@needs_kernels
def test_runs_are_those_of_chance() -> None:
    """Bytes of eight neighbours are even: chi-square of 255 degrees of freedom, mean 255, deviation 22.6."""
    bits = kept(2**21, 3).reshape(-1, 8)
    codes = (bits * 2.0 ** torch.arange(8)).sum(1).long()
    counts = torch.bincount(codes, minlength=256).double()
    expected = len(codes) / 256
    assert 165 < ((counts - expected) ** 2 / expected).sum().item() < 365


def test_torch_decides() -> None:
    """manual_seed, the random state, evaluation and rate 0."""
    layer, x = Dropout(0.3), torch.randn(50, 60)
    torch.manual_seed(1)
    first, second = layer(x), layer(x)
    assert not torch.equal(first, second)
    torch.manual_seed(1)
    assert torch.equal(layer(x), first)
    state = torch.get_rng_state()
    third = layer(x)
    torch.set_rng_state(state)
    assert torch.equal(layer(x), third)
    assert layer.eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_the_backward_drops_the_same() -> None:
    x = torch.randn(70, 31, requires_grad=True)
    y = dropout(x, 0.4)
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(grad == 0, y == 0)
    assert_near(y, x * grad)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_drops_the_same(reentrant: bool) -> None:
    a = torch.randn(40, 30, requires_grad=True)
    found = []
    for kept in (True, False):
        torch.manual_seed(5)
        y = gate(a, a, 0.3) if kept else checkpoint(lambda t: gate(t, t, 0.3), a, use_reentrant=reentrant)
        found.append((y, *torch.autograd.grad(y.square().sum(), a)) if not reentrant else (y, _gradient(y, a)))
    for kept_tensors, made_again in zip(*found, strict=True):
        assert torch.equal(kept_tensors, made_again)


def _gradient(y: Tensor, a: Tensor) -> Tensor:
    a.grad = None
    y.square().sum().backward()
    assert a.grad is not None
    return a.grad.clone()


def test_half_precision_is_torchs_own() -> None:
    assert dropout(torch.ones(1000, dtype=torch.bfloat16), 0.5).dtype == torch.bfloat16
