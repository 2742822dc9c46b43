"""How each row looks in every chart of a report: colour, line and marker, and the legend in HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass

from synvolution.experiments.paper_tables import OWN
from synvolution.experiments.published import published
from synvolution.experiments.report_svg import FOREGROUND

#: Colours of Okabe and Ito, which the colour-blind can tell apart, without those that vanish on white or on black.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
#: A line's dashes and its marker; each goes through all colours before the next begins.
STYLES = (((), "o"), ((5, 2), "s"), ((1.5, 1.5), "^"), ((6, 1.5, 1.5, 1.5), "D"))

_SHAPES = {
    "o": '<circle cx="16" cy="6" r="3.5"/>',
    "s": '<rect x="12.8" y="2.8" width="6.4" height="6.4"/>',
    "^": '<path d="M16 1.8 20 9.2H12Z"/>',
    "D": '<path d="M16 1.5 20.5 6 16 10.5 11.5 6Z"/>',
}


@dataclass(frozen=True)
class Look:
    """How a row is drawn; ``name`` is how it is called."""

    name: str
    colour: str
    dashes: tuple[float, ...]
    marker: str
    width: float = 1.4


def row_names() -> dict[str, str]:
    """Names of the rows that are known, in the order of the paper's tables, then ours.

    Example:
        >>> row_names()["luna"], row_names()["kernelution"], row_names()["none"]
        ('Luna-256', 'Converter', 'no mixer (control)')
    """
    lra, ablations = (published().accuracy[name] for name in ("lra", "ablations"))
    printed = {entry.row: entry.name for entry in (*ablations.rows, *lra.rows)}
    return {**printed, **OWN}


def looks_of(rows: Iterable[str]) -> dict[str, Look]:
    """A look for every row: known ones have the same in every report, others share what is left.

    Example:
        >>> looks = looks_of(["mine", "fnet"])
        >>> looks["fnet"] == looks_of(["fnet"])["fnet"], looks["mine"].name
        (True, 'mine')
    """
    names = row_names()
    others = [row for row in names if row != "kernelution"]
    others += sorted(set(rows) - names.keys())
    looks = {"kernelution": Look(names["kernelution"], FOREGROUND, (), "o", 2.4)}
    for place, row in enumerate(others):
        dashes, marker = STYLES[place // len(COLOURS) % len(STYLES)]
        looks[row] = Look(names.get(row, row), COLOURS[place % len(COLOURS)], dashes, marker)
    return looks


def legend(rows: Iterable[str], looks: dict[str, Look]) -> str:
    """The legend of charts, in the order of ``looks``.

    Example:
        >>> "<b>" in legend(["<b>"], looks_of(["<b>"]))
        False
    """
    found = set(rows)
    items = "".join(
        f"<li>{_sample(look)}{html.escape(look.name)}</li>\n" for row, look in looks.items() if row in found
    )
    return f'<ul class="legend">\n{items}</ul>\n'


def _sample(look: Look) -> str:
    colour = "currentColor" if look.colour == FOREGROUND else look.colour
    dashes = f' stroke-dasharray="{" ".join(str(2 * length) for length in look.dashes)}"' if look.dashes else ""
    line = f'<path d="M0 6H32" stroke="{colour}" stroke-width="{look.width}"{dashes}/>'
    return f'<svg viewBox="0 0 32 12" aria-hidden="true"><g fill="{colour}">{line}{_SHAPES[look.marker]}</g></svg>'
