"""Permutations of a layer: known ones, any length, any padding."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from synvolution.nn import RowOrder
from synvolution.ops import bit_reversal, block_transpose, hard_permutation
from tests.oracles import assert_near


def full(n: int) -> Tensor:
    return torch.ones(1, n, dtype=torch.bool)


def test_equal_the_known_permutations() -> None:
    for n in (1, 2, 4, 8, 64, 1024):
        assert torch.equal(RowOrder("bit_reversal")(full(n))[0, 0], bit_reversal(n))
    for n, width in ((1, 1), (4, 2), (6, 3), (9, 3), (100, 10), (10_000, 100)):
        assert torch.equal(RowOrder("block")(full(n))[0, 0], block_transpose(n, width))
    rows = torch.stack([torch.randperm(11) for _ in range(2)])
    assert torch.equal(RowOrder(rows, orders=2)(full(11))[0], rows)


@pytest.mark.parametrize("kind", ["block", "bit_reversal", "given", "learned"])
@pytest.mark.parametrize("side", ["left", "right", "holes"])
def test_each_sequence_is_permuted_as_alone(kind: str, side: str) -> None:
    n, orders = 13, 2
    given = torch.stack([torch.randperm(n) for _ in range(orders)])
    order = RowOrder(given if kind == "given" else kind, orders, length=n if kind == "learned" else None).eval()
    places = torch.arange(n)
    if side == "holes":
        mask = torch.rand(6, n) < 0.6
    else:
        mask = torch.stack([places < k if side == "right" else places >= n - k for k in (13, 1, 2, 6, 11, 12)])
    rows = order(mask)
    for i in range(6):
        slots = mask[i].nonzero()[:, 0]
        alone = order(full(len(slots)))[0]
        for own, expected in zip(rows[i], alone, strict=True):
            assert torch.equal(own.sort().values, places)
            assert torch.equal(own[~mask[i]], places[~mask[i]])
            assert torch.equal(own[slots], slots[expected])


def test_learned_in_training_is_sinkhorn_of_the_own_part() -> None:
    order = RowOrder("learned", 2, length=6)
    order.learned.noise = 0.0
    torch.nn.init.normal_(order.learned.logits)
    mask = torch.tensor([[False, True, True, True, False, False]])
    soft = order(mask)
    assert soft.shape == (1, 2, 6, 6)
    assert_near(soft[0, :, 1:4, 1:4], order(full(3))[0])
    assert_near(soft.sum(-2), torch.ones(1, 2, 6))
    assert torch.equal(soft[0, 0, 4:, 4:], torch.eye(2))
    soft.square().sum().backward()
    gradient = order.learned.logits.grad
    assert gradient is not None
    assert bool((gradient[:, :3, :3] != 0).all())
    assert gradient[:, 3:].abs().max() == 0
    order.eval()
    assert torch.equal(order(full(5))[0], hard_permutation(order.learned.logits[:, :5, :5]))


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="unknown permutation 'random': choose None, one of block, bit_reversal"):
        RowOrder("random")
    with pytest.raises(ValueError, match="give length="):
        RowOrder("learned")
    with pytest.raises(ValueError, match="length = 4 is for"):
        RowOrder("block", length=4)
    with pytest.raises(ValueError, match="not a permutation"):
        RowOrder(torch.tensor([0, 0, 1]))
    with pytest.raises(ValueError, match=r"shape \(3, 2\): expected \(N,\) or \(L, N\) with L = 2"):
        RowOrder(torch.tensor([[0, 1]] * 3), orders=2)
    with pytest.raises(TypeError, match="permutation is a list"):
        RowOrder([0, 1])  # type: ignore[arg-type]
    for order in (RowOrder(torch.arange(4)), RowOrder("learned", length=4)):
        with pytest.raises(ValueError, match="a sequence of 5 positions, the permutation is for 4"):
            order(full(5))
        assert order(torch.tensor([[True, False, True, True, False]])).shape[-1] == 5
