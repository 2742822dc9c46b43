"""How many parameters each mixer has, at the paper's sizes: ``python -m synvolution.nn.mixers.parameters``."""

from __future__ import annotations

from typing import NamedTuple

from synvolution.nn.block import block_around
from synvolution.nn.mixers import MIXERS, build_mixer


class Size(NamedTuple):
    """Width D, features of the feed-forward network, longest sequence."""

    dim: int
    hidden: int
    max_length: int


#: Of the paper's configuration tables: the smallest, the middle and the largest.
PAPER_SIZES: dict[str, Size] = {
    "ListOps": Size(32, 128, 2000),
    "Text": Size(64, 256, 4096),
    "LongDoc16K": Size(128, 512, 16384),
}


class Count(NamedTuple):
    """Parameters of the mixer alone, and of the block around it with feed-forward network and norms."""

    mixer: int
    block: int


def parameter_counts(dim: int, hidden: int, max_length: int, *, num_heads: int = 2) -> dict[str, Count]:
    """Parameters of every mixer with its default options.

    Args:
        dim: number of features D.
        hidden: features of the feed-forward network.
        max_length: longest sequence.
        num_heads: H; the paper's baselines have 2 (the number matters for Sinkhorn, Synthesizer and Converter alone).

    Example:
        >>> parameter_counts(8, 32, 100)["vanilla"]
        Count(mixer=288, block=842)
    """
    counts = {}
    for name in MIXERS:
        mixer = build_mixer(name, dim, num_heads=num_heads, max_length=max_length)
        block = block_around(mixer, dim, hidden)
        counts[name] = Count(*(sum(p.numel() for p in part.parameters()) for part in (mixer, block)))
    return counts


def table() -> str:
    """The counts at the paper's sizes as a Markdown table: mixer, and in brackets the whole block.

    Example:
        >>> table().splitlines()[0]
        '| mixer | ListOps | Text | LongDoc16K |'
    """
    columns = [parameter_counts(*size) for size in PAPER_SIZES.values()]
    lines = [f"| mixer | {' | '.join(PAPER_SIZES)} |", f"|---|{'---:|' * len(PAPER_SIZES)}"]
    for name in MIXERS:
        cells = [f"{counts[name].mixer:,} ({counts[name].block:,})" for counts in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
