"""The drawing of a Converter: the model, its block, and the gated feed-forward network."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from synvolution.experiments.diagram import box, canvas, frame, join, label, wire


def draw_architecture() -> Figure:
    """The whole model, from tokens to class scores, and below it what a block and its GFFN compute.

    Example:
        >>> draw_architecture().get_size_inches().tolist()
        [9.6, 5.6]
    """
    figure, axis = canvas(960, 560)
    _model(axis)
    _block(axis)
    _gffn(axis)
    _legend(axis)
    return figure


def _model(axis: Axes) -> None:
    y = 78
    frame(axis, 12, 12, 936, 142, "Converter")
    label(axis, 44, y, "tokens\n(B, N)")
    wire(axis, [(68, y), (88, y)])
    box(axis, (136, y), (96, 46), "Embedding", note="of tokens")
    wire(axis, [(184, y), (327, y)])
    box(axis, (266, y + 48), (108, 32), "GRU, 2 layers", fontsize=9)
    wire(axis, [(196, y), (196, y + 48), (212, y + 48)])
    wire(axis, [(320, y + 48), (338, y + 48), (338, y + 11)])
    label(axis, 258, y - 12, "position (RPE)")
    join(axis, 338, y)
    wire(axis, [(349, y), (370, y)])
    box(axis, (416, y), (92, 46), "ScaleNorm", note="dropout")
    wire(axis, [(462, y), (486, y)])
    box(axis, (544, y), (116, 54), "Block", "mixing", note="× number of layers")
    wire(axis, [(602, y), (626, y)])
    box(axis, (672, y), (92, 46), "Pooling", "fixed", note="real positions")
    wire(axis, [(718, y), (762, y)])
    label(axis, 738, y - 12, "(B, D)")
    box(axis, (824, y), (124, 62), "Head", note="Linear, LeakyReLU,\ndropout, Linear")
    wire(axis, [(886, y), (906, y)])
    label(axis, 926, y, "class\nscores")


def _block(axis: Axes) -> None:
    y = 238
    frame(axis, 12, 168, 936, 174, "Block")
    axis.text(34, y, "x", fontsize=12, va="center", ha="center", style="italic")
    wire(axis, [(44, y), (92, y)])
    box(axis, (152, y), (120, 54), "Kernelution", "mixing", note="mixes positions")
    wire(axis, [(212, y), (261, y)], "complex")
    wire(axis, [(62, y), (62, y + 58), (272, y + 58), (272, y + 11)])
    label(axis, 167, y + 70, "x joins the real plane")
    join(axis, 272, y)
    wire(axis, [(283, y), (316, y)], "complex")
    box(axis, (366, y), (100, 46), "ScaleNorm", note="complex norm")
    wire(axis, [(416, y), (506, y)], "complex")
    axis.text(440, y - 14, "z", fontsize=12, va="center", ha="center", style="italic")
    box(axis, (566, y), (120, 54), "GFFN", note="each position alone")
    wire(axis, [(626, y), (707, y)])
    wire(axis, [(458, y), (458, y + 58), (478, y + 58)], "complex", arrow=True)
    box(axis, (566, y + 58), (176, 28), "ζ Re z + (1 − ζ) Im z", fontsize=9.5)
    wire(axis, [(654, y + 58), (718, y + 58), (718, y + 11)])
    label(axis, 566, y + 83, "ζ learned, between 0 and 1")
    join(axis, 718, y)
    wire(axis, [(729, y), (762, y)])
    box(axis, (812, y), (100, 46), "ScaleNorm")
    wire(axis, [(862, y), (906, y)])
    axis.text(920, y, "y", fontsize=12, va="center", ha="center", style="italic")


def _gffn(axis: Axes) -> None:
    top, bottom, middle = 416, 496, 456
    frame(axis, 12, 356, 680, 192, "GFFN: gated feed-forward network, complex to real")
    axis.text(40, middle, "z", fontsize=12, va="center", ha="center", style="italic")
    wire(axis, [(50, middle), (74, middle)], "complex", arrow=False)
    for y, plane, name, function, role in (
        (top, "Re z", "$W_{\\mathrm{re}}$", "softplus", "magnitude"),
        (bottom, "Im z", "$W_{\\mathrm{im}}$", "tanh", "sign"),
    ):
        wire(axis, [(74, middle), (74, y), (136, y)])
        label(axis, 104, y - 12, plane)
        box(axis, (184, y), (96, 40), name, note="D → hidden")
        wire(axis, [(232, y), (262, y)])
        box(axis, (314, y), (104, 40), function, "fixed", note=role)
        wire(axis, [(366, y), (430, y), (430, middle + (11 if y > middle else -11))])
    join(axis, 430, middle, "⊙")
    wire(axis, [(441, middle), (500, middle)])
    label(axis, 470, middle - 12, "dropout")
    box(axis, (552, middle), (104, 40), "$W_{\\mathrm{o}}$", note="hidden → D")
    wire(axis, [(604, middle), (650, middle)])
    label(axis, 668, middle, "real")


def _legend(axis: Axes) -> None:
    frame(axis, 706, 356, 242, 192, "How to read it")
    for y, kind, text in ((398, "real", "real signal (B, N, D)"), (422, "complex", "complex signal (B, N, 2, D)")):
        wire(axis, [(722, y), (762, y)], kind)  # type: ignore[arg-type]
        label(axis, 772, y, text, align="left")
    for y, name, text in (
        (448, "learned", "with learned weights"),
        (476, "mixing", "with a Kernelution in it"),
        (504, "fixed", "nothing to learn"),
    ):
        box(axis, (742, y), (40, 20), "", name)
        label(axis, 772, y, text, align="left")
    label(axis, 722, 531, "B batch, N positions, D features", align="left")
