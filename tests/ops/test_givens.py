"""Single chains: against dense matrices, and their invariants, for every backend."""

from __future__ import annotations

import math
import shutil

import pytest
import torch
from torch import Tensor

from synvolution.ops import adjoint_angles, lower_chain, rotation_coefficients, upper_chain
from synvolution.ops._backends import runnable
from tests.oracles import assert_near, assert_same_gradients, dense_chain, rotation_matrix, to_complex, to_planar

SIZES = [1, 2, 3, 5, 8, 33, 64]
CHAINS = {True: upper_chain, False: lower_chain}
RUNNABLE = runnable(torch.device("cpu"))
backends = pytest.mark.parametrize("backend", RUNNABLE)
chains = pytest.mark.parametrize("upper", [True, False], ids=["upper", "lower"])


def operands(n: int, batch: int = 2, d: int = 3, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, n, 2, d, dtype=dtype), 2 * math.pi * torch.rand(batch, n - 1, 3, dtype=dtype)


def test_coefficients_are_the_printed_matrix() -> None:
    angles = torch.randn(4, 3, dtype=torch.float64)
    a, b = (torch.view_as_complex(c) for c in rotation_coefficients(angles))
    matrix = rotation_matrix(angles)
    assert_near(matrix, torch.stack((torch.stack((a, b), -1), torch.stack((-b.conj(), a.conj()), -1)), -2))
    assert_near(rotation_matrix(adjoint_angles(angles)), matrix.mH)


@backends
@chains
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_equals_dense(backend: str, upper: bool, adjoint: bool, n: int) -> None:
    def ours(x: Tensor, angles: Tensor) -> Tensor:
        return CHAINS[upper](x, angles, adjoint=adjoint, backend=backend)

    def oracle(x: Tensor, angles: Tensor) -> Tensor:
        matrix = dense_chain(angles, upper)
        return to_planar((matrix.mH if adjoint else matrix) @ to_complex(x))

    assert_same_gradients(ours, oracle, operands(n))


@chains
def test_is_hessenberg_and_unitary(upper: bool) -> None:
    _, angles = operands(8, batch=1)
    eye = to_planar(torch.eye(8, dtype=torch.complex128))
    matrix = to_complex(CHAINS[upper](eye, angles[0]))
    outside = matrix.tril(-2) if upper else matrix.triu(2)
    assert outside.abs().max() == 0
    assert_near(matrix.mH @ matrix, torch.eye(8, dtype=torch.complex128))


@backends
@chains
def test_zero_angles_are_the_identity(backend: str, upper: bool) -> None:
    x, angles = operands(9)
    assert torch.equal(CHAINS[upper](x, torch.zeros_like(angles), backend=backend), x)


@backends
@chains
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_norm_is_kept_and_adjoint_inverts(backend: str, upper: bool, dtype: torch.dtype) -> None:
    x, angles = operands(100, dtype=dtype)
    y = CHAINS[upper](x, angles, backend=backend)
    assert_near(y.norm(), x.norm())
    assert_near(CHAINS[upper](y, angles, adjoint=True, backend=backend), x)


@backends
def test_batch_order_changes_nothing(backend: str) -> None:
    x, angles = operands(7, batch=4)
    order = torch.tensor([2, 0, 3, 1])
    y = upper_chain(x, angles, backend=backend)
    assert torch.equal(upper_chain(x[order], angles[order], backend=backend), y[order])


@backends
def test_any_leading_sizes_and_strides(backend: str) -> None:
    x = torch.randn(6, 2, 5, 2, 3, dtype=torch.float64)
    angles = torch.randn(2, 4, 3, dtype=torch.float64)
    y = upper_chain(x, angles, backend=backend)
    for i in range(6):
        assert_near(y[i], upper_chain(x[i], angles))
    strided = x.transpose(-1, -3).contiguous().transpose(-1, -3)[:, :, :, :, ::2]
    assert not strided.is_contiguous()
    assert_near(upper_chain(strided, angles, backend=backend), y[..., ::2])


@backends
@pytest.mark.parametrize("shape", [(0, 4, 2, 3), (2, 4, 2, 0)])
def test_empty_batch_or_features(backend: str, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, requires_grad=True)
    y = upper_chain(x, torch.randn(shape[0], 3, 3), backend=backend)
    assert y.shape == x.shape
    y.sum().backward()


@backends
@chains
def test_nan_stays_nan(backend: str, upper: bool) -> None:
    x, angles = operands(6)
    x[0, 3, 0, 1] = math.nan
    y = CHAINS[upper](x, angles, backend=backend)
    assert y[0, :, :, 1].isnan().any()
    assert not y[1].isnan().any()
    assert CHAINS[upper](x, torch.full_like(angles, math.nan), backend=backend).isnan().all()


@backends
@chains
def test_gradcheck_first_and_second_order(backend: str, upper: bool) -> None:
    x, angles = (t.requires_grad_() for t in operands(4, d=2))
    assert torch.autograd.gradcheck(lambda *a: CHAINS[upper](*a, backend=backend), (x, angles))
    assert torch.autograd.gradgradcheck(lambda *a: CHAINS[upper](*a, backend=backend), (x, angles))


@backends
def test_opcheck(backend: str) -> None:
    x, angles = operands(5)
    y = upper_chain(x, angles)
    leaves = x.clone().requires_grad_(), angles.clone().requires_grad_()
    torch.library.opcheck(torch.ops.synvolution.givens_chain, (*leaves, True, backend))
    torch.library.opcheck(torch.ops.synvolution.givens_chain_backward, (x, y, angles, True, backend))


# "inductor" calls the machine's C++ compiler, "aot_eager" traces and differentiates without one
@pytest.mark.parametrize(
    "compiler",
    ["aot_eager", pytest.param("inductor", marks=pytest.mark.skipif(not shutil.which("g++"), reason="no compiler"))],
)
def test_compiles_whole(compiler: str) -> None:
    def loss(x: Tensor, angles: Tensor) -> Tensor:
        return lower_chain(upper_chain(x, angles), angles, adjoint=True).square().sin()

    x, angles = operands(6)
    assert_same_gradients(torch.compile(loss, fullgraph=True, backend=compiler), loss, (x, angles))


def test_vmap_and_functional_transforms() -> None:
    x, angles = operands(5, batch=3)
    y = upper_chain(x, angles)
    assert_near(torch.func.vmap(upper_chain)(x, angles), y)
    assert_near(torch.func.vmap(upper_chain, in_dims=(0, None))(x, angles[0]), upper_chain(x, angles[0]))
    jacobian = torch.autograd.functional.jacobian(lambda a: upper_chain(x, a), angles)
    assert isinstance(jacobian, Tensor)
    assert_near(torch.func.jacrev(lambda a: upper_chain(x, a))(angles), jacobian)
    assert_near(torch.func.jacfwd(lambda a: upper_chain(x, a))(angles), jacobian)
