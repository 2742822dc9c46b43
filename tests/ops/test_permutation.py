"""Permutations, fixed and learned."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import linear_sum_assignment

import synvolution as sv
from synvolution.ops import bit_reversal, block_transpose, gumbel_sinkhorn, hard_permutation
from tests.oracles import assert_near


def test_block_transpose_is_the_reshape_of_algorithm_2() -> None:
    x = torch.randn(2, 12, 3)
    expected = x.reshape(2, 12 // 4, 4, 3).transpose(1, 2).reshape(2, 12, 3)
    assert torch.equal(x[:, block_transpose(12, 4)], expected)
    back = expected.reshape(2, 4, 12 // 4, 3).transpose(1, 2).reshape(2, 12, 3)
    assert torch.equal(back, x)


def test_bit_reversal_is_an_involution() -> None:
    for n in (1, 2, 16, 64):
        index = bit_reversal(n)
        assert torch.equal(index[index], torch.arange(n))


@pytest.mark.parametrize("n", [1, 2, 3, 10, 40])
def test_hard_permutation_equals_scipy(n: int) -> None:
    logits = torch.randn(3, n, n, dtype=torch.float64)
    index = hard_permutation(logits)
    for scores, rows in zip(logits, index, strict=True):
        _, columns = linear_sum_assignment(scores.numpy(), maximize=True)
        assert rows.tolist() == columns.tolist()
    ties = torch.zeros(n, n)
    assert sorted(hard_permutation(ties).tolist()) == list(range(n))


def test_sinkhorn_is_doubly_stochastic_and_tends_to_the_hard_permutation() -> None:
    logits = torch.randn(2, 6, 6, dtype=torch.float64)
    soft = gumbel_sinkhorn(logits, iterations=200)
    assert_near(soft.sum(-1), torch.ones(2, 6, dtype=torch.float64), 1e-6)
    assert_near(soft.sum(-2), torch.ones(2, 6, dtype=torch.float64))
    clear = 2 * torch.eye(6, dtype=torch.float64)[torch.randperm(6)] + 0.3 * logits
    cold = gumbel_sinkhorn(clear, temperature=0.05, iterations=200, noise=0.0)
    assert_near(cold, torch.eye(6, dtype=torch.float64)[hard_permutation(clear)], 1e-3)


def test_learned_permutation_is_learned() -> None:
    """Gradient descent finds the permutation hidden in input–output pairs, and evaluation gives it exactly."""
    n, hidden = 6, torch.tensor([3, 0, 5, 1, 4, 2])
    x = torch.randn(64, n)
    module = sv.LearnedPermutation(n, temperature=0.3)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
    for _ in range(200):
        loss = (x @ module()[0].T - x[:, hidden]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert module.eval()()[0].tolist() == hidden.tolist()


def test_learned_permutation_fits_both_operators() -> None:
    module = sv.LearnedPermutation(6, orders=2)
    v, phase = torch.randn(2, 6, 2, 4), torch.randn(2, 6)
    lower, upper = torch.randn(2, 2, 6 - 1, 3), torch.randn(2, 2, 6 - 1, 3)
    sv.synvolve(v, lower, upper, phase, permutation=module()).sum().backward()
    assert module.logits.grad is not None
    assert module.logits.grad.abs().sum() > 0
    module.eval()
    out = sv.synvolve(v, lower, upper, phase, permutation=module())
    assert_near(out.norm(), v.norm())
    matrix = sv.DHHP(lower, upper, permutation=module()).dense()
    assert_near(matrix.mH @ matrix, torch.eye(6, dtype=matrix.dtype).expand(2, 6, 6))
    assert "n=6" in repr(module)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="block width 4 does not divide 6"):
        block_transpose(6, 4)
    with pytest.raises(ValueError, match="power of two, 6"):
        bit_reversal(6)
    with pytest.raises(ValueError, match=r"expected \(..., N, N\)"):
        gumbel_sinkhorn(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="temperature is 0"):
        gumbel_sinkhorn(torch.zeros(2, 2), temperature=0)
    with pytest.raises(ValueError, match=r"expected \(..., N, N\)"):
        hard_permutation(torch.zeros(2, 3))
    assert hard_permutation(torch.zeros(0, 3, 3)).shape == (0, 3)
    with pytest.raises(ValueError, match="NaN"):
        hard_permutation(torch.full((2, 2), torch.nan))
    with pytest.raises(ValueError, match="n = 0"):
        sv.LearnedPermutation(0)
