"""The paper's overviews, of attention mechanisms and of damping kernels, beside what is measured here."""

from __future__ import annotations

import math

from synvolution.experiments.bench_mixers import Growth, growths
from synvolution.experiments.figure_gibbs import KERNELS, approximate_step
from synvolution.experiments.mixer_step import OK
from synvolution.experiments.published import published
from synvolution.experiments.results_folder import Complexity
from synvolution.experiments.tables import Cell, Column, Row, Table

#: Degree at which the kernels are measured.
ORDER = 31


def attention_table(complexity: Complexity | None) -> Table:
    """Matrix, time and space as the paper states them, and the exponents of N that were measured.

    Example:
        >>> table = attention_table(None)
        >>> [cell.value for cell in table.rows[-1].cells]
        ['Synvolution', 'Learnable, Full-Rank, and Dense', 'O(ND log N + ND²)', 'O(ND)', '–', '–']
    """
    found = {} if complexity is None else {growth.mixer: growth for growth in growths(complexity.measurements)}
    rows = []
    for entry in published().attention:
        own = [found[name] for name in entry.mixers if name in found]
        stated = (Cell(entry.time, latex=entry.time_latex), Cell(entry.space, latex=entry.space_latex))
        rows.append(
            Row((Cell(entry.name), Cell(entry.matrix), *stated, _exponents(own, "time"), _exponents(own, "memory")))
        )
    listed = {name for entry in published().attention for name in entry.mixers}
    for name in sorted(found.keys() - listed):
        blank = (Cell("–"),) * 3
        measured = (Cell(_power(getattr(found[name], part)) or "–") for part in ("time", "memory"))
        rows.append(Row((Cell(name), *blank, *measured), "measured, not in the paper's overview"))
    columns = (*(Column(label, "text") for label in ("Method", "Attention matrix", "Time, stated", "Space, stated")),)
    columns += (Column("Time, measured", "text"), Column("Memory, measured", "text"))
    title = "Attention and attention-like mechanisms: costs as the paper states them and as measured"
    return Table("attention", title, columns, tuple(rows), _note(complexity))


def _exponents(growths: list[Growth], part: str) -> Cell:
    known = [(growth.mixer, _power(getattr(growth, part))) for growth in growths]
    return Cell(", ".join(f"{name} {power}" for name, power in known if power) or "–")


def _power(exponent: float | None) -> str:
    return "" if exponent is None else f"N^{exponent:.2f}"


def _note(complexity: Complexity | None) -> tuple[str, ...]:
    if complexity is None:
        return ("The costs were not measured: – stands where the exponents would be.",)
    lengths = sorted({m.length for m in complexity.measurements if m.status == OK})
    machine = complexity.machine
    return (
        "Measured: exponents of N fitted to time and peak memory of a whole training step (embedding, position "
        f"embedding {complexity.settings.get('position', '?')}, mixer, feed-forward network, backward, update) at N = "
        f"{', '.join(f'{n:,}' for n in lengths) or 'none'}; D = {complexity.settings.get('dim', '?')}, batch "
        f"{complexity.settings.get('batch', '?')}, on {machine.get('processor', '?')}, {machine.get('threads', '?')} "
        "threads. What ran out of memory or time is left out of the fit. What does not depend on the mixer hides a "
        "part of its growth at short lengths; vanilla is torch's fused attention, which keeps no N × N matrix.",
    )


def kernel_table() -> Table:
    """The seven kernels, and what they make of a step: how far it overshoots, and how steeply it rises.

    Example:
        >>> [cell.value for cell in kernel_table().rows[0].cells]
        ['Dirichlet', '1', 'None', 'least favorable choice', '–', '28.3 %', '0.04']
    """
    rows = []
    for entry in published().kernels:
        step = approximate_step(entry.damping, ORDER)
        used = KERNELS[entry.damping][1].partition(", ")[2] or "–"
        cells = (
            Cell(entry.name),
            Cell(entry.formula, latex=entry.formula_latex),
            Cell(entry.hyperparameters, latex=entry.hyperparameters_latex),
            Cell(entry.remarks),
            Cell(used),
            Cell(f"{100 * step.overshoot:.1f} %"),
            Cell("never" if math.isnan(step.rise) else f"{step.rise:.2f}"),
        )
        rows.append(Row(cells))
    columns = [Column(label, "text") for label in ("Kernel", "Damping factor", "Hyperparameters", "Remarks", "Here")]
    columns += [Column("Overshoot"), Column("0.9 reached at")]
    note = (
        "Formulas and remarks are the paper's; overshoot and rise are measured on the interpolant of sign(x) with "
        f"degree K = {ORDER}, with the hyperparameters in the column before them.",
    )
    return Table("kernels", "Damping kernels of the kernel polynomial method", tuple(columns), tuple(rows), note)
