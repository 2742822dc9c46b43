"""Markdown extension for the site: subscripts and superscripts in formulas that are written in plain characters.

``G_j``, ``x_{N−1}``, ``Φ^H`` and ``e^{iφ}`` become what they mean, in prose and in indented blocks. The pages need no
formula engine, no script and no network for it, and read well as plain text.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

#: What an index hangs on: a letter that is not part of a word (perhaps with a bar), a closing bracket, a product sign.
BASE = r"(?:(?<=(?<!\w)[^\W\d_])|(?<=(?<!\w)[^\W\d_]\u0304)|(?<=[)\]|‖∏]))"
LETTER = "[A-Za-z0-9Α-Ωα-ω]"
#: The braces' content may hold one more pair.
BRACED = r"\{(?:[^{}]|\{[^{}]*\})*\}"
INDEX = re.compile(
    rf"{BASE}_({BRACED}|{LETTER}{{1,3}}(?!{LETTER}))|(?<=\S)\^({BRACED}|\([^()]*\)|{LETTER}(?!{LETTER}))"
)


def parts(text: str) -> list[tuple[str, str]]:
    """Cut a formula into plain text, "sub" and "sup".

    Example:
        >>> parts("x_{N−1} = Φ^H y")
        [('', 'x'), ('sub', 'N−1'), ('', ' = Φ'), ('sup', 'H'), ('', ' y')]
        >>> parts("w_k² f^(ν)")
        [('', 'w'), ('sub', 'k'), ('', '² f'), ('sup', '(ν)')]
        >>> parts("num_heads")
        [('', 'num_heads')]
    """
    found: list[tuple[str, str]] = []
    end = 0
    for match in INDEX.finditer(text):
        found += [("", text[end : match.start()]), named(match)]
        end = match.end()
    return [part for part in (*found, ("", text[end:])) if part[1]]


def named(match: re.Match[str]) -> tuple[str, str]:
    """Element and content of a match."""
    content = match[1] or match[2]
    return ("sub" if match[1] else "sup"), content[1:-1] if content[0] == "{" else content


class IndexProcessor(InlineProcessor):
    """Indices in prose."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:
        """→ the element and where it stands."""
        tag, content = named(m)
        element = Element(tag)
        element.text = AtomicString(content)
        return element, m.start(0), m.end(0)


class FormulaProcessor(Treeprocessor):
    """Indented blocks are formulas: code stands between fences."""

    def run(self, root: Element) -> None:
        """Put elements for the indices into each block."""
        for block in root.iter("pre"):
            if len(block) != 1 or block[0].tag != "code":
                continue
            text = (block[0].text or "").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
            block.clear()
            block.set("class", "formula")
            line = SubElement(block, "span")
            for tag, content in parts(text):
                element = SubElement(line, tag or "span")
                element.text = AtomicString(content)


class FormulaExtension(Extension):
    """Both of these."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register: in prose after code and escapes, before emphasis; blocks before they are highlighted."""
        index = IndexProcessor(INDEX.pattern, md)
        md.inlinePatterns.register(index, "formula_index", 175)
        md.treeprocessors.register(FormulaProcessor(md), "formula_block", 100)


def makeExtension(**options: object) -> FormulaExtension:
    """What Markdown calls."""
    return FormulaExtension(**options)
