"""The paper's Gibbs figure: a step function interpolated under each of the seven damping kernels (fig. kpm)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from synvolution.spectral import DAMPINGS, chebyshev_coefficients, chebyshev_sum

#: Colour and spelling of each kernel; colours of Okabe and Ito, which the colour-blind can tell apart.
KERNELS: dict[str, tuple[str, str]] = {
    "dirichlet": ("#000000", "Dirichlet (no damping)"),
    "fejer": ("#0072B2", "Fejér"),
    "jackson": ("#009E73", "Jackson"),
    "lanczos": ("#D55E00", "Lanczos, M = 3"),
    "lorentz": ("#CC79A7", "Lorentz, ξ = 4"),
    "vekic": ("#56B4E9", "Vekić"),
    "wang": ("#E69F00", "Wang, a = b = 2"),
}


class Approximation(NamedTuple):
    """An approximation of the step: values on [−1, 1], how far it exceeds 1, and where it first reaches 0.9."""

    x: Tensor
    values: Tensor
    overshoot: float
    rise: float


def approximate_step(damping: str, order: int, points: int = 8001) -> Approximation:
    """Damped Chebyshev interpolant of sign(x), ½ g_0 μ_0 + Σ g_k μ_k T_k (eq. kpm), and what it costs.

    Args:
        damping: a name in ``spectral.DAMPINGS``, with its default parameters.
        order: degree K of the interpolant, at least 1.
        points: number of equidistant points of [−1, 1].

    Returns:
        x and values (points,) float64; overshoot = max(p − 1, 0); rise = the first x > 0 with p(x) ≥ 0.9, NaN if there
        is none.

    Example:
        >>> round(approximate_step("dirichlet", 31).overshoot, 3), approximate_step("jackson", 31).overshoot
        (0.283, 0.0)
    """
    if damping not in DAMPINGS:
        raise ValueError(f"unknown damping {damping!r}: choose one of {', '.join(DAMPINGS)}")
    if order < 1:
        raise ValueError(f"order is {order}: a step needs K ≥ 1")
    x = torch.linspace(-1, 1, points, dtype=torch.float64)
    values = chebyshev_sum(DAMPINGS[damping](order) * chebyshev_coefficients(_step, order), x)
    risen = x[(x > 0) & (values >= 0.9)]
    overshoot = max(values.max().item() - 1, 0.0)
    return Approximation(x, values, overshoot, risen[0].item() if len(risen) else float("nan"))


def _step(x: Tensor) -> Tensor:
    """sign(x); 0 at the middle node too, which rounding puts beside 0."""
    return torch.sign(torch.where(x.abs() < 1e-12, 0.0, x))


def draw_gibbs(order: int = 31) -> Figure:
    """One panel for each kernel, with its overshoot, and one with all damping factors.

    Args:
        order: degree K of the interpolants.

    Example:
        >>> len(draw_gibbs(15).axes)
        8
    """
    figure = Figure(figsize=(9.6, 5.2), layout="constrained")
    figure.suptitle(
        f"A step under the seven damping kernels (Chebyshev interpolation, degree K = {order})", fontsize=12
    )
    figure.supxlabel("dashed: the step    thin grey: the interpolant without damping", fontsize=9)
    axes = list(figure.subplots(2, 4).flat)
    undamped = approximate_step("dirichlet", order)
    for index, damping in enumerate(KERNELS):
        _draw_kernel(axes[index], damping, approximate_step(damping, order), undamped)
        axes[index].tick_params(labelleft=index % 4 == 0)
    _draw_factors(axes[-1], order)
    for axis in axes:
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_kernel(axis: Axes, damping: str, found: Approximation, undamped: Approximation) -> None:
    colour, name = KERNELS[damping]
    axis.plot([-1, 0, 0, 1], [-1, -1, 1, 1], color="0.35", linewidth=0.8, linestyle=(0, (4, 2)))
    axis.plot(undamped.x.numpy(), undamped.values.numpy(), color="0.8", linewidth=0.9)
    axis.plot(found.x.numpy(), found.values.numpy(), color=colour, linewidth=1.7)
    rise = "never\nreaches 0.9" if math.isnan(found.rise) else f"reaches 0.9\nat x = {found.rise:.2f}"
    axis.text(-0.99, 1.4, f"overshoot\n{100 * found.overshoot:.1f} %\n{rise}", fontsize=8.5, va="top")
    axis.set_title(name, fontsize=10, color=colour, fontweight="bold")
    axis.set(xlim=(-1.05, 1.05), ylim=(-1.45, 1.45), xticks=(-1, 0, 1), yticks=(-1, 0, 1))


def _draw_factors(axis: Axes, order: int) -> None:
    for damping, (colour, name) in KERNELS.items():
        axis.plot(DAMPINGS[damping](order).numpy(), color=colour, linewidth=1.5, label=name.split(",")[0].split(" ")[0])
    axis.set_title("damping factors $g_k$", fontsize=10, fontweight="bold")
    axis.set_xlabel("k", fontsize=9, labelpad=0)
    axis.set(ylim=(0, 1.05), xlim=(0, order), yticks=(0, 0.5, 1), xticks=(0, order))
    axis.legend(fontsize=7, frameon=False, loc="upper right", bbox_to_anchor=(1.06, 0.96), handlelength=1.2)
