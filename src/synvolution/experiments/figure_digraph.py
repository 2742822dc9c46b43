"""The digraphs that a model makes of a text, as heat maps over its tokens."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from synvolution.experiments.diagram import magnitudes, name_scale, unit_circle
from synvolution.nn import Digraph

#: More tokens than this cannot be told apart in a picture, and the dense matrix grows with their square.
MOST_TOKENS = 512

#: Characters that cannot be seen, and what stands for them.
VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"}

#: Width in inches of the heat map of one head, and of two side by side.
WIDTHS = {1: 6.4, 2: 4.8}


def digraphs_of(directory: Path, text: str) -> tuple[list[str], list[Digraph]]:
    """Tokens of a text and the digraph of each layer of a saved model.

    Args:
        directory: a model with its tokenizer, as ``save_pretrained`` wrote them; only safetensors are read.
        text: up to ``MOST_TOKENS`` tokens.

    Returns:
        N tokens, and one :class:`~synvolution.nn.Digraph` per layer, of a batch of one.
    """
    if not directory.is_dir():
        raise ValueError(f"--model {directory} is no folder: give one that save_pretrained wrote")
    from transformers import AutoConfig, AutoTokenizer  # here, since the other figures do without it

    from synvolution import models

    name = (AutoConfig.from_pretrained(directory).architectures or ["model without a name"])[0]
    if name not in models.__all__:
        raise ValueError(f"--model {directory} is a {name}: only a Converter makes digraphs")
    tokenizer = AutoTokenizer.from_pretrained(directory)
    encoded = tokenizer(text, return_tensors="pt")
    tokens = [str(token) for token in tokenizer.convert_ids_to_tokens(encoded["input_ids"][0].tolist())]
    _check_length(len(tokens))
    model = getattr(models, name).from_pretrained(directory, use_safetensors=True).eval()
    return tokens, model.digraphs(encoded["input_ids"].long(), encoded.get("attention_mask"))


def draw_digraph(digraph: Digraph, tokens: Sequence[str], title: str) -> Figure:
    """|Φ^{-1} e^{iφ} Φ| over the tokens, from column to row, and the eigenphases on the unit circle, for each head.

    Args:
        digraph: of a batch of one: operator (1, N, N) or (1, H, N, N).
        tokens: N names; invisible characters and those that the font lacks are spelt out.
        title: of the figure.

    Example:
        >>> import torch
        >>> from synvolution.nn import Kernelution
        >>> found = Kernelution(8, num_heads=2).digraph(torch.randn(1, 5, 8))
        >>> len(draw_digraph(found, list("a$b c"), "two heads").axes)  # two of each, and the scale
        5
    """
    operator, phases = _heads(digraph)
    if operator.shape[-1] != len(tokens):
        raise ValueError(f"{len(tokens)} tokens for a digraph of {operator.shape[-1]} positions: give one for each")
    _check_length(len(tokens))
    heads = len(operator)
    columns = min(heads, max(WIDTHS))
    rows, width = math.ceil(heads / columns), WIDTHS[columns]
    figure = Figure(figsize=(columns * width, rows * (width + 1.6) + 0.9), layout="constrained")
    figure.suptitle(title, fontsize=12, parse_math=False)
    grid = figure.subplots(2 * rows, columns, squeeze=False, height_ratios=[width, 1.4] * rows)
    for axis in grid.flat:
        axis.set_axis_off()
    for head in range(heads):
        row, column = 2 * (head // columns), head % columns
        _draw_weights(grid[row, column], operator[head], tokens, width)
        _draw_phases(grid[row + 1, column], phases[head])
        if heads > 1:
            grid[row, column].set_title(f"head {head + 1}", fontsize=10)
    bar = figure.colorbar(grid[0, 0].images[0], ax=list(grid.flat), location="bottom", aspect=50, shrink=0.6, pad=0.02)
    name_scale(bar, 8)
    step = _label_step(tokens, width)
    named = "" if step == 1 else f"; one label for {step} tokens"
    bar.set_label(r"weight $|Φ^{-1}e^{ip(Λ)}Φ|$ of the edge from column to row" + named, fontsize=9)
    return figure


def _heads(digraph: Digraph) -> tuple[Tensor, Tensor]:
    """Operator (H, N, N) and eigenphases (H, N) of a batch of one."""
    operator, phases = digraph.operator.detach().cpu(), digraph.eigenphases.detach().cpu()
    if operator.ndim not in (3, 4) or operator.shape[0] != 1:
        raise ValueError(
            f"the operator has shape {tuple(operator.shape)}: expected (1, N, N) or (1, H, N, N), one sequence alone"
        )
    return (operator, phases) if operator.ndim == 3 else (operator[0], phases[0])


def _check_length(count: int) -> None:
    if not 1 <= count <= MOST_TOKENS:
        raise ValueError(f"{count} tokens: a digraph is drawn for 1 to {MOST_TOKENS}; change the text")


def _draw_weights(axis: Axes, operator: Tensor, tokens: Sequence[str], width: float) -> None:
    axis.set_axis_on()
    magnitudes(axis, operator)
    places = range(0, len(tokens), _label_step(tokens, width))
    names = [spell(tokens[place]) for place in places]
    turn = 90 if max(map(len, names)) > 1 else 0
    axis.set_xticks(places, names, fontsize=7, rotation=turn, parse_math=False)
    axis.set_yticks(places, names, fontsize=7, parse_math=False)
    axis.tick_params(length=2, pad=2)


def _label_step(tokens: Sequence[str], width: float) -> int:
    """Every how many tokens one is named: about nine labels fit on an inch."""
    return math.ceil(len(tokens) / int(9 * width))


def _draw_phases(axis: Axes, phases: Tensor) -> None:
    unit_circle(axis, phases)
    least, most = (round(phase.item(), 2) + 0.0 for phase in (phases.min(), phases.max()))
    axis.text(1.45, 0, f"eigenphases\n{least:.2f} … {most:.2f} rad", fontsize=8, va="center")


def spell(token: str, longest: int = 12) -> str:
    r"""A token as it can be seen: blanks by symbols, bytes as characters, what the font lacks by its number; cut.

    Example:
        >>> spell("a b"), spell("\x00"), spell("<0x61>"), spell("<0xC3>"), spell("incomprehensible")
        ('a␣b', '\\x00', 'a', '\\xc3', 'incomprehen…')
    """
    if byte := re.fullmatch("<0x([0-9A-F]{2})>", token):  # how tokenizers name bytes
        value = int(byte[1], 16)
        token = chr(value)
        if value > 127:
            return _escape(token)
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    shown = "".join(
        VISIBLE[c] if c in VISIBLE else c if c.isprintable() and font.get_char_index(ord(c)) else _escape(c)
        for c in token
    )
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
