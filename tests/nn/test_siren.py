"""The generator: its formula, range and initial scale."""

from __future__ import annotations

import pytest
import torch

from synvolution.nn import SIREN
from tests.oracles import assert_near


def test_formula() -> None:
    siren, x = SIREN(5, 7, hidden=4).double(), torch.randn(3, 5, dtype=torch.float64)
    hidden = torch.sin(x @ siren.first.weight.T + siren.first.bias)
    hidden = siren.norm.scale * hidden / hidden.norm(dim=-1, keepdim=True)
    assert_near(siren(x), torch.sin(hidden @ siren.second.weight.T + siren.second.bias))


def test_range_and_dropout() -> None:
    siren, x = SIREN(16, 4, dropout=0.5), 100 * torch.randn(50, 16)
    assert siren(x).abs().max() <= 1
    assert not torch.equal(siren(x), siren(x))
    siren.eval()
    assert torch.equal(siren(x), siren(x))


@pytest.mark.parametrize("dim", [8, 64, 256])
@pytest.mark.parametrize("frequency", [1.0, 5.0])
def test_initial_arguments_of_the_sines_have_unit_variance(dim: int, frequency: float) -> None:
    torch.manual_seed(1)
    siren, x = SIREN(dim, 256, hidden=256, frequency=frequency), torch.randn(2000, dim)
    x = x * dim**0.5 / x.norm(dim=-1, keepdim=True)
    first = siren.first(x)
    second = siren.second(siren.norm(torch.sin(first)))
    assert first.std().item() == pytest.approx(frequency, rel=0.1)
    assert second.std().item() == pytest.approx(1.0, rel=0.1)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="dim = 4, hidden = 0, out = 2"):
        SIREN(4, 2, hidden=0)
    with pytest.raises(ValueError, match="frequency is 0"):
        SIREN(4, 2, frequency=0.0)
