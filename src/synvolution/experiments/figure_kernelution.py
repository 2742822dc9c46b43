"""The drawing of the Kernelution process, with the matrices of a real layer."""

from __future__ import annotations

from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from synvolution.experiments.diagram import (
    box,
    canvas,
    inset,
    join,
    label,
    magnitudes,
    name_scale,
    unit_circle,
    wire,
)
from synvolution.nn import Digraph, Kernelution
from synvolution.ops import DHHP

LOWER, UPPER = "H_{\\mathrm{l}}", "H_{\\mathrm{u}}"


class Process(NamedTuple):
    """What a layer of one head and one order makes of a sequence x (N, D); matrices (N, N) complex."""

    x: Tensor
    layer: Kernelution
    digraph: Digraph
    lower: Tensor
    upper: Tensor
    phi: Tensor


def run_layer(n: int = 24, dim: int = 8, seed: int = 0) -> Process:
    """A freshly initialised layer on random features. The caller's random numbers are left alone.

    Example:
        >>> found = run_layer(n=6)
        >>> torch.allclose(found.lower @ found.upper, found.phi, atol=1e-6)
        True
        >>> shift = found.phi.mH @ (torch.exp(1j * found.digraph.eigenphases[0])[:, None] * found.phi)
        >>> torch.allclose(shift, found.digraph.operator[0], atol=1e-6)
        True
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        layer = Kernelution(dim, reach=1.2)
        x = torch.randn(1, n, dim)
        digraph = layer.digraph(x)
        lower, upper = digraph.lower[0], digraph.upper[0]  # (L, N−1, 3)
        none = torch.zeros_like(lower)
        matrices = (DHHP(*angles).dense() for angles in ((lower, none), (none, upper), (lower, upper)))
        return Process(x[0], layer, digraph, *matrices)


def draw_kernelution() -> Figure:
    """From X to Φ^{-1} [e^{i p(Λ)}\\,⊙\\,(Φ X W_V)] (eq. kernelution), with what a layer computes on the way.

    Example:
        >>> draw_kernelution().get_size_inches().tolist()
        [9.6, 6.24]
    """
    figure, axis = canvas(960, 624)
    process = run_layer()
    _input(figure, axis, process.x)
    _eigenvalues(figure, axis, process)
    _signal(axis)
    _rotations(figure, axis, process)
    _matrices(figure, axis, process)
    return figure


def _input(figure: Figure, axis: Axes, x: Tensor) -> None:
    features = inset(figure, 18, 228, 78, 117)
    features.imshow(x.numpy(), cmap="PuOr", vmin=-3, vmax=3, aspect="auto")
    _bare(features)
    axis.text(57, 214, "X", ha="center", va="center", fontsize=13, style="italic")
    label(axis, 57, 364, "N positions\n× D features")


def _eigenvalues(figure: Figure, axis: Axes, process: Process) -> None:
    y, phases, eigenvalues = 98, process.digraph.eigenphases[0], process.digraph.eigenvalues[0].numpy()
    wire(axis, [(57, 204), (57, y), (118, y)])
    box(axis, (178, y), (120, 50), "SIREN", note="mean over features")
    wire(axis, [(238, y), (282, y)], "given")
    points = inset(figure, 300, 48, 126, 100)
    points.axhline(0, color="0.7", linewidth=0.8)
    points.plot(eigenvalues, "o-", color="#0072B2", markersize=3, linewidth=0.8, clip_on=False)
    _plot(points, "position", (0, len(eigenvalues) - 1), (-1, 1))
    axis.text(363, 30, "eigenvalues λ", ha="center", fontsize=10)
    wire(axis, [(430, y), (482, y)], "given")
    polynomial, grid = inset(figure, 500, 48, 126, 100), torch.linspace(-1, 1, 101)
    with torch.no_grad():
        polynomial.plot(grid.numpy(), process.layer.phase(grid).numpy(), color="0.5", linewidth=1)
    polynomial.plot(eigenvalues, phases.numpy(), "o", color="#0072B2", markersize=3)
    _plot(polynomial, "λ", (-1, 1), (-1, 2))
    axis.text(563, 30, "kernel polynomial p(λ)", ha="center", fontsize=10)
    wire(axis, [(630, y), (682, y)], "given")
    unit_circle(inset(figure, 690, 42, 112, 112), phases)
    axis.text(746, 30, "phases $e^{ip(λ)}$", ha="center", fontsize=10)
    wire(axis, [(746, 156), (746, 275)], "given")


def _signal(axis: Axes) -> None:
    y = 286
    formula = "$\\mathrm{Kern}(X W_{\\mathrm{V}}) = Φ^{-1}\\,[\\,e^{ip(Λ)}\\,⊙\\,(Φ X W_{\\mathrm{V}})\\,]$"
    axis.text(400, 212, formula, ha="center", va="center", fontsize=14)
    wire(axis, [(98, y), (118, y)])
    box(axis, (178, y), (120, 50), "$X W_{\\mathrm{V}}$", note="value projection")
    wire(axis, [(238, y), (502, y)], "complex")
    label(axis, 370, y - 13, "complex signal (N, 2, D)")
    box(axis, (563, y), (122, 50), "Φ ·", "mixing", note="two chains")
    wire(axis, [(624, y), (735, y)], "complex")
    join(axis, 746, y, "⊙")
    wire(axis, [(757, y), (784, y)], "complex")
    box(axis, (836, y), (104, 50), "$Φ^{-1}$ ·", "mixing", note="chains undone")
    wire(axis, [(888, y), (910, y)], "complex")
    label(axis, 933, y, "Kern\n(N, 2, D)")


def _rotations(figure: Figure, axis: Axes, process: Process) -> None:
    y = 490
    wire(axis, [(57, 384), (57, y), (118, y)])
    box(axis, (178, y), (120, 76), "SIREN", note="FixNorm, mean of\nsix groups × 2π,\nreach added to γ")
    wire(axis, [(238, y), (272, y)], "given")
    angles = torch.cat((process.digraph.lower[0, 0], process.digraph.upper[0, 0]), -1).T  # (6, N−1)
    largest = angles.abs().max().item()
    strip = inset(figure, 300, 436, 126, 108)
    strip.imshow(angles.numpy(), cmap="PuOr", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    strip.set_yticks(range(6), ["α", "β", "γ"] * 2, fontsize=8)
    strip.set_xticks([])
    strip.tick_params(length=0, pad=3)
    strip.axhline(2.5, color="white", linewidth=2)
    axis.text(363, 418, "angles", ha="center", fontsize=10)
    label(axis, 363, 563, "top: lower chain\nbottom: upper chain")
    wire(axis, [(430, y), (452, y)], "given")


def _matrices(figure: Figure, axis: Axes, process: Process) -> None:
    top, side = 438, 104
    shown = (
        (458, f"$|{LOWER}|$", process.lower, "lower chain\n$G_{N-2} … G_0$"),
        (584, f"$|{UPPER}|$", process.upper, "upper chain\n$G_0 … G_{N-2}$"),
        (710, "$|Φ|$", process.phi, "unitary"),
        (842, "$|Φ^{-1}e^{ip(Λ)}Φ|$", process.digraph.operator[0], "all of it as one matrix:\nthe digraph"),
    )
    for left, title, matrix, note in shown:
        picture = inset(figure, left, top, side, side)
        magnitudes(picture, matrix)
        _bare(picture)
        axis.text(left + side / 2, 420, title, ha="center", fontsize=10)
        label(axis, left + side / 2, 563, note)
    axis.text(573, top + side / 2, "·", ha="center", va="center", fontsize=14)
    axis.text(699, top + side / 2, "=", ha="center", va="center", fontsize=12)
    wire(axis, [(762, 404), (762, 366), (563, 366), (563, 313)], "given")
    wire(axis, [(762, 366), (836, 366), (836, 313)], "given")
    label(axis, 630, 379, "applied rotation by rotation, never formed")
    bar = figure.colorbar(picture.images[0], cax=inset(figure, 710, 594, 236, 8), orientation="horizontal")
    name_scale(bar, 7)


def _plot(axis: Axes, across: str, x: tuple[float, float], y: tuple[float, float]) -> None:
    axis.set(xlim=x, ylim=(y[0] - 0.1, y[1] + 0.1), yticks=range(int(y[0]), int(y[1]) + 1), xticks=x)
    axis.set_xlabel(across, fontsize=8, labelpad=-6)
    axis.tick_params(labelsize=7, length=2)
    axis.spines[["top", "right"]].set_visible(False)


def _bare(axis: Axes) -> None:
    axis.set(xticks=[], yticks=[])
