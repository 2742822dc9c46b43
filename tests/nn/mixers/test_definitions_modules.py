"""The mixers that are no attention rule, and the two adapters, against their papers' definitions."""

from __future__ import annotations

import cmath
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from synvolution.nn.mixers._attention import split_heads
from synvolution.nn.mixers.fnet import FourierMixing
from synvolution.nn.mixers.linformer import LinformerAttention
from synvolution.nn.mixers.longformer import LongformerAttention
from synvolution.nn.mixers.paramixer import ChordMixing
from synvolution.nn.mixers.s4d import DiagonalStateSpace
from synvolution.nn.mixers.synthesizer import DenseSynthesizer


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def merged(t: Tensor) -> Tensor:
    return t.transpose(1, 2).flatten(-2)


def test_fnet() -> None:
    x = torch.randn(2, 5, 4, dtype=torch.float64)

    def fourier(n: int) -> Tensor:
        rows = [[cmath.exp(-2j * math.pi * i * j / n) for j in range(n)] for i in range(n)]
        return torch.tensor(rows, dtype=torch.complex128)

    close(FourierMixing(4)(x), (fourier(5) @ x.to(torch.complex128) @ fourier(4)).real)


def test_synthesizer() -> None:
    module, x = DenseSynthesizer(8, num_heads=2, max_length=9).double(), torch.randn(2, 7, 8, dtype=torch.float64)
    expected = []
    for h in range(2):
        part = slice(4 * h, 4 * h + 4)
        hidden = module.hidden(x)[..., part].relu()
        assert module.offsets is not None
        weights = hidden @ module.weights[h, :, :7] + module.offsets[h, :, :7]
        expected.append(weights.softmax(-1) @ module.value(x)[..., part])
    close(module(x), module.out(torch.cat(expected, -1)))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 13])
def test_paramixer(n: int) -> None:
    """The product of dense chord matrices."""
    module, x = ChordMixing(6, max_length=13).double(), torch.randn(2, n, 6, dtype=torch.float64)
    for b in range(2):
        mixed = module.value(x[b])
        for network in module.links:
            factor, weights = torch.zeros(n, n, dtype=torch.float64), network(x[b])
            for i in range(n):
                for link, step in enumerate([0, 1, 2, 4, 8]):
                    factor[i, (i + step) % n] += weights[i, link]
            mixed = factor @ mixed
        close(module(x)[b], module.out(mixed))


def test_paramixer_connects_all_positions() -> None:
    """Every position reaches every other one: the product of factors is a full matrix."""
    module, x = ChordMixing(4, max_length=32).double(), torch.randn(1, 32, 4, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: module(x)[0].sum(-1), x)
    assert (jacobian.abs().sum(-1) > 0).all()


@pytest.mark.parametrize("n", [1, 2, 9, 16])
def test_s4d(n: int) -> None:
    """The recurrence h_i = e^{ΔA} h_{i−1} + (e^{ΔA} − 1)/A u_i read by C, forwards and backwards."""
    module, u = DiagonalStateSpace(3, states=4).double(), torch.randn(2, n, 3, dtype=torch.float64)
    poles = torch.complex(-module.log_decay.exp(), module.frequency)
    decay = (poles * module.log_step.exp()[:, None]).exp()
    drive = (decay - 1) / poles
    read = torch.view_as_complex(module.read)
    expected = module.skip * u
    for direction, steps in ((0, range(n)), (1, range(n - 1, -1, -1))):
        state = torch.zeros(2, 3, 4, dtype=torch.complex128)
        for i in steps:
            if direction == 1:  # from the next position on
                expected[:, i] += 2 * (read[1] * state).sum(-1).real
            state = decay * state + drive * u[:, i, :, None]
            if direction == 0:
                expected[:, i] += 2 * (read[0] * state).sum(-1).real
    value, gate = module.out(F.gelu(expected)).chunk(2, -1)
    close(module(u), value * gate.sigmoid())


def test_s4d_starts_as_its_paper_says() -> None:
    module = DiagonalStateSpace(3, states=4)
    close(module.log_decay.exp(), torch.full((3, 4), 0.5), 1e-6)
    close(module.frequency, math.pi * torch.arange(4.0).expand(3, 4), 1e-6)
    assert (module.log_step.exp() >= 1e-3).all()
    assert (module.log_step.exp() <= 1e-1).all()


def test_linformer() -> None:
    module, x = LinformerAttention(8, num_heads=2, max_length=9, projected=3).double(), torch.randn(2, 7, 8).double()
    inner = module.attention
    keys = inner.proj_k[:7].mT @ inner.to_k(x)
    values = inner.proj_v[:7].mT @ inner.to_v(x)
    q, k, v = (split_heads(t, 2) for t in (inner.to_q(x), keys, values))
    close(module(x), inner.to_out(merged((q @ k.mT / 2).softmax(-1) @ v)))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 13])
def test_longformer(n: int) -> None:
    """A window of 2 on either side and position 0, which itself attends to all, with its own projections."""
    module, x = LongformerAttention(8, num_heads=2, window=4), torch.randn(2, n, 8)
    inner, i = module.attention, torch.arange(n)

    def attend(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor) -> Tensor:
        q, k, v = (split_heads(t, 2) for t in (q, k, v))
        return merged((q @ k.mT / 2).masked_fill(~allowed, -torch.inf).softmax(-1) @ v)

    allowed = ((i[:, None] - i).abs() <= 2) | (i == 0)
    mixed = attend(inner.query(x), inner.key(x), inner.value(x), allowed)
    everything = torch.ones(n, n, dtype=torch.bool)
    overall = attend(inner.query_global(x), inner.key_global(x), inner.value_global(x), everything)
    close(module(x), module.out(torch.cat((overall[:, :1], mixed[:, 1:]), 1)), 1e-5)
