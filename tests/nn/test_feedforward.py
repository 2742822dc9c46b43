"""Feed-forward networks: formulas, sizes, dropout."""

from __future__ import annotations

import pytest
import torch

from synvolution.nn import FFN, GFFN
from tests.oracles import assert_near


@pytest.mark.parametrize("bias", [True, False])
def test_gffn_formula(bias: bool) -> None:
    layer, z = GFFN(4, 10, bias=bias).double(), torch.randn(3, 5, 2, 4, dtype=torch.float64)
    real = z[..., 0, :] @ layer.real.weight.T + (layer.real.bias if bias else 0)
    imaginary = z[..., 1, :] @ layer.imaginary.weight.T + (layer.imaginary.bias if bias else 0)
    hidden = torch.log1p(torch.exp(real)) * torch.tanh(imaginary)
    assert_near(layer(z), hidden @ layer.out.weight.T + (layer.out.bias if bias else 0))
    assert sum(p.numel() for p in layer.parameters()) == 3 * 40 + (24 if bias else 0)


def test_ffn_formula() -> None:
    layer, x = FFN(4, 10).double(), torch.randn(3, 5, 4, dtype=torch.float64)
    hidden = x @ layer.first.weight.T + layer.first.bias
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
    assert_near(layer(x), hidden @ layer.out.weight.T + layer.out.bias)


def test_dropout_acts_in_training_alone() -> None:
    for layer, x in ((GFFN(4, 10, dropout=0.5), torch.randn(3, 2, 4)), (FFN(4, 10, dropout=0.5), torch.randn(3, 4))):
        assert not torch.equal(layer(x), layer(x))
        layer.eval()
        assert torch.equal(layer(x), layer(x))


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="dim = 4, hidden = 0"):
        GFFN(4, 0)
    with pytest.raises(ValueError, match="dim = 0, hidden = 3"):
        FFN(0, 3)
    with pytest.raises(ValueError, match=r"planar \(..., 2, D\) with D = 4"):
        GFFN(4, 8)(torch.zeros(3, 4))
    with pytest.raises(ValueError, match=r"expected \(..., D\) with D = 4"):
        FFN(4, 8)(torch.zeros(3, 5))
