"""Figures as SVG inside a page: names made unique, no links to anywhere, colours that follow the page's."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

import matplotlib.style
from matplotlib.figure import Figure

#: Stands for the page's text colour until the SVG is put into it; nearly black, and used for nothing else.
FOREGROUND = "#010203"
#: What the page's style sheet decides instead: what would be black, dark grey and light grey on white.
_PAGE = {FOREGROUND: "currentColor", "#000000": "currentColor", "#595959": "var(--soft)", "#cccccc": "var(--faint)"}
_OURS = ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color")

#: Settings of every chart. The reader's own matplotlib settings have no effect.
STYLE: dict[str, Any] = {
    **dict.fromkeys(_OURS, FOREGROUND),
    "svg.fonttype": "none",
    "svg.hashsalt": "synvolution",
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#808080",
    "grid.alpha": 0.25,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@contextmanager
def chart_style(mathematics: bool = False) -> Iterator[None]:
    """Draw and save inside of this; without ``mathematics`` a $ in a name is a $."""
    settings = {**STYLE, "text.parse_math": mathematics}
    with matplotlib.style.context(["default", settings], after_reset=True):
        yield


def inline_svg(draw: Callable[[], Figure | None], name: str, title: str, mathematics: bool = False) -> str:
    """A drawing as an ``svg`` element for an HTML page.

    Args:
        draw: makes the figure; None makes no text.
        name: before every id inside, so that several can stand in one page.
        title: what is to be seen, for those who do not see it.
        mathematics: whether texts between $ are formulas.

    Example:
        >>> svg = inline_svg(lambda: Figure(figsize=(1, 1)), "empty", "a <b>")
        >>> svg[:79]
        '<svg viewBox="0 0 72 72" version="1.1" role="img" aria-labelledby="empty-title"'
        >>> "a &lt;b&gt;" in svg, "http" in svg
        (True, False)
    """
    file = io.StringIO()
    with chart_style(mathematics):
        figure = draw()
        if figure is None:
            return ""
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ElementTree.fromstring(file.getvalue())
    _clean(root, name)
    root.attrib.update({"role": "img", "aria-labelledby": f"{name}-title"})
    label = ElementTree.Element("title", {"id": f"{name}-title"})
    label.text = title
    root.insert(0, label)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(root: ElementTree.Element, name: str) -> None:
    """Leave namespaces, sizes, metadata and style sheets out; make ids the chart's own; greys are the page's."""
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(key): _renamed(_local(key), value, name) for key, value in element.attrib.items()}
    for size in ("width", "height"):
        root.attrib.pop(size, None)


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _renamed(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    value = re.sub(r"url\(#([\w-]+)\)", rf"url(#{name}-\1)", value)
    for colour, own in _PAGE.items():
        value = value.replace(colour, own)
    return value
