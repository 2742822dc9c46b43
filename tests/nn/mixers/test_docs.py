"""docs/mixers.md says what the code does: every mixer, what padding does to it, its parameters, its package."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch

from synvolution.nn import MIXERS
from synvolution.nn.mixers import PADDING_MATTERS
from synvolution.nn.mixers.parameters import PAPER_SIZES, table

PAGE = Path(__file__).parents[3] / "docs" / "mixers.md"


def between(marker: str) -> list[str]:
    """The lines of a marked table."""
    text = PAGE.read_text(encoding="utf-8").split(f"<!-- {marker} -->\n", 1)[1]
    return text.split("<!-- end -->", 1)[0].strip().splitlines()


def rows() -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in between("mixers")[2:]]
    return {row[0]: row[1:] for row in cells}


def test_every_mixer_has_its_row_in_the_order_of_the_table() -> None:
    assert list(rows()) == list(MIXERS)


@pytest.mark.parametrize("name", MIXERS)
def test_padding(name: str) -> None:
    assert rows()[name][-1] == PADDING_MATTERS.get(name, "exact")


@pytest.mark.parametrize("name", MIXERS)
def test_longest_sequence(name: str) -> None:
    """ "needs `max_length`" stands where building without it fails, and nowhere else."""
    try:
        MIXERS[name](8)
    except ValueError:
        needed = True
    else:
        needed = False
    assert ("needs `max_length`" in rows()[name][-2]) == needed


def test_parameters() -> None:
    assert between("parameters") == table().splitlines()


def test_the_example_runs() -> None:
    example = PAGE.read_text(encoding="utf-8").split("```python\n", 1)[1].split("```", 1)[0]
    names: dict[str, object] = {}
    exec(example, names)
    assert isinstance(names["y"], torch.Tensor)
    assert names["y"].shape == (2, 500, 64)


def test_sizes_are_those_of_the_text() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    for name, size in PAPER_SIZES.items():
        assert f"{name}: " in text
        assert f"{size.max_length:,}" in text


@pytest.mark.parametrize("name", MIXERS)
def test_each_file_says_where_it_comes_from(name: str) -> None:
    """Its docstring cites the paper and says whether it is ours or an adapter, and of what."""
    if name in ("kernelution", "synvolution", "none"):
        return
    said = importlib.import_module(f"synvolution.nn.mixers.{name}").__doc__ or ""
    assert "et al., " in said
    source = rows()[name][1]
    if source.startswith("ours"):
        assert "Ours" in said
    else:
        package, version = source.split()
        assert f"Adapter over {'the package ' if package == 'linformer' else ''}{package} ({version})" in said
