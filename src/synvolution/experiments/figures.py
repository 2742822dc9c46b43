"""``synvolution figures``: the drawings of the documentation and of a model's digraphs, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import matplotlib.style
import tyro
from matplotlib.figure import Figure

from synvolution.experiments.figure_architecture import draw_architecture
from synvolution.experiments.figure_digraph import digraphs_of, draw_digraph
from synvolution.experiments.figure_gibbs import draw_gibbs
from synvolution.experiments.figure_kernelution import draw_kernelution

#: What is left out so that the same figure is the same file: dates, versions, random names inside SVG.
METADATA: dict[str, dict[str, str | None]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
STYLE = {"svg.hashsalt": "synvolution", "mathtext.fontset": "dejavusans", "savefig.facecolor": "white"}


@dataclass(frozen=True)
class Request:
    """What a figure may depend on: the options of the command."""

    order: int = 31
    model: Path | None = None
    text: str | None = None


def _digraph(request: Request) -> dict[str, Figure]:
    if request.model is None or request.text is None:
        raise ValueError("a digraph is made by a model from a text: give --model DIR and --text TEXT")
    tokens, digraphs = digraphs_of(request.model, request.text)
    return {
        f"digraph-layer{layer}": draw_digraph(digraph, tokens, f"Layer {layer} of {len(digraphs)}: who mixes with whom")
        for layer, digraph in enumerate(digraphs, start=1)
    }


#: Every figure by name: the options → drawings by file name. To add one, write its function and add it here.
FIGURES: dict[str, Callable[[Request], dict[str, Figure]]] = {
    "gibbs": lambda request: {"gibbs": draw_gibbs(request.order)},
    "architecture": lambda request: {"architecture": draw_architecture()},
    "kernelution": lambda request: {"kernelution": draw_kernelution()},
    "digraph": _digraph,
}


def figures(
    what: tyro.conf.Positional[Literal["gibbs", "architecture", "kernelution", "digraph", "all"]] = "all",
    out: Path = Path("figures"),
    order: int = 31,
    model: Path | None = None,
    text: str | None = None,
) -> None:
    """Draw figures as PNG and SVG.

    Args:
        what: Which one: a step under the seven damping kernels (gibbs), the whole model (architecture), the steps of
            the mixing layer (kernelution), the digraphs that a saved model makes of a text (digraph), or all of these
            (the last one where --model and --text are given).
        out: Folder for the files; made if it is not there.
        order: Degree K of the interpolation in the gibbs figure.
        model: Folder of a saved model with its tokenizer, for digraph.
        text: Text to draw the digraphs of.
    """
    if what != "all" and what not in FIGURES:
        raise ValueError(f"unknown figure {what!r}: choose one of {', '.join(FIGURES)}, all")
    asked = model is not None or text is not None
    if asked and what not in ("digraph", "all"):
        raise ValueError(f"--model and --text are for the figure digraph: leave them out with {what}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file: give a folder")
    names = [name for name in FIGURES if name != "digraph" or asked] if what == "all" else [what]
    request = Request(order, model, text)
    # the reader's own matplotlib settings would change the drawings; they come back afterwards
    with matplotlib.style.context(["default", STYLE], after_reset=True):
        for name in names:
            for file, figure in FIGURES[name](request).items():
                save(figure, out / file)


def save(figure: Figure, path: Path) -> None:
    """Write ``path``.png and ``path``.svg, the same bytes each time, and say so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for kind, metadata in METADATA.items():
        target = path.with_name(f"{path.name}.{kind}")
        figure.savefig(target, format=kind, dpi=150, metadata=metadata)
        print(f"written: {target}")
