"""Position embeddings: formulas, length, errors. Padding is in test_layers.py."""

from __future__ import annotations

import math

import pytest
import torch

from synvolution.nn import POSITIONS, LearnedPosition, NoPosition, RecurrentPosition, SinusoidalPosition
from tests.oracles import assert_near


def test_table() -> None:
    assert list(POSITIONS) == ["rpe", "ape", "spe", "none"]


@pytest.mark.parametrize("dim", [1, 5, 8])
def test_sinusoidal_formula(dim: int) -> None:
    found = SinusoidalPosition(dim)(torch.zeros(1, 50, dim, dtype=torch.float64))[0]
    for n in (0, 1, 49):
        for i in range(dim):
            angle = n / 10_000 ** ((i - i % 2) / dim)
            assert found[n, i].item() == pytest.approx(math.cos(angle) if i % 2 else math.sin(angle), abs=1e-12)


def test_sinusoidal_stays_exact_at_a_million() -> None:
    found = SinusoidalPosition(2)(torch.zeros(1, 1_000_001, 2))[0, -1]
    assert_near(found, torch.tensor([math.sin(1e6), math.cos(1e6)]), 1e-6)


def test_learned() -> None:
    layer, x = LearnedPosition(3, max_length=6), torch.randn(2, 4, 3)
    assert_near(layer(x), x + layer.weight[:4])
    assert 0.005 < layer.weight.std().item() < 0.05


def test_learned_refuses_longer_sequences() -> None:
    layer = LearnedPosition(3, max_length=4)
    with pytest.raises(ValueError, match=r"sequence of 7 positions, .* has 4: raise max_length"):
        layer(torch.zeros(2, 7, 3))
    mask = torch.arange(7) < torch.tensor([[2], [5]])
    with pytest.raises(ValueError, match="sequence of 5 positions"):
        layer(torch.zeros(2, 7, 3), mask)
    assert layer(torch.zeros(2, 7, 3), torch.arange(7).expand(2, 7) >= 3).shape == (2, 7, 3)  # four real ones each


def test_recurrent_is_a_two_layer_gru() -> None:
    layer, x = RecurrentPosition(4), torch.randn(2, 6, 4)
    theirs = torch.nn.GRU(4, 4, num_layers=2, batch_first=True)
    theirs.load_state_dict(layer.gru.state_dict())
    assert_near(layer(x), x + theirs(x)[0])


def test_none_changes_nothing() -> None:
    x = torch.randn(2, 6, 4)
    assert NoPosition(4)(x) is x


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="dim is 0"):
        SinusoidalPosition(0)
    with pytest.raises(ValueError, match="dim = 4, max_length = 0"):
        LearnedPosition(4, max_length=0)
