"""What the algorithm as printed does, so that nobody "fixes" ours back to it."""

from __future__ import annotations

import math

import torch

import synvolution as sv
from benchmarks.paper_algorithm import dhhp_trans, givens_rot_para, givens_rot_para_conj_trs, paper_synvolve
from tests.oracles import assert_near, to_complex

N = 16


def _operands() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    lower, upper, theta = (2 * math.pi * torch.rand(1, *s, dtype=torch.float64) for s in ((N - 1, 3), (N - 1, 3), (N,)))
    return lower, upper, theta


def _paper_matrices() -> tuple[torch.Tensor, torch.Tensor]:
    lower, upper, theta = _operands()
    eye = torch.eye(N, dtype=torch.complex128)[None]
    g_l, g_u = givens_rot_para(*lower.unbind(-1)), givens_rot_para(*upper.unbind(-1))
    diag = torch.exp(1j * theta)
    forward = dhhp_trans(True, eye, g_l, g_u, diag)
    back = dhhp_trans(False, eye, givens_rot_para_conj_trs(g_u), givens_rot_para_conj_trs(g_l), diag.conj())
    return forward[0], back[0]


def test_as_printed_is_singular() -> None:
    forward, _ = _paper_matrices()
    singular_values = torch.linalg.svdvals(forward)
    assert singular_values.min() < 1e-14
    assert singular_values.max() > 0.999


def test_as_printed_inverse_does_not_invert() -> None:
    forward, back = _paper_matrices()
    assert (back @ forward - torch.eye(N)).abs().max() > 0.5


def test_ours_is_unitary_for_the_same_angles() -> None:
    lower, upper, theta = _operands()
    op = sv.DHHP(lower, upper, theta[0])
    assert_near(torch.linalg.svdvals(op.dense()), torch.ones(N, dtype=torch.float64))


def test_as_printed_differs_from_ours_by_the_lost_row_only() -> None:
    """Same rotations, but the upper chain ignores its last input row and the lower one its first."""
    lower, upper, _ = _operands()
    eye = torch.eye(N, dtype=torch.complex128)[None]
    one = torch.ones(1, N, dtype=torch.complex128)
    zero_lower = givens_rot_para(*torch.zeros_like(lower).unbind(-1))
    printed = dhhp_trans(True, eye, zero_lower, givens_rot_para(*upper.unbind(-1)), one)[0]
    ours = sv.DHHP(torch.zeros_like(lower), upper).dense()
    assert_near(printed[1:, :-1], ours[1:, :-1])
    assert printed[:, -1].abs().max() == 0
    assert printed[0].abs().max() == 0


def test_as_printed_loses_norm_in_synvolution() -> None:
    lower, upper, theta = _operands()
    v = torch.randn(1, N, 2, 3, dtype=torch.float64)
    phase = torch.randn(1, N, dtype=torch.float64)
    assert paper_synvolve(to_complex(v), lower, upper, phase, theta).norm() < 0.99 * v.norm()
    assert_near(sv.synvolve(v, lower, upper, phase).norm(), v.norm())
