"""Griffe extension for the site: our docstrings as its parser of Google's style wants them."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth):`(~?)([\w.]+)`")


def _link(role: re.Match[str]) -> str:
    """A role of Sphinx as a link, where it names the whole path; else as code."""
    path = role[2]
    shown = path.rsplit(".", 1)[-1] if role[1] else path
    return f"[`{shown}`][{path}]" if path.startswith("synvolution.") else f"`{shown}`"


def rewritten(text: str) -> str:
    """A docstring with sections and links that the site understands.

    Example:
        >>> rewritten("Calls :func:`~synvolution.synvolve`.")
        'Calls [`synvolve`][synvolution.synvolve].'
    """
    return ROLE.sub(_link, re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE))


def comment_above(lines: list[str], number: int) -> str:
    """The comment that begins with ``#:`` right above a line, which describes a constant.

    Example:
        >>> comment_above(["#: The answer to", "#: everything.", "ANSWER = 42"], 3)
        'The answer to everything.'
    """
    found: list[str] = []
    for line in reversed(lines[: number - 1]):
        if not line.startswith("#:"):
            break
        found.insert(0, line[2:].strip())
    return " ".join(found)


class Docstrings(griffe.Extension):
    """Rewrites every docstring after it was read, and finds those of constants."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = rewritten(obj.docstring.value)
        elif (
            obj.is_attribute and obj.lineno and (said := comment_above(obj.lines_collection[obj.filepath], obj.lineno))
        ):
            obj.docstring = griffe.Docstring(rewritten(said), parent=obj)
