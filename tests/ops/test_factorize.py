"""Factorisation is exact with ⌊N/2⌋ orders, and fewer cannot do: the dimension count, measured."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import synvolution as sv
from synvolution.ops.factorize import factorize_unitary, lq
from tests.oracles import assert_near, dense_dhhp


def random_unitary(*shape: int, dtype: torch.dtype = torch.complex128) -> Tensor:
    return torch.linalg.qr(torch.randn(*shape, dtype=dtype)).Q


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 16, 33, 100])
def test_any_unitary_matrix(n: int) -> None:
    u = random_unitary(n, n)
    op = sv.DHHP.from_unitary(u)
    assert op.orders == max(1, n // 2)
    assert_near(op.dense(), u, 1e-10)


def test_batches_and_real_and_float32() -> None:
    u = random_unitary(2, 3, 6, 6)
    assert_near(sv.DHHP.from_unitary(u).dense(), u)
    real = random_unitary(6, 6, dtype=torch.float64)
    assert_near(sv.DHHP.from_unitary(real).dense(), real.to(torch.complex128))
    single = random_unitary(20, 20, dtype=torch.complex64)
    op = sv.DHHP.from_unitary(single)
    assert op.dtype == torch.complex64
    assert_near(op.dense(), single)


@pytest.mark.parametrize("n", [2, 5, 6])
def test_special_unitary_matrices(n: int) -> None:
    """Zeros where the elimination divides: permutations, reflections, diagonals, the identity."""
    eye = torch.eye(n, dtype=torch.complex128)
    for u in (eye, -eye, 1j * eye, eye.flip(0), eye.roll(1, 0), eye[torch.randperm(n)]):
        assert_near(sv.DHHP.from_unitary(u).dense(), u)
    lower, upper, diagonal = factorize_unitary(eye)
    assert lower.abs().max() == 0
    assert upper.abs().max() == 0
    assert diagonal.abs().max() == 0


def test_inverse_of_dhhp_refactorises() -> None:
    op = sv.DHHP.random(9, orders=3, dtype=torch.float64)
    assert_near(sv.DHHP.from_unitary(op.H.dense()).dense(), op.dense().mH)


def jacobian_rank(n: int, orders: int) -> int:
    lower, upper, diagonal = (
        torch.randn(s, dtype=torch.float64) for s in ((orders, n - 1, 3), (orders, n - 1, 3), (n,))
    )

    def entries(*parameters: Tensor) -> Tensor:
        return torch.view_as_real(dense_dhhp(*parameters)).reshape(-1)

    columns = torch.autograd.functional.jacobian(entries, (lower, upper, diagonal), vectorize=True)
    matrix = torch.cat([c.reshape(2 * n * n, -1) for c in columns], 1)
    return int(torch.linalg.matrix_rank(matrix, rtol=1e-9))


@pytest.mark.parametrize(
    ("n", "orders"),
    [(1, 1), (2, 1), (3, 1), (4, 1), (4, 2), (5, 1), (5, 2), (5, 3), (8, 1), (8, 2), (8, 3), (8, 4), (8, 5)],
)
def test_dimension_of_order_l(n: int, orders: int) -> None:
    """N + 2 L (2 N − 2 L − 1) up to ⌊N/2⌋ orders, then N²: the paper's ⌈N/4⌉ cannot be enough."""
    reach = min(orders, n // 2)
    assert jacobian_rank(n, orders) == n + 2 * reach * (2 * n - 2 * reach - 1)


def test_the_papers_number_of_orders_is_too_small() -> None:
    assert [jacobian_rank(8, orders) for orders in (2, 3, 4)] == [52, 62, 64]


@pytest.mark.parametrize("orders", [1, 2, 3])
def test_off_diagonal_blocks_have_rank_at_most_l(orders: int) -> None:
    """The order-L DHHP matrices are the unitary matrices whose blocks beside the diagonal have rank ≤ L."""
    n = 10
    matrix = sv.DHHP.random(n, orders=orders, dtype=torch.float64).dense()
    for i in range(1, n):
        expected = min(orders, i, n - i)
        assert int(torch.linalg.matrix_rank(matrix[:i, i:], rtol=1e-10)) == expected
        assert int(torch.linalg.matrix_rank(matrix[i:, :i], rtol=1e-10)) == expected


def test_fewer_orders_come_back_with_identity_factors() -> None:
    """An order-1 matrix of size 8 needs its last order only; the other three come out as the identity."""
    op = sv.DHHP.random(8, dtype=torch.float64)
    lower, upper, _ = factorize_unitary(op.dense())
    assert torch.sin(lower[:-1, :, 2] / 2).abs().max() < 1e-10
    assert torch.sin(upper[:-1, :, 2] / 2).abs().max() < 1e-10


def test_lq() -> None:
    for matrix in (torch.randn(2, 6, 6, dtype=torch.complex128), torch.zeros(3, 3), torch.ones(4, 4)):
        triangular, unitary = lq(matrix)
        assert triangular.triu(1).abs().max() == 0
        assert_near(triangular @ unitary, matrix.to(unitary.dtype))
        assert_near(unitary.mH @ unitary, torch.eye(matrix.shape[-1], dtype=unitary.dtype).expand_as(unitary))


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.float64, torch.complex128])
def test_lq_of_one_column_many_times(dtype: torch.dtype) -> None:
    """What is left after the first column is rounding, and rounding of rounding, down to the smallest numbers."""
    for n in range(1, 45):
        matrix = torch.ones(n, n, dtype=dtype) * 1e-20
        triangular, unitary = lq(matrix)
        assert_near(triangular @ unitary * 1e20, matrix.to(unitary.dtype) * 1e20)
        assert_near(unitary.mH @ unitary, torch.eye(n, dtype=unitary.dtype))
