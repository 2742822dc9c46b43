"""Algorithms 1–3 of the paper exactly as printed, errors included: what our operator is compared with.

Do not mend this file: ``tests/test_paper_algorithm.py`` shows what is wrong with it (each chain starts its carry at
zero and so loses one row), and ``synvolution bench`` how long it takes. Tensors are complex, (b, n, d), as printed.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


class PScan(torch.autograd.Function):
    """Algorithm 1: Y_t = A_t Y_{t−1} + X_t by recursion over pairs, in place."""

    @staticmethod
    def expand_(a: Tensor, x: Tensor) -> None:
        if a.size(1) == 1:
            return
        t = 2 * (a.size(1) // 2)
        pairs_a = a[:, :t].view(a.size(0), t // 2, 2, -1)
        pairs_x = x[:, :t].view(x.size(0), t // 2, 2, -1)
        pairs_x[:, :, 1].add_(pairs_a[:, :, 1] * pairs_x[:, :, 0])
        pairs_a[:, :, 1].mul_(pairs_a[:, :, 0])
        PScan.expand_(pairs_a[:, :, 1], pairs_x[:, :, 1])
        pairs_x[:, 1:, 0].add_(pairs_a[:, 1:, 0] * pairs_x[:, :-1, 1])
        pairs_a[:, 1:, 0].mul_(pairs_a[:, :-1, 1])
        if t < a.size(1):
            x[:, -1].add_(a[:, -1] * x[:, -2])
            a[:, -1].mul_(a[:, -2])

    @staticmethod
    def acc_rev_(a: Tensor, x: Tensor) -> None:
        if x.size(1) == 1:
            return
        t = 2 * (x.size(1) // 2)
        pairs_a = a[:, -t:].view(a.size(0), t // 2, 2, -1)
        pairs_x = x[:, -t:].view(x.size(0), t // 2, 2, -1)
        pairs_x[:, :, 0].add_(pairs_a[:, :, 1].conj() * pairs_x[:, :, 1])
        b = pairs_a[:, :, 0].clone()
        b[:, 1:].mul_(pairs_a[:, :-1, 1].conj())
        PScan.acc_rev_(b, pairs_x[:, :, 0])
        pairs_x[:, :-1, 1].add_(pairs_a[:, 1:, 0].conj() * pairs_x[:, 1:, 0])
        if t < a.size(1):
            x[:, 0].add_(a[:, 1].conj() * x[:, 1])

    @staticmethod
    def forward(ctx: Any, a: Tensor, x: Tensor, y_init: Tensor) -> Tensor:
        ctx.a = a[:, :, None].clone()
        ctx.y_init = y_init[:, None, :].clone()
        ctx.a_star = ctx.a.clone()
        ctx.x_star = x.clone()
        PScan.expand_(ctx.a_star, ctx.x_star)
        return ctx.a_star * ctx.y_init + ctx.x_star

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        u = grad_output * ctx.a_star.conj()
        r = grad_output.clone()
        PScan.acc_rev_(ctx.a.clone(), r)
        q = ctx.y_init.expand_as(ctx.x_star).clone()
        q[:, 1:].mul_(ctx.a_star[:, :-1].conj()).add_(ctx.x_star[:, :-1])
        return (q.conj() * r).sum(-1), r, u.sum(dim=1)


Coefficients = tuple[Tensor, Tensor, Tensor, Tensor]


def givens_rot_para(alpha: Tensor, beta: Tensor, gamma: Tensor) -> Coefficients:
    """Algorithm 3: G_ii, G_ij, G_ji, G_jj."""
    g_ii = torch.exp(-1j * (alpha + beta) / 2) * torch.cos(gamma / 2)
    g_ij = -torch.exp(1j * (alpha - beta) / 2) * torch.sin(gamma / 2)
    g_ji = torch.exp(-1j * (alpha - beta) / 2) * torch.sin(gamma / 2)
    g_jj = torch.exp(1j * (alpha + beta) / 2) * torch.cos(gamma / 2)
    return g_ii, g_ij, g_ji, g_jj


def givens_rot_para_conj_trs(g: Coefficients) -> Coefficients:
    """Algorithm 3: the adjoint rotation."""
    g_ii, g_ij, g_ji, g_jj = g
    return g_jj, -g_ij, -g_ji, g_ii


def _shifted(coefficients: Tensor) -> Tensor:
    padded = torch.cat([coefficients, torch.zeros_like(coefficients[:, :1])], dim=1)
    shifted = torch.zeros_like(padded)
    shifted[:, 1:] = padded[:, :-1].clone()
    return shifted


def dhhp_trans(transform: bool, x: Tensor, g_l: Coefficients, g_u: Coefficients, diag: Tensor, m: int = 1) -> Tensor:
    """Algorithm 2: 1-DHHP, or with ``transform=False`` the order of steps of its inverse."""
    b, n, d = x.shape
    g_l_ii, g_l_ij, g_l_ji, g_l_jj = g_l
    g_u_ii, g_u_ij, g_u_ji, g_u_jj = g_u
    if transform:
        x = x.reshape(b, n // m, m, d).transpose(1, 2).reshape(b, n, d)
    else:
        x = torch.einsum("bn,bnd->bnd", diag, x)

    x_, y = torch.zeros_like(x), torch.zeros_like(x)
    x_[:, :-1, :] = g_u_ii.unsqueeze(-1) * x[:, :-1, :]
    x_ = x_.flip(1)
    h_u = PScan.apply(_shifted(g_u_ij.flip(1)), x_, x_[:, 0, :].clone()).flip(1)
    y[:, 1:, :] = g_u_ji.unsqueeze(-1) * x[:, :-1, :] + g_u_jj.unsqueeze(-1) * h_u[:, 1:, :]
    y[:, 0, :] = h_u[:, 0, :]

    y_, z = torch.zeros_like(y), torch.zeros_like(y)
    y_[:, 1:, :] = g_l_jj.unsqueeze(-1) * y[:, 1:, :]
    h_l = PScan.apply(_shifted(g_l_ji), y_, y_[:, 0, :].clone())
    z[:, :-1, :] = g_l_ii.unsqueeze(-1) * h_l[:, :-1, :] + g_l_ij.unsqueeze(-1) * y[:, 1:, :]
    z[:, n - 1, :] = h_l[:, n - 1, :]

    if transform:
        return torch.einsum("bn,bnd->bnd", diag, z)
    return z.reshape(b, m, n // m, d).transpose(1, 2).reshape(b, n, d)


def paper_synvolve(x: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, theta: Tensor, m: int = 1) -> Tensor:
    """Algorithm 3: Synvolution as printed, given the phases of the eigenvalues.

    Args:
        x: (b, n, d) complex.
        lower, upper: (b, n−1, 3) angles.
        phase, theta: (b, n); the diagonal is e^{2πiθ}.
        m: width of the block transpose that serves as permutation.
    """
    g_l, g_u = givens_rot_para(*lower.unbind(-1)), givens_rot_para(*upper.unbind(-1))
    diag = torch.exp(2j * math.pi * theta)
    x = dhhp_trans(True, x, g_l, g_u, diag, m)
    x = torch.einsum("bn,bnd->bnd", torch.exp(1j * phase), x)
    return dhhp_trans(False, x, givens_rot_para_conj_trs(g_u), givens_rot_para_conj_trs(g_l), diag.conj(), m)
