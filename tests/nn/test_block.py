"""The blocks: formulas, ζ, control, penalties, learning."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import synvolution as sv
from synvolution.nn import ConverterBlock, NoMixer, RealBlock
from tests.oracles import assert_near, to_complex

X = torch.randn(2, 7, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def scaled(x: Tensor, scale: Tensor) -> Tensor:
    return scale * x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def test_converter_block_formula() -> None:
    block = ConverterBlock(6, 10, sv.Kernelution(6, reach=1.0), zeta=0.3).double()
    assert block.zeta.item() == pytest.approx(0.3)
    z = scaled(X + to_complex(block.mixer(X)), block.mixer_norm.scale)
    planar = torch.stack((z.real, z.imag), -2)
    zeta = block.zeta
    y = scaled(block.feedforward(planar) + zeta * z.real + (1 - zeta) * z.imag, block.feedforward_norm.scale)
    assert_near(block(X), y)


def test_zeta_stays_between_zero_and_one_and_learns() -> None:
    block = ConverterBlock(6, 10).double()
    block(X)[..., 0].sum().backward()
    assert block.zeta_logit.grad is not None
    assert block.zeta_logit.grad.abs() > 0
    for logit in (-50.0, 50.0):
        with torch.no_grad():
            block.zeta_logit.fill_(logit)
        assert 0 <= block.zeta.item() <= 1


def test_control_mixes_nothing_but_has_the_blocks_form() -> None:
    block = ConverterBlock(6, 10, NoMixer(6)).double()
    out = block(X)
    changed = X.clone()
    changed[:, 3] = 5.0
    again = block(changed)
    others = torch.arange(7) != 3
    assert torch.equal(out[:, others], again[:, others])
    assert not torch.equal(out[:, 3], again[:, 3])
    full = ConverterBlock(6, 10, sv.Kernelution(6, reach=1.0)).double()
    assert not torch.allclose(full(X)[:, others], full(changed)[:, others])


def test_default_mixer() -> None:
    assert isinstance(ConverterBlock(6, 10).mixer, sv.Kernelution)


def test_penalties() -> None:
    mixer = sv.Kernelution(6)
    assert torch.equal(ConverterBlock(6, 10, mixer).penalty(), mixer.penalty())
    for block in (ConverterBlock(6, 10, NoMixer(6)), ConverterBlock(6, 10, sv.Synvolution(6))):
        assert block.penalty().item() == 0
    assert RealBlock(6, 10, Same()).penalty().item() == 0


class Same(nn.Module):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return 2 * x


def test_real_block_formula() -> None:
    block = RealBlock(6, 10, Same()).double()
    z = scaled(3 * X, block.mixer_norm.scale)
    assert_near(block(X), scaled(z + block.feedforward(z), block.feedforward_norm.scale))


def test_a_block_learns_what_needs_mixing() -> None:
    """Tell at each position what the first token was: the control cannot, the mixer can."""
    tokens = torch.randint(0, 2, (64, 6))
    target = tokens[:, :1].expand(-1, 6).float()
    losses = {}
    for name, mixer in (("mixer", sv.Kernelution(16, num_heads=2, reach="spread")), ("control", NoMixer(16))):
        torch.manual_seed(0)
        model = nn.ModuleList((nn.Embedding(2, 16), ConverterBlock(16, 32, mixer), nn.Linear(16, 1)))
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        for _ in range(120):
            logits = model[2](model[1](model[0](tokens)))[..., 0]
            loss = nn.functional.binary_cross_entropy_with_logits(logits[:, :3], target[:, :3])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses[name] = loss.item()
    assert losses["control"] > 0.35  # the first of the three is known, the others are coins
    assert losses["mixer"] < 0.1


def test_bad_arguments() -> None:
    for zeta in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="zeta is"):
            ConverterBlock(6, 10, zeta=zeta)
    with pytest.raises(ValueError, match="dim is 0"):
        NoMixer(0)


class Shift(nn.Module):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return x.roll(1, 1)


@pytest.mark.parametrize("n", [1, 7, 50])
@pytest.mark.parametrize("block", [ConverterBlock(6, 20), RealBlock(6, 20, Shift())], ids=["converter", "real"])
def test_pieces_change_nothing(block: nn.Module, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, mask = torch.randn(3, n, 6), torch.arange(n) < torch.tensor([[n], [max(1, n // 2)], [1]])
    whole = block(x, mask).detach()
    monkeypatch.setattr("synvolution.nn.block.PIECE", 3 * 20 * 4)  # four rows
    with torch.no_grad():
        assert_near(block(x, mask), whole, 1e-6)
