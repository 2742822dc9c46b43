"""DHHP and LHHP as operators: against dense matrices, shapes, adjoints, special members."""

from __future__ import annotations

import math

import pytest
import scipy.fft
import scipy.linalg
import torch
from torch import Tensor

import synvolution as sv
from synvolution.ops import bit_reversal
from synvolution.ops.transforms import dct_matrix, dst_matrix
from tests.ops.test_synvolve import CASES, SIZES, as_matrices, permutation_of
from tests.oracles import assert_near, assert_same_gradients, dense_dhhp


def angles_and_phases(n: int, orders: int, batch: tuple[int, ...] = ()) -> list[Tensor]:
    shapes = (*batch, orders, n - 1, 3), (*batch, orders, n - 1, 3), (*batch, n)
    return [2 * math.pi * torch.rand(shape, dtype=torch.float64) for shape in shapes]


def complex_randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.complex128)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("orders", [1, 2, 3])
@pytest.mark.parametrize("n", SIZES)
def test_equals_dense(n: int, orders: int, adjoint: bool) -> None:
    x = complex_randn(2, n, 3)

    def ours(lower: Tensor, upper: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
        op = sv.DHHP(lower, upper, diagonal)
        return (op.H if adjoint else op) @ x

    def oracle(lower: Tensor, upper: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
        matrix = dense_dhhp(lower, upper, diagonal)
        return (matrix.mH if adjoint else matrix) @ x

    assert_same_gradients(ours, oracle, [*angles_and_phases(n, orders, (2,)), x])


@pytest.mark.parametrize(("kind", "n", "orders"), CASES)
def test_permutations_equal_dense(kind: str, n: int, orders: int) -> None:
    permutation = permutation_of(kind, n, orders)
    matrices = as_matrices(permutation, n, orders)
    x = complex_randn(2, n, 3)

    def ours(lower: Tensor, upper: Tensor, diagonal: Tensor) -> Tensor:
        op = sv.DHHP(lower, upper, diagonal, permutation)
        return torch.cat((op @ x, op.H @ x), -1)

    def oracle(lower: Tensor, upper: Tensor, diagonal: Tensor) -> Tensor:
        matrix = dense_dhhp(lower, upper, diagonal, matrices)
        return torch.cat((matrix @ x, matrix.mH @ x), -1)

    assert_same_gradients(ours, oracle, angles_and_phases(n, orders, (2,)))


def test_surface() -> None:
    op = sv.DHHP.random(6, orders=2, dtype=torch.float64, permutation=torch.randperm(6))
    assert (op.n, op.orders, op.shape, op.dtype) == (6, 2, (6, 6), torch.complex128)
    matrix = op.dense()
    assert_near(op.H.dense(), matrix.mH)
    assert op.H.H is op
    assert op.H.shape == op.shape
    x = complex_randn(6)
    assert_near(op @ x, matrix @ x)
    assert_near(op.H @ x, matrix.mH @ x)
    assert_near(op @ x.real, matrix @ x.real.to(op.dtype))
    assert "n=6" in repr(op)
    assert repr(op.H).endswith(".H")


def test_broadcasting() -> None:
    op = sv.DHHP.random(5, batch=(4, 1), dtype=torch.float64)
    x = complex_randn(3, 5, 2)
    assert (op @ x).shape == (4, 3, 5, 2)
    assert_near(op @ x, op.dense() @ x)
    single = sv.DHHP.random(5, dtype=torch.float64, permutation=torch.randperm(5))
    many = complex_randn(2, 3, 5, 4)
    assert_near(single @ many, single.dense() @ many)
    assert_near(single.H @ many, single.dense().mH @ many)
    vector = complex_randn(5)
    assert_near(op @ vector, op.dense() @ vector)


def test_one_row_is_a_phase() -> None:
    op = sv.DHHP.random(1, dtype=torch.float64)
    assert op.diagonal is not None
    assert_near(op.dense(), torch.exp(1j * op.diagonal)[:, None])


def test_random_is_dense_and_unitary() -> None:
    matrix = sv.DHHP.random(12, dtype=torch.float64).dense()
    assert matrix.abs().min() > 0
    assert_near(matrix.mH @ matrix, torch.eye(12, dtype=matrix.dtype))
    generator = torch.Generator().manual_seed(3)
    again = torch.Generator().manual_seed(3)
    assert torch.equal(sv.DHHP.random(4, generator=generator).lower, sv.DHHP.random(4, generator=again).lower)


@pytest.mark.parametrize("n", [1, 2, 4, 8, 16, 64])
def test_transforms_equal_scipy(n: int) -> None:
    eye = torch.eye(n, dtype=torch.float64).numpy()
    expected = {
        "dft": scipy.fft.fft(eye, axis=0, norm="ortho"),
        "hadamard": scipy.linalg.hadamard(n) / math.sqrt(n),
        "dct": scipy.fft.dct(eye, axis=0, norm="ortho"),
        "dst": scipy.fft.dst(eye, axis=0, norm="ortho"),
    }
    for name, matrix in expected.items():
        wanted = torch.from_numpy(matrix).to(torch.complex128)
        build = getattr(sv.DHHP, name)
        assert_near(build(n, dtype=torch.float64).dense(), wanted, 1e-10, what=name)
        assert_near(build(n, inverse=True, dtype=torch.float64).dense(), wanted.mH, 1e-10, what=f"inverse {name}")
        assert_near(build(n).dense(), wanted, what=f"{name} in float32")


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [2, 3, 7, 8])
def test_every_cosine_and_sine_type_equals_scipy(n: int, type: int) -> None:
    eye = torch.eye(n, dtype=torch.float64)
    for ours, theirs in ((dct_matrix, scipy.fft.dct), (dst_matrix, scipy.fft.dst)):
        expected = theirs(eye.numpy(), type=type, axis=0, norm="ortho")
        assert_near(torch.from_numpy(ours(n, type)), torch.from_numpy(expected))
    assert_near(sv.DHHP.dct(n, type=type, dtype=torch.float64).dense().real, torch.from_numpy(dct_matrix(n, type)))
    assert_near(sv.DHHP.dst(n, type=type, dtype=torch.float64).dense().real, torch.from_numpy(dst_matrix(n, type)))


def test_fft_structure_with_bit_reversal() -> None:
    """A permuted DHHP is the DHHP of the permuted columns: Φ P = Φ[:, inverse of P]."""
    plain = sv.DHHP.random(8, dtype=torch.float64)
    permuted = sv.DHHP(plain.lower, plain.upper, plain.diagonal, bit_reversal(8))
    assert_near(permuted.dense(), plain.dense()[:, bit_reversal(8).argsort()])


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_lhhp_from_any_matrix(n: int) -> None:
    for matrix in (complex_randn(n, n), torch.randn(3, n, n, dtype=torch.float64), torch.ones(n, n)):
        op = sv.LHHP.from_matrix(matrix)
        wide = matrix.to(op.dtype)
        assert op.shape == matrix.shape
        assert_near(op.dense(), wide)
        x = torch.randn(n, 2).to(op.dtype)
        assert_near(op @ x, wide @ x)
        assert_near(op.H @ x, wide.mH @ x)
        assert_near((op @ x[:, 0]), (wide @ x[:, 0]))
    regular = torch.eye(n, dtype=torch.complex128) + 0.1 * complex_randn(n, n)
    op = sv.LHHP.from_matrix(regular)
    x = complex_randn(n, 2)
    assert_near(op @ op.solve(x), x)
    assert_near(op @ op.solve(x[:, 0]), x[:, 0])
    assert "LHHP(n=" in repr(op)


def test_lhhp_gradients_equal_dense() -> None:
    lower, upper, _ = angles_and_phases(5, 2)
    x = complex_randn(5, 3)

    def ours(triangle: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
        op = sv.LHHP(triangle.tril(), sv.DHHP(lower, upper))
        return torch.cat((op @ x, op.H @ x), -1)

    def oracle(triangle: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
        matrix = triangle.tril().to(torch.complex128) @ dense_dhhp(lower, upper)
        return torch.cat((matrix @ x, matrix.mH @ x), -1)

    assert_same_gradients(ours, oracle, [torch.randn(5, 5, dtype=torch.float64), lower, upper])
