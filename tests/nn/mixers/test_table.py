"""The table of mixers: every entry builds, says what it returns, and fits its block."""

from __future__ import annotations

import pytest
import torch

from synvolution.nn import MIXERS, ConverterBlock, RealBlock, block_around, build_mixer

PLANAR = {"kernelution", "synvolution", "none"}


@pytest.mark.parametrize("name", MIXERS)
def test_shape_and_block(name: str) -> None:
    mixer = build_mixer(name, 16, num_heads=2, max_length=20)
    x, mask = torch.randn(3, 13, 16), torch.arange(13) < torch.tensor([[13], [5], [1]])
    planar = getattr(mixer, "planar", False)
    assert planar == (name in PLANAR)
    assert mixer(x, mask).shape == ((3, 13, 2, 16) if planar else (3, 13, 16))
    block = block_around(mixer, 16, 32)
    assert isinstance(block, ConverterBlock if planar else RealBlock)
    assert block(x, mask).shape == x.shape


def test_learned_permutation_takes_the_longest_sequence() -> None:
    mixer = build_mixer("kernelution", 8, max_length=11, permutation="learned")
    assert mixer(torch.randn(2, 11, 8)).shape == (2, 11, 2, 8)


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'kernelution'"):
        build_mixer("kernalution", 8)
    with pytest.raises(ValueError, match="choose one of kernelution"):
        build_mixer("xyz", 8)
