"""Tables as values, and how they are written: Markdown, LaTeX, CSV, HTML. All text is escaped for where it goes."""

from __future__ import annotations

import csv
import html
import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

#: More columns than this are scaled to the width of a page in LaTeX.
FITS = 5

_MARKDOWN = {"&": "&amp;", "<": "&lt;", ">": "&gt;", **{mark: f"\\{mark}" for mark in "\\|`*_[]$#~"}}
_LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}"},
    **{"–": "--", "—": "---", "…": r"\ldots{}", "−": "$-$", "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$"},
    **{"²": "$^2$", "√": r"$\surd$", "½": r"$\frac12$", "≥": r"$\geq$", "≤": r"$\leq$", "∈": r"$\in$", "→": r"$\to$"},
    **{"ξ": r"$\xi$", "π": r"$\pi$", "η": r"$\eta$", "ℕ": r"$\mathbb{N}$", "ℝ": r"$\mathbb{R}$"},
}


@dataclass(frozen=True)
class Column:
    """A heading and what stands below it: text, numbers, or published numbers beside ours ("compared")."""

    label: str
    kind: Literal["text", "number", "compared"] = "number"


@dataclass(frozen=True)
class Cell:
    """One entry.

    Args:
        value: what is shown; in a compared column our number.
        detail: its interval or spread.
        published: the number beside ours.
        marks, published_marks: numbers of footnotes to each, from 1.
        latex: the value for LaTeX, not escaped, where it is a formula.
    """

    value: str
    detail: str = ""
    published: str = ""
    marks: tuple[int, ...] = ()
    published_marks: tuple[int, ...] = ()
    latex: str | None = None


@dataclass(frozen=True)
class Row:
    """Cells, as many as columns; rows with the same section in a row stand under its name."""

    cells: tuple[Cell, ...]
    section: str = ""


@dataclass(frozen=True)
class Table:
    """A table with all that is to be known about it.

    Args:
        name: of its files.
        title: one line.
        columns: the headings; the first column names the row.
        rows: the entries.
        note: paragraphs below the title.
        footnotes: the first is number 1.

    Example:
        >>> columns = (Column("Model", "text"), Column("ListOps", "compared"))
        >>> cells = (Cell("Luna_256"), Cell("45.10", "43.0–47.2", "37.98"))
        >>> table = Table("lra", "Accuracy", columns, (Row(cells),))
        >>> print(table.to_markdown())
        **Accuracy**
        <BLANKLINE>
        | Model | ListOps |
        |---|---:|
        | Luna\\_256 | 37.98 / 45.10 (43.0–47.2) |
        <BLANKLINE>
        >>> print(table.to_csv(), end="")
        Model,ListOps published,ListOps ours,ListOps spread
        Luna_256,37.98,45.10,43.0–47.2
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: tuple[str, ...] = ()
    footnotes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(f"{self.name}: {len(row.cells)} cells for {len(self.columns)} columns")
            if any(
                not 1 <= mark <= len(self.footnotes)
                for cell in row.cells
                for mark in (*cell.marks, *cell.published_marks)
            ):
                raise ValueError(f"{self.name}: a mark without its footnote; there are {len(self.footnotes)}")

    def to_markdown(self) -> str:
        """With its title, notes and footnotes."""
        empty = " | " * (len(self.columns) - 1)
        lines = [f"| {' | '.join(markdown_text(column.label) for column in self.columns)} |"]
        lines += ["|" + "|".join("---" if column.kind == "text" else "---:" for column in self.columns) + "|"]
        for section, rows in self._sections():
            lines += [f"| *{markdown_text(section)}* {empty}|"] if section else []
            lines += [f"| {' | '.join(map(_markdown_cell, row.cells))} |" for row in rows]
        parts = [f"**{markdown_text(self.title)}**", *map(markdown_text, self.note), "\n".join(lines)]
        parts += ["\n".join(f"{n}. {markdown_text(text)}" for n, text in enumerate(self.footnotes, 1))]
        return "\n\n".join(filter(None, parts)) + "\n"

    def to_latex(self) -> str:
        """A float with booktabs' rules (packages booktabs, graphicx, amssymb)."""
        places = "".join("l" if column.kind == "text" else "c" for column in self.columns)
        lines = [f"\\begin{{tabular}}{{{places}}}", r"\toprule"]
        lines += [" & ".join(latex_text(column.label) for column in self.columns) + r" \\"]
        for section, rows in self._sections():
            lines += [r"\midrule"]
            if section:
                lines += [f"\\multicolumn{{{len(self.columns)}}}{{l}}{{\\emph{{{latex_text(section)}}}}} \\\\"]
            lines += [" & ".join(map(_latex_cell, row.cells)) + r" \\" for row in rows]
        lines += [r"\bottomrule", r"\end{tabular}"]
        if len(self.columns) > FITS:
            lines = [r"\resizebox{\textwidth}{!}{%", *lines[:-1], lines[-1] + "}"]
        notes = [latex_text(text) for text in self.note]
        notes += [f"\\textsuperscript{{{n}}} {latex_text(text)}" for n, text in enumerate(self.footnotes, 1)]
        below = [r"\par\smallskip", r"\raggedright\footnotesize", "\\par\n".join(notes)] if notes else []
        head = ["% needs the packages booktabs, graphicx and amssymb", r"\begin{table}[htbp]", r"\centering"]
        head += [f"\\caption{{{latex_text(self.title)}}}\\label{{tab:{self.name}}}"]
        return "\n".join([*head, *lines, *below, r"\end{table}"]) + "\n"

    def to_csv(self) -> str:
        """The entries alone: published and ours in columns of their own, the section in the last one."""
        compared = [column.kind == "compared" for column in self.columns]
        sections = any(row.section for row in self.rows)
        head = [
            text
            for column, both in zip(self.columns, compared, strict=True)
            for text in (
                [f"{column.label} {part}" for part in ("published", "ours", "spread")] if both else [column.label]
            )
        ]
        lines = [[*head, *(["section"] if sections else [])]]
        for row in self.rows:
            line = []
            for cell, both in zip(row.cells, compared, strict=True):
                line += [cell.published, cell.value, cell.detail] if both else [_with_detail(cell)]
            lines.append([*line, *([row.section] if sections else [])])
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows(lines)
        return file.getvalue()

    def to_html(self) -> str:
        """A ``section`` for a page: heading, notes, table, footnotes."""
        places = ['class="text"' if column.kind == "text" else "" for column in self.columns]
        head = "".join(
            f'<th scope="col" {place}>{html.escape(column.label)}</th>'
            for column, place in zip(self.columns, places, strict=True)
        )
        body = []
        for section, rows in self._sections():
            name = f'<tr><th colspan="{len(self.columns)}" class="section">{html.escape(section)}</th></tr>\n'
            body += ["<tbody>", name if section else "", *(self._html_row(row) for row in rows), "</tbody>"]
        notes = "".join(f"<p>{html.escape(plain(text))}</p>\n" for text in self.note)
        foot = "".join(
            f'<li id="{self.name}-{n}">{html.escape(plain(text))}</li>\n' for n, text in enumerate(self.footnotes, 1)
        )
        title = html.escape(self.title)
        return (
            f'<section class="table" id="table-{self.name}">\n<h3>{title}</h3>\n{notes}'
            f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">\n<table>\n'
            f"<thead><tr>{head}</tr></thead>\n{chr(10).join(filter(None, body))}\n</table>\n</div>\n"
            + (f'<ol class="footnotes">\n{foot}</ol>\n' if foot else "")
            + "</section>\n"
        )

    def _html_row(self, row: Row) -> str:
        first, *rest = (_html_cell(cell, self.name) for cell in row.cells)
        places = [' class="text"' if column.kind == "text" else "" for column in self.columns[1:]]
        cells = "".join(f"<td{place}>{text}</td>" for place, text in zip(places, rest, strict=True))
        return f'<tr><th scope="row">{first}</th>{cells}</tr>'

    def _sections(self) -> Iterator[tuple[str, list[Row]]]:
        for section, rows in itertools.groupby(self.rows, key=lambda row: row.section):
            yield section, list(rows)


def plain(text: str) -> str:
    """On one line, without control characters.

    Example:
        >>> plain(" two\\n lines\\x1b[31m ")
        'two lines [31m'
    """
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", text).strip()


def markdown_text(text: str) -> str:
    """What Markdown and HTML show as the text.

    Example:
        >>> markdown_text("a|b <i> _c_")
        'a\\\\|b &lt;i&gt; \\\\_c\\\\_'
    """
    return "".join(_MARKDOWN.get(character, character) for character in plain(text))


def latex_text(text: str) -> str:
    """What LaTeX shows as the text.

    Example:
        >>> latex_text("95 % of a_b")
        '95 \\\\% of a\\\\_b'
    """
    return "".join(_LATEX.get(character, character) for character in plain(text))


def _with_detail(cell: Cell) -> str:
    return f"{cell.value} ({cell.detail})" if cell.detail else cell.value


def _markdown_cell(cell: Cell) -> str:
    marks, beside = ("".join(f"<sup>{mark}</sup>" for mark in each) for each in (cell.marks, cell.published_marks))
    text = markdown_text(_with_detail(cell)) + marks
    return f"{markdown_text(cell.published)}{beside} / {text}" if cell.published else text


def _latex_cell(cell: Cell) -> str:
    marks, beside = (
        f"\\textsuperscript{{{','.join(map(str, each))}}}" if each else ""
        for each in (cell.marks, cell.published_marks)
    )
    text = (latex_text(_with_detail(cell)) if cell.latex is None else cell.latex) + marks
    return f"{latex_text(cell.published)}{beside} / {text}" if cell.published else text


def _html_cell(cell: Cell, table: str) -> str:
    marks, beside = (
        "".join(f'<sup><a href="#{table}-{mark}">{mark}</a></sup>' for mark in each)
        for each in (cell.marks, cell.published_marks)
    )
    detail = f' <span class="detail">({html.escape(plain(cell.detail))})</span>' if cell.detail else ""
    text = f"{html.escape(plain(cell.value))}{detail}{marks}"
    if not cell.published:
        return text
    number = cell.published.replace(".", "").isdigit()
    label = f"{'published ' if number else ''}{html.escape(cell.published)}{beside}"
    return f'<span class="ours">{text}</span><span class="published">{label}</span>'
