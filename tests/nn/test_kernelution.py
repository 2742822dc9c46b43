"""Synvolution and Kernelution: the paper's formulas against dense matrices, the digraph, reach, bad arguments."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import synvolution as sv
from synvolution.ops import bit_reversal
from tests.oracles import assert_near, dense_dhhp, to_complex, to_planar

D, N = 12, 8
X = torch.randn(3, N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
MASK = torch.arange(N) < torch.tensor([[N], [1], [5]])

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "heads": {"num_heads": 3, "reach": "spread"},
    "orders": {"orders": 2, "num_heads": 2},
    "bit reversal": {"permutation": "bit_reversal"},
    "block": {"permutation": "block", "orders": 2},
    "learned": {"permutation": "learned", "length": N, "num_heads": 2},
}
options = pytest.mark.parametrize("name", OPTIONS)


def digraph_convolution(shift_vectors: Tensor, response: Tensor, x: Tensor) -> Tensor:
    """DGConv(S, X) = U^{-1} [H(Λ) ⊙ (U X)] (eq. digraph_conv_eigenvalue), dense: U (N, N), H(Λ) (N,), X (N, D)."""
    return torch.linalg.solve(shift_vectors, response[:, None] * (shift_vectors @ x))


def values(layer: sv.Synvolution, x: Tensor) -> Tensor:
    """X W_V, planar."""
    projected: Tensor = layer.value(x)
    return torch.stack((projected[..., :D], projected[..., D:]), -2)


def test_generators_are_the_papers_formulas() -> None:
    """λ, angles and the rotation each belongs to, written out position by position for one head."""
    layer = sv.Kernelution(D, reach=0.7).double()
    found = layer.digraph(X)
    features = layer.eigenvalues(X)
    assert_near(found.eigenvalues, features.sum(-1) / D)
    assert found.eigenvalues.abs().max() <= 1
    lam, w = found.eigenvalues, layer.polynomial.weight
    assert_near(found.eigenphases, w[0] / 2 + w[1] * lam + w[2] * (2 * lam**2 - 1))
    raw = layer.angles(X)
    for j in range(N - 1):
        for chain, position, group in ((found.lower, j, 0), (found.upper, j + 1, 3)):
            unit = raw[:, position] / raw[:, position].norm(dim=-1, keepdim=True)
            means = [unit[:, 2 * g : 2 * g + 2].mean(-1) for g in range(group, group + 3)]  # D/6 = 2 features each
            expected = 2 * math.pi * torch.stack(means, -1)
            expected[:, 2] += 0.7
            assert_near(chain[:, 0, j], expected, 1e-7)  # 0.7 was rounded to float32


@options
def test_equals_dense_digraph_convolution(name: str) -> None:
    layer = sv.Kernelution(D, **OPTIONS[name]).double().eval()
    heads, width = layer.num_heads, D // layer.num_heads
    found = layer.digraph(X)
    lower, upper = (t.reshape(3, heads, -1, N - 1, 3) for t in (found.lower, found.upper))
    phase = found.eigenphases.reshape(3, heads, N)
    permutations = None
    if layer.row_order is not None:
        rows = layer.row_order(torch.ones(1, N, dtype=torch.bool))
        permutations = torch.eye(N, dtype=torch.float64)[rows].expand(3, layer.orders, N, N)
    out, v = layer(X), to_complex(values(layer, X))
    for b in range(3):
        for h in range(heads):
            part = slice(h * width, (h + 1) * width)
            matrices = None if permutations is None else permutations[b]
            phi = dense_dhhp(lower[b, h], upper[b, h], None, matrices)
            expected = digraph_convolution(phi, torch.exp(1j * phase[b, h]), v[b, :, part])
            assert_near(to_complex(out)[b, :, part], expected)


@options
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", [sv.Synvolution, sv.Kernelution])
def test_digraph_is_unitary_and_is_the_layer(kind: type[sv.Synvolution], masked: bool, name: str) -> None:
    layer = kind(D, **OPTIONS[name]).double().eval()
    mask = MASK if masked else None
    found = layer.digraph(X, mask)
    one = torch.eye(N, dtype=torch.complex128)
    assert_near(found.operator @ found.operator.mH, one.expand_as(found.operator))
    heads = layer.num_heads
    operator = found.operator.reshape(3, heads, N, N)
    v = to_complex(values(layer, X)).unflatten(-1, (heads, -1))
    mixed = torch.einsum("bhij,bjhd->bihd", operator, v).flatten(-2)
    assert_near(to_planar(mixed), layer(X, mask))
    phases = torch.linalg.eigvals(operator)
    assert_near(phases.abs(), torch.ones_like(phases.abs()))
    if masked:
        assert torch.equal(operator[1, :, 1:, 1:], one[1:, 1:].expand(heads, -1, -1))
        assert operator[2, :, :5, 5:].abs().max() == 0
    shapes = [t.shape for t in found]
    lead = (3,) if heads == 1 else (3, heads)
    assert shapes[:3] == [(*lead, N, N), (*lead, N), (*lead, N)]
    assert shapes[3:] == [(*lead, layer.orders, N - 1, 3)] * 2


def test_eigenvalues_of_the_digraph_are_the_eigenphases() -> None:
    found = sv.Kernelution(D).double().digraph(X)
    expected = torch.exp(1j * found.eigenphases)
    for matrix, own in zip(found.operator, expected, strict=True):
        distance = (torch.linalg.eigvals(matrix)[:, None] - own).abs()
        assert distance.min(0).values.max() < 1e-10
        assert distance.min(1).values.max() < 1e-10


def test_the_layer_keeps_the_norm_of_its_values() -> None:
    layer = sv.Kernelution(D, num_heads=4, reach="spread", orders=2).double()
    assert_near(layer(X).flatten(1).norm(dim=-1), values(layer, X).flatten(1).norm(dim=-1))


def test_bit_reversal_is_the_operators() -> None:
    torch.manual_seed(2)
    named = sv.Synvolution(D, permutation="bit_reversal")
    torch.manual_seed(2)
    given = sv.Synvolution(D, permutation=bit_reversal(N))
    assert torch.equal(named(X.float()), given(X.float()))


def test_reach_carries_far() -> None:
    """The weight of far positions grows with γ: nearly none at 0.3 rad, much of it at 2.9."""
    layer = sv.Synvolution(64, num_heads=4, reach="spread")
    assert layer.reach.tolist() == pytest.approx([0.3, 0.3 + 2.6 / 3, 0.3 + 5.2 / 3, 2.9])
    x = torch.randn(4, 100, 64)
    weights = layer.digraph(x).operator.abs().square()
    distance = (torch.arange(100)[:, None] - torch.arange(100)).abs()
    off = torch.where(distance > 0, weights, 0.0)
    mean = (off * distance).sum((0, 2, 3)) / off.sum((0, 2, 3))
    assert bool((mean[1:] > mean[:-1]).all())
    assert mean[3] > 5 * mean[0]


def test_reach_forms() -> None:
    assert sv.Synvolution(8, num_heads=2, reach=1).reach.tolist() == [1.0, 1.0]
    assert sv.Synvolution(8, num_heads=2, reach=(1.0, 2.0)).reach.tolist() == [1.0, 2.0]
    assert sv.Synvolution(8, reach="spread").reach.tolist() == pytest.approx([1.6])
    assert sv.Synvolution(8).reach.tolist() == [0.0]


def test_penalty() -> None:
    layer = sv.Kernelution(D, order=2)
    assert layer.penalty().item() == pytest.approx(math.pi * 5 * (2 / 3) ** 2)
    assert sv.Synvolution(D).penalty().item() == 0


def test_dropouts_act_in_training_alone() -> None:
    x = X.float()
    rates: list[dict[str, Any]] = [{f"{part}_dropout": 0.5} for part in ("value", "eigenvalue", "eigenvector")]
    for rate in rates:
        layer = sv.Kernelution(D, **rate)
        assert not torch.equal(layer(x), layer(x)), rate
        layer.eval()
        assert torch.equal(layer(x), layer(x)), rate


def test_no_parameter_has_the_size_of_batch_or_length() -> None:
    layer = sv.Kernelution(D, num_heads=2)
    before = {key: value.shape for key, value in layer.state_dict().items()}
    for batch, n in ((1, 1), (5, 17), (2, 301)):
        assert layer(torch.randn(batch, n, D)).shape == (batch, n, 2, D)
    assert {key: value.shape for key, value in layer.state_dict().items()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": 5}, "5 heads do not divide 12 features"),
        ({"num_heads": 0}, "0 heads do not divide"),
        ({"orders": 0}, "orders is 0"),
        ({"reach": "far"}, "reach is 'far': expected a number, 1 numbers, or 'spread'"),
        ({"reach": [0.1, 0.2]}, "reach has 2 values for 1 heads"),
        ({"angle_features": 0}, "angle_features is 0"),
        ({"permutation": "shuffle"}, "unknown permutation 'shuffle'"),
        ({"permutation": "learned"}, "give length="),
        ({"length": 8}, "length = 8 is for permutation='learned' alone"),
        ({"order": 0}, "nothing mixed"),
        ({"basis": "fourier"}, "unknown basis 'fourier'"),
        ({"damping": "hann"}, "unknown damping 'hann'"),
        ({"backend": "gpu"}, "unknown backend 'gpu'"),
    ],
)
def test_bad_settings(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sv.Kernelution(D, **arguments)


def test_bad_inputs() -> None:
    layer = sv.Kernelution(D)
    for shape in ((3, D), (2, 5, D + 1), (2, 0, D)):
        with pytest.raises(ValueError, match=r"expected \(B, N, D\) with N ≥ 1 and D = 12"):
            layer(torch.zeros(shape))
        with pytest.raises(ValueError, match=r"expected \(B, N, D\)"):
            layer.digraph(torch.zeros(shape))
    with pytest.raises(TypeError, match=r"mask is torch.int64: expected torch.bool"):
        layer(torch.zeros(2, 5, D), torch.ones(2, 5, dtype=torch.long))
    with pytest.raises(ValueError, match=r"mask has shape \(2, 4\): expected \(2, 5\)"):
        layer(torch.zeros(2, 5, D), torch.ones(2, 4, dtype=torch.bool))
