"""LongDoc16K and LongDoc32K: arXiv papers of four subjects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from synvolution.data.archives import files_in
from synvolution.data.options import DataOptions
from synvolution.data.rows import Reading, Row

CLASSES = ["cs.AI", "cs.NE", "math.AC", "math.GR"]

#: Subjects in square brackets, as arXiv prints them in the margin: they give the class away.
_TAG = re.compile(r"\[\s*(?:[a-z-]+(?:\.[A-Za-z-]{2,})?)(?:(?:\s*[;,]\s*|\s+)[a-z-]+\.[A-Za-z-]{2,})*\s*\]")
_SUBJECT = re.compile(r"(?:cs|math|stat|physics|q-bio|q-fin|econ|eess|astro-ph|cond-mat|hep-[a-z]+|quant-ph|nlin)\b")


def read(source: Path | None, options: DataOptions) -> Reading:
    """One folder per class (cs.AI, cs.NE, math.AC, math.GR) with one text file per paper, or a tar of them."""
    if source is None:
        raise ValueError("longdoc needs its data")
    reading = Reading(lambda: iter(()), "characters", CLASSES, facts={"source": str(source), "tags stripped": 0})
    reading.rows = lambda: _rows(source, reading, options)
    return reading


def without_tags(text: str) -> tuple[str, int]:
    """The text without tags of arXiv subjects, and how many there were. Other brackets stay.

    Example:
        >>> without_tags("arXiv:1.2v1 [cs.AI] 3 May [12] [cs.NE cs.LG] see [math.GR] and [abc]")
        ('arXiv:1.2v1  3 May [12]  see  and [abc]', 3)
    """
    removed = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal removed
        if _SUBJECT.search(match[0]) is None:
            return match[0]
        removed += 1
        return ""

    return _TAG.sub(replace, text), removed


def _rows(source: Path, reading: Reading, options: DataOptions) -> Iterator[Row]:
    classes = {name.lower(): name for name in CLASSES}
    number = 0
    for name, content in files_in(source, lambda name: name.endswith(".txt") and _class_of(name) in classes):
        number += 1
        text = content.decode("utf-8", errors="replace")
        if "\ufffd" in text:
            reading.facts["files with bytes that are no UTF-8"] = (
                reading.facts.get("files with bytes that are no UTF-8", 0) + 1
            )
        text, removed = without_tags(text)
        reading.facts["tags stripped"] += removed
        yield Row(text, classes[_class_of(name)], identity=name, place=f"{source}: {name}")
    if number == 0:
        raise ValueError(f"{source} has no text file in a folder {', '.join(CLASSES)}")


def _class_of(name: str) -> str:
    parts = name.lower().split("/")
    return parts[-2] if len(parts) > 1 else ""
