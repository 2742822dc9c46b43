"""The definition of a chain of rotations, and a portable scan that computes the same on any device.

Everything here is plain, differentiable, real-valued torch: the oracle of the fast kernels, the fallback where there
are none, and the route of second derivatives.

Letters: B batch, N positions, D features, L orders, H heads. A complex signal is planar: ``(B, N, 2, D)``.
A *runner* computes one chain with its carry: ``run(x, angles, upper) -> (y, carry)``; :func:`loop` and :func:`scan`.
The compositions at the end take a chain as ``apply(x, angles, upper) -> y`` and its un-rotation as
``undo(y, grad, angles, upper) -> (x, gradient of x, gradient of the angles)``, so that every backend can use them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Runner = Callable[[Tensor, Tensor, bool], tuple[Tensor, Tensor]]
Apply = Callable[[Tensor, Tensor, bool], Tensor]
Undo = Callable[[Tensor, Tensor, Tensor, bool], tuple[Tensor, Tensor, Tensor]]


def rotation_coefficients(angles: Tensor) -> tuple[Tensor, Tensor]:
    """Coefficients of the rotation G = [[a, b], [−b̄, ā]] (eq. givens_rotation_matrix).

    a = e^{−i(α+β)/2} cos(γ/2), b = −e^{i(α−β)/2} sin(γ/2).

    Args:
        angles: (..., 3), α, β, γ in radians.

    Returns:
        a, b: each (..., 2), real and imaginary part.

    Example:
        >>> a, b = rotation_coefficients(torch.zeros(3))
        >>> a.abs().tolist(), b.abs().tolist()
        ([1.0, 0.0], [0.0, 0.0])
    """
    alpha, beta, gamma = angles.unbind(-1)
    cos, sin = torch.cos(gamma / 2), torch.sin(gamma / 2)
    total, difference = (alpha + beta) / 2, (alpha - beta) / 2
    a = torch.stack((cos * torch.cos(total), -cos * torch.sin(total)), -1)
    b = torch.stack((-sin * torch.cos(difference), -sin * torch.sin(difference)), -1)
    return a, b


def adjoint_angles(angles: Tensor) -> Tensor:
    """Angles of the adjoint rotation: G(α, β, γ)^H = G(−β, −α, −γ).

    Args:
        angles: (..., 3).

    Returns:
        (..., 3).

    Example:
        >>> adjoint_angles(torch.tensor([1.0, 2.0, 3.0])).tolist()
        [-2.0, -1.0, -3.0]
    """
    alpha, beta, gamma = angles.unbind(-1)
    return torch.stack((-beta, -alpha, -gamma), -1)


def _conj(c: Tensor) -> Tensor:
    return torch.stack((c[..., 0], -c[..., 1]), -1)


def _times(c: Tensor, x: Tensor) -> Tensor:
    """Complex product of a planar scalar c (..., 2) with planar features x (..., 2, D)."""
    re, im = x.unbind(-2)
    c_re, c_im = c[..., 0:1], c[..., 1:2]
    return torch.stack((c_re * re - c_im * im, c_re * im + c_im * re), -2)


def _scalar_product(c: Tensor, d: Tensor) -> Tensor:
    """Complex product of two planar scalars (..., 2)."""
    return _times(c, d[..., None])[..., 0]


def loop(x: Tensor, angles: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    """One chain, rotation by rotation: the definition (eq. givens_lhhp, one factor).

    upper: H_u = G_0 G_1 … G_{N−2}, so rotation N−2 acts first. lower: H_l = G_{N−2} … G_0, so rotation 0 acts first.
    The carry starts from the end row itself, not from zero: this is what makes the chain unitary.

    Args:
        x: (B, N, 2, D).
        angles: (B, N−1, 3).
        upper: which of the two chains.

    Returns:
        y: (B, N, 2, D), the chain applied to x.
        carry: (B, N, 2, D), the row that goes from one rotation to the next, at each position.
    """
    a, b = rotation_coefficients(angles)
    n = x.shape[1]
    out: list[Tensor] = [x[:, 0]] * n
    carry: list[Tensor] = [x[:, 0]] * n
    start, steps = (n - 1, range(n - 2, -1, -1)) if upper else (0, range(n - 1))
    h = carry[start] = x[:, start]
    for j in steps:
        top, bottom = (x[:, j], h) if upper else (h, x[:, j + 1])
        first = _times(a[:, j], top) + _times(b[:, j], bottom)
        second = _times(-_conj(b[:, j]), top) + _times(_conj(a[:, j]), bottom)
        if upper:
            out[j + 1], carry[j] = second, first
            h = first
        else:
            out[j], carry[j + 1] = first, second
            h = second
    out[0 if upper else n - 1] = h
    return torch.stack(out, 1), torch.stack(carry, 1)


def linear_recurrence(c: Tensor, u: Tensor) -> Tensor:
    """h_t = c_t h_{t−1} + u_t with h_0 = u_0, by pairing neighbours: logarithmic depth, linear work.

    Args:
        c: (B, N, 2), planar coefficients shared by all features; c_0 is not used.
        u: (B, N, 2, D).

    Returns:
        h: (B, N, 2, D).
    """
    n = u.shape[1]
    if n == 1:
        return u
    pairs = n // 2
    c_even, c_odd, u_even, u_odd = c[:, 0::2], c[:, 1::2], u[:, 0::2], u[:, 1::2]
    paired_c = _scalar_product(c_odd, c_even[:, :pairs])
    h_odd = linear_recurrence(paired_c, u_odd + _times(c_odd, u_even[:, :pairs]))
    later = u_even[:, 1:] + _times(c_even[:, 1:], h_odd[:, : u_even.shape[1] - 1])
    h_even = torch.cat((u_even[:, :1], later), 1)
    woven = torch.stack((h_even[:, :pairs], h_odd), 2).flatten(1, 2)
    return woven if n % 2 == 0 else torch.cat((woven, h_even[:, pairs:]), 1)


def scan(x: Tensor, angles: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    """One chain as a parallel scan of logarithmic depth; same arguments and results as :func:`loop`.

    An upper chain is a lower chain seen in a mirror: rows and rotations in reverse order, all angles negated.
    """
    if upper:
        y, carry = scan(x.flip(1), -angles.flip(1), upper=False)
        return y.flip(1), carry.flip(1)
    a, b = rotation_coefficients(angles)
    inputs = torch.cat((x[:, :1], _times(_conj(a), x[:, 1:])), 1)
    coefficients = torch.cat((x.new_zeros(x.shape[0], 1, 2), -_conj(b)), 1)
    h = linear_recurrence(coefficients, inputs)
    first = _times(a, h[:, :-1]) + _times(b, x[:, 1:])
    return torch.cat((first, h[:, -1:]), 1), h


def angle_gradients(
    angles: Tensor, inputs: tuple[Tensor, Tensor], outputs: tuple[Tensor, Tensor], grads: tuple[Tensor, ...]
) -> Tensor:
    """Three real reductions per rotation (docs/math.md), from its inputs, its outputs and their four gradients.

    Args:
        angles: (B, N−1, 3).
        inputs, outputs: the pairs (p, q) and (u, v), each (B, N−1, 2, D).
        grads: gradients of p, q, u, v.

    Returns:
        (B, N−1, 3).
    """
    p, q, u, v = *inputs, *outputs
    g_p, g_q, g_u, g_v = grads

    def imaginary(g: Tensor, z: Tensor) -> Tensor:  # Im(ḡ z), summed over features
        return (g[..., 0, :] * z[..., 1, :] - g[..., 1, :] * z[..., 0, :]).sum(-1)

    def real(g: Tensor, z: Tensor) -> Tensor:  # Re(ḡ z), summed over features
        return (g * z).sum((-2, -1))

    beta = angles[..., 1]
    cos, sin = torch.cos(beta), torch.sin(beta)
    d_alpha = imaginary(g_p, p) - imaginary(g_q, q)
    d_beta = imaginary(g_u, u) - imaginary(g_v, v)
    # Re(ḡ_v u e^{iβ} − ḡ_u v e^{−iβ}): the phases Z(β) taken off both sides of the real rotation
    d_gamma = cos * (real(g_v, u) - real(g_u, v)) - sin * (imaginary(g_v, u) + imaginary(g_u, v))
    return torch.stack((d_alpha, d_beta, d_gamma), -1) / 2


def unrotate(run: Runner, y: Tensor, grad: Tensor, angles: Tensor, upper: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Walk a chain backwards: from its output and the output's gradient to its input, that gradient, the angles'.

    Args:
        y, grad: (B, N, 2, D).
        angles: (B, N−1, 3).

    Returns:
        x, gradient of x: (B, N, 2, D); gradient of the angles: (B, N−1, 3).
    """
    rows, carries = run(torch.cat((y, grad), -1), adjoint_angles(angles), not upper)
    d = y.shape[-1]
    (x, g_x), (h, g_h) = rows.split([d, d], -1), carries.split([d, d], -1)
    if upper:
        inputs, outputs = (x[:, :-1], h[:, 1:]), (h[:, :-1], y[:, 1:])
        grads = g_x[:, :-1], g_h[:, 1:], g_h[:, :-1], grad[:, 1:]
    else:
        inputs, outputs = (h[:, :-1], x[:, 1:]), (y[:, :-1], h[:, 1:])
        grads = g_h[:, :-1], g_x[:, 1:], grad[:, :-1], g_h[:, 1:]
    return x, g_x, angle_gradients(angles, inputs, outputs, grads)


def apply_chain(run: Runner, x: Tensor, angles: Tensor, upper: bool) -> Tensor:
    """One chain without its carry."""
    return run(x, angles, upper)[0]


def undo_adjoint(undo: Undo, y: Tensor, grad: Tensor, angles: Tensor, upper: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Un-rotation of the adjoint of a chain, with the gradient of the chain's own angles."""
    x, g_x, g_flipped = undo(y, grad, adjoint_angles(angles), not upper)
    return x, g_x, adjoint_angles(g_flipped)


def phase_product(phase: Tensor, x: Tensor) -> Tensor:
    """e^{iφ} ⊙ x for phases φ (..., N) and planar x (..., N, 2, D)."""
    return _times(torch.stack((torch.cos(phase), torch.sin(phase)), -1), x)


def permute_rows(x: Tensor, index: Tensor) -> Tensor:
    """(P x)_i = x_{index[i]} for x (B, N, 2, D) and an index (B, N)."""
    return x.gather(1, index[:, :, None, None].expand_as(x))


def synvolve(
    apply: Apply, v: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None = None
) -> Tensor:
    """Q^H [e^{iφ} ⊙ (Q v)] with Q = ∏_l H_l H_u P (eq. synvolution).

    Args:
        v: (B, N, 2, D).
        lower, upper: (B, L, N−1, 3).
        phase: (B, N).
        index: (B, L, N) rows of the permutations, or None.

    Returns:
        (B, N, 2, D).
    """
    orders = range(lower.shape[1])
    s = v
    for order in reversed(orders):
        if index is not None:
            s = permute_rows(s, index[:, order])
        s = apply(s, upper[:, order], True)
        s = apply(s, lower[:, order], False)
    s = phase_product(phase, s)
    for order in orders:
        s = apply(s, adjoint_angles(lower[:, order]), True)
        s = apply(s, adjoint_angles(upper[:, order]), False)
        if index is not None:
            s = permute_rows(s, index[:, order].argsort(-1))
    return s


def synvolve_backward(
    undo: Undo, grad: Tensor, out: Tensor, lower: Tensor, upper: Tensor, phase: Tensor, index: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of :func:`synvolve` from its output alone, by un-rotating every factor.

    Args:
        grad, out: (B, N, 2, D); the rest as in :func:`synvolve`.

    Returns:
        gradients of v, lower, upper, phase.
    """
    orders = lower.shape[1]
    g_lower: list[Tensor] = [lower[:, 0]] * orders
    g_upper: list[Tensor] = [upper[:, 0]] * orders
    s, g = out, grad
    for order in reversed(range(orders)):
        if index is not None:
            s, g = permute_rows(s, index[:, order]), permute_rows(g, index[:, order])
        s, g, g_upper[order] = undo_adjoint(undo, s, g, upper[:, order], True)
        s, g, g_lower[order] = undo_adjoint(undo, s, g, lower[:, order], False)
    g_phase = (g[..., 1, :] * s[..., 0, :] - g[..., 0, :] * s[..., 1, :]).sum(-1)
    s, g = phase_product(-phase, s), phase_product(-phase, g)
    for order in range(orders):
        s, g, again = undo(s, g, lower[:, order], False)
        g_lower[order] = g_lower[order] + again
        s, g, again = undo(s, g, upper[:, order], True)
        g_upper[order] = g_upper[order] + again
        if index is not None:
            back = index[:, order].argsort(-1)
            s, g = permute_rows(s, back), permute_rows(g, back)
    return g, torch.stack(g_lower, 1), torch.stack(g_upper, 1), g_phase
