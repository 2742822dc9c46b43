"""What the drawings are made of: boxes and wires on a canvas in pixels from the top left; matrices; unit circles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from torch import Tensor

#: Pixels to an inch: a canvas of 960 pixels is 9.6 inches wide.
DOTS = 100

#: Fill and edge of boxes by what they do: light fills under black text, told apart by edge and position as well.
FILLS: dict[str, tuple[str, str]] = {
    "learned": ("#DCEBF7", "#0072B2"),
    "fixed": ("#F2F2F2", "#666666"),
    "mixing": ("#FBE3D1", "#D55E00"),
    "plain": ("#FFFFFF", "#666666"),
}

#: Colour and width of wires: real or complex signals, and generated parameters.
WIRES: dict[str, tuple[str, float]] = {"real": ("#333333", 1.4), "complex": ("#D55E00", 2.6), "given": ("#0072B2", 1.4)}

Wire = Literal["real", "complex", "given"]

#: Magnitudes below this are drawn like it.
FAINTEST = 1e-3


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure of that many pixels at 100 dots per inch, and the Axes that fills it.

    Example:
        >>> figure, axis = canvas(960, 400)
        >>> figure.get_size_inches().tolist(), bool(axis.yaxis_inverted())
        ([9.6, 4.0], True)
    """
    figure = Figure(figsize=(width / DOTS, height / DOTS))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, width), ylim=(height, 0))
    axis.set_axis_off()
    return figure, axis


def inset(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes for a plot inside the canvas, in its pixels."""
    across, down = (DOTS * side for side in figure.get_size_inches())
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def box(
    axis: Axes,
    centre: tuple[float, float],
    size: tuple[float, float],
    text: str,
    kind: str = "learned",
    *,
    note: str = "",
    fontsize: float = 10,
) -> None:
    """A rounded box with a text, and a smaller note below it, around its centre."""
    (x, y), (width, height), (fill, edge) = centre, size, FILLS[kind]
    shape = FancyBboxPatch(
        (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=6", fc=fill, ec=edge, lw=1.2
    )
    axis.add_patch(shape)
    lines = note.count("\n") + 1 if note else 0
    axis.text(x, y - 6.5 * lines, text, ha="center", va="center", fontsize=fontsize)
    if note:
        label(axis, x, y + 1.5 + 6.5 * (text.count("\n") + 1), note)


def label(axis: Axes, x: float, y: float, text: str, *, align: Literal["left", "center", "right"] = "center") -> None:
    """A small explanation."""
    axis.text(x, y, text, ha=align, va="center", fontsize=8, color="0.25", linespacing=1.15)


def join(axis: Axes, x: float, y: float, sign: str = "+") -> None:
    """A circle where two wires meet: + or a product."""
    axis.add_patch(Circle((x, y), 11, fc="white", ec="#333333", lw=1.2, zorder=3))
    axis.text(x, y, sign, ha="center", va="center", fontsize=12, zorder=4)


def wire(axis: Axes, points: Sequence[tuple[float, float]], kind: Wire = "real", *, arrow: bool = True) -> None:
    """A wire through points, by straight lines, with an arrow at its end."""
    colour, width = WIRES[kind]
    *bends, last = points
    if len(bends) > 1:
        axis.plot(*zip(*bends, strict=True), color=colour, linewidth=width, solid_joinstyle="round", zorder=1)
    style = "-|>,head_width=3.2,head_length=6" if arrow else "-"
    axis.add_patch(
        FancyArrowPatch(bends[-1], last, arrowstyle=style, color=colour, lw=width, shrinkA=0, shrinkB=0, zorder=1)
    )


def frame(axis: Axes, left: float, top: float, width: float, height: float, title: str) -> None:
    """A dashed frame around a part, titled above it."""
    shape = FancyBboxPatch(
        (left, top),
        width,
        height,
        boxstyle="round,pad=0,rounding_size=8",
        fc="#FCFCFC",
        ec="0.6",
        lw=1,
        ls="--",
        zorder=0,
    )
    axis.add_patch(shape)
    axis.text(left + 12, top + 16, title, va="center", fontsize=10, fontweight="bold", color="0.2")


def magnitudes(axis: Axes, matrix: Tensor) -> None:
    """|matrix| (N, N) as a heat map, on a logarithmic scale that darkens from 0.001 or less to 1."""
    values = matrix.detach().abs().clamp_min(FAINTEST).cpu().numpy()
    axis.imshow(values, cmap="magma_r", norm=LogNorm(FAINTEST, 1), interpolation="nearest")


def name_scale(bar: Colorbar, fontsize: float) -> None:
    """The numbers beside the colours of :func:`magnitudes`."""
    bar.set_ticks([FAINTEST, 1e-2, 1e-1, 1], labels=[f"≤ {FAINTEST}", "0.01", "0.1", "1"], fontsize=fontsize)
    bar.ax.tick_params(length=2, pad=1)
    bar.minorticks_off()


def unit_circle(axis: Axes, phases: Tensor) -> None:
    """Points e^{iφ} for phases (N,) on the unit circle."""
    axis.add_patch(Circle((0, 0), 1, fill=False, ec="0.6", lw=1))
    for ends in ([-1.15, 1.15], [0, 0]), ([0, 0], [-1.15, 1.15]):
        axis.plot(*ends, color="0.8", linewidth=0.7, zorder=0)
    cosines, sines = torch.cos(phases.detach()).cpu().numpy(), torch.sin(phases.detach()).cpu().numpy()
    axis.plot(cosines, sines, "o", color="#0072B2", markersize=4, alpha=0.6, markeredgewidth=0)
    axis.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
    axis.set_axis_off()
