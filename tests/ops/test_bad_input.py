"""Bad input is refused with what was given and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

import synvolution as sv
from synvolution.ops import lower_chain, upper_chain

X, A = torch.randn(2, 5, 2, 3), torch.randn(2, 4, 3)
PHASE = torch.randn(2, 5)
L, U = torch.randn(1, 4, 3), torch.randn(1, 4, 3)

CASES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "too few angles": (
        lambda: upper_chain(X, A[:, :3]),
        ValueError,
        "length 3 of angles does not fit 5 positions: expected 4",
    ),
    "two angles a rotation": (lambda: upper_chain(X, A[..., :2]), ValueError, "expected (..., N-1, 3)"),
    "integer signal": (lambda: upper_chain(X.long(), A), TypeError, "x is torch.int64: expected torch.float32"),
    "half precision": (lambda: upper_chain(X.half(), A), TypeError, "x is torch.float16"),
    "complex signal": (lambda: upper_chain(X.to(torch.complex64), A), TypeError, "split it into real and imaginary"),
    "not a tensor": (lambda: upper_chain([1.0], A), TypeError, "x is a list"),  # type: ignore[arg-type]
    "mixed precision": (
        lambda: lower_chain(X, A.double()),
        TypeError,
        "angles is torch.float64 but x is",
    ),
    "mixed devices": (lambda: lower_chain(X, A.to("meta")), ValueError, "angles is on meta but x is on cpu"),
    "no positions": (lambda: upper_chain(X[:, :0], A[:, :0]), ValueError, "N = 0 positions"),
    "no planes": (lambda: upper_chain(X[:, :, 0], A), ValueError, "expected (..., N, 2, D)"),
    "unknown backend": (
        lambda: upper_chain(X, A, backend="magic"),
        ValueError,
        "unknown backend 'magic': choose",
    ),
    "batch sizes differ": (lambda: upper_chain(X, torch.randn(3, 4, 3)), RuntimeError, "2 and 3|3 and 2|broadcast"),
    "phase length": (lambda: sv.synvolve(X, A, A, PHASE[:, :4]), ValueError, "phase has shape (2, 4): expected (2, 5)"),
    "phase dims": (lambda: sv.synvolve(X, A, A, PHASE[0]), ValueError, "expected (B, N), or (B, H, N)"),
    "angle batch": (
        lambda: sv.synvolve(X, A[:1], A, PHASE),
        ValueError,
        "lower has shape (1, 4, 3) beside",
    ),
    "angle dims": (lambda: sv.synvolve(X, A[0], A, PHASE), ValueError, "lower has shape"),
    "orders differ": (
        lambda: sv.synvolve(X, A[:, None].expand(2, 2, 4, 3), A, PHASE),
        ValueError,
        "lower has 2 orders, upper has 1",
    ),
    "heads do not divide": (
        lambda: sv.synvolve(X, torch.randn(2, 2, 4, 3), torch.randn(2, 2, 4, 3), torch.randn(2, 2, 5)),
        ValueError,
        "2 heads do not divide 3 features",
    ),
    "unbatched v": (lambda: sv.synvolve(X[0], A, A, PHASE), ValueError, "expected (B, N, 2, D)"),
    "float mask": (lambda: sv.synvolve(X, A, A, PHASE, torch.ones(2, 5)), TypeError, "expected torch.bool"),
    "mask shape": (lambda: sv.synvolve(X, A, A, PHASE, torch.ones(2, 4).bool()), ValueError, "mask has shape (2, 4)"),
    "mask list": (
        lambda: sv.synvolve(X, A, A, PHASE, [[True] * 5] * 2),  # type: ignore[arg-type]
        TypeError,
        "mask is a list",
    ),
    "mask device": (
        lambda: sv.synvolve(X, A, A, PHASE, torch.ones(2, 5, device="meta").bool()),
        ValueError,
        "mask is on meta, the other tensors on cpu",
    ),
    "permutation list": (
        lambda: sv.synvolve(X, A, A, PHASE, permutation=[0, 1, 2, 3, 4]),  # type: ignore[arg-type]
        TypeError,
        "permutation is a list",
    ),
    "dhhp permutation list": (
        lambda: sv.DHHP(L, U, None, [0, 1, 2, 3, 4]),  # type: ignore[arg-type]
        TypeError,
        "permutation is a list",
    ),
    "no permutation": (
        lambda: sv.synvolve(X, A, A, PHASE, permutation=torch.zeros(5).long()),
        ValueError,
        "not a permutation",
    ),
    "permutation length": (
        lambda: sv.synvolve(X, A, A, PHASE, permutation=torch.arange(4)),
        ValueError,
        "last size must be the number of positions 5",
    ),
    "permutation orders": (
        lambda: sv.synvolve(X, A, A, PHASE, permutation=torch.arange(5).expand(3, 5)),
        ValueError,
        "permutation has shape (3, 5)",
    ),
    "permutation int32": (
        lambda: sv.synvolve(X, A, A, PHASE, permutation=torch.arange(5).int()),
        TypeError,
        "expected torch.int64",
    ),
    "matrix shape": (
        lambda: sv.synvolve(X, A, A, PHASE, permutation=torch.randn(4, 4)),
        ValueError,
        "permutation has shape (4, 4)",
    ),
    "dhhp without orders": (lambda: sv.DHHP(L[0], U[0]), ValueError, "expected (..., L, N-1, 3) with L ≥ 1"),
    "dhhp shapes differ": (lambda: sv.DHHP(L, U[:, :3]), ValueError, "give both the same"),
    "dhhp diagonal": (lambda: sv.DHHP(L, U, torch.randn(4)), ValueError, "diagonal has shape (4,): expected (..., 5)"),
    "dhhp complex diagonal": (
        lambda: sv.DHHP(L, U, torch.randn(5, dtype=torch.complex64)),
        TypeError,
        "diagonal is torch.complex64",
    ),
    "dhhp permutation": (lambda: sv.DHHP(L, U, None, torch.randn(3, 3)), ValueError, "permutation has shape (3, 3)"),
    "operand length": (lambda: sv.DHHP(L, U) @ torch.randn(4), ValueError, "expected (5,) or (..., 5, D)"),
    "operand integer": (lambda: sv.DHHP(L, U) @ torch.ones(5).long(), TypeError, "operand is torch.int64"),
    "operand precision": (lambda: sv.DHHP(L, U) @ torch.randn(5).double(), TypeError, "computes in torch.complex64"),
    "operand device": (lambda: sv.DHHP(L, U) @ torch.randn(5, device="meta"), ValueError, "operand is on meta"),
    "operand type": (lambda: sv.DHHP(L, U) @ 3, TypeError, "the operand is a int"),  # type: ignore[operator]
    "random of nothing": (lambda: sv.DHHP.random(0), ValueError, "n = 0"),
    "not square": (lambda: sv.DHHP.from_unitary(torch.randn(3, 4)), ValueError, "matrix has shape (3, 4)"),
    "not unitary": (
        lambda: sv.DHHP.from_unitary(2 * torch.eye(3)),
        ValueError,
        "not unitary: the largest entry of |U^H U - I| is 3, allowed is 0.0001",
    ),
    "NaN matrix": (lambda: sv.DHHP.from_unitary(torch.full((2, 2), torch.nan)), ValueError, "NaN"),
    "integer matrix": (lambda: sv.DHHP.from_unitary(torch.eye(3).long()), TypeError, "matrix is torch.int64"),
    "matrix type": (lambda: sv.LHHP.from_matrix(3.0), TypeError, "matrix is a float"),  # type: ignore[arg-type]
    "hadamard 6": (lambda: sv.DHHP.hadamard(6), ValueError, "power of two, 6 was given"),
    "dft 0": (lambda: sv.DHHP.dft(0), ValueError, "transform of size 0"),
    "dct type": (lambda: sv.DHHP.dct(4, type=5), ValueError, "type 5: choose 1, 2, 3 or 4"),
    "dst type": (lambda: sv.DHHP.dst(4, type=0), ValueError, "type 0: choose 1, 2, 3 or 4"),
    "dct-1 of one": (lambda: sv.DHHP.dct(1, type=1), ValueError, "at least 2"),
    "lhhp triangle": (lambda: sv.LHHP(torch.ones(5, 5), sv.DHHP(L, U)), ValueError, "above the diagonal"),
    "lhhp size": (lambda: sv.LHHP(torch.eye(4), sv.DHHP(L, U)), ValueError, "4 rows wide, the DHHP has 5"),
    "lhhp precision": (lambda: sv.LHHP(torch.eye(5).double(), sv.DHHP(L, U)), TypeError, "triangular is torch.float64"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(case: str) -> None:
    call, error, message = CASES[case]
    pattern = message if "|broadcast" in message else re.escape(message)
    with pytest.raises(error, match=pattern):
        call()
