"""The paper's results, from ``published.json``: the one place where they are written down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class PublishedRow:
    """A model of a table, or an ablation.

    Args:
        row: our name: a mixer's, an ablation's, or that of a model we do not have.
        name: as printed.
        values: accuracy in percent by task.
        average: as printed; None where the table has no such column.
        average_remark: what is to be said of a printed average that is not the mean.
    """

    row: str
    name: str
    values: dict[str, float]
    average: float | None = None
    average_remark: str | None = None


@dataclass(frozen=True)
class PublishedTable:
    """A table of accuracies: tasks by our name with the printed one, rows in the paper's order.

    Args:
        label: of the table in the paper.
        title: one line.
        tasks: printed names by ours.
        rows: the paper's.
        elsewhere: rows that other papers published for these tasks.
    """

    label: str
    title: str
    tasks: dict[str, str]
    rows: tuple[PublishedRow, ...]
    elsewhere: tuple[PublishedRow, ...] = ()

    @property
    def averaged(self) -> bool:
        """Whether it has a column of averages."""
        return any(row.average is not None for row in self.rows)


@dataclass(frozen=True)
class PublishedAttention:
    """A line of the overview of attention mechanisms; ``mixers`` are those of ours that the paper counts to it."""

    name: str
    mixers: tuple[str, ...]
    matrix: str
    time: str
    time_latex: str
    space: str
    space_latex: str


@dataclass(frozen=True)
class PublishedKernel:
    """A line of the table of kernel functions; ``damping`` is its name in ``spectral.DAMPINGS``."""

    damping: str
    name: str
    formula: str
    formula_latex: str
    hyperparameters: str
    hyperparameters_latex: str
    remarks: str


@dataclass(frozen=True)
class Published:
    """All of it: tables of accuracies by name, the overview of attention, the kernels."""

    accuracy: dict[str, PublishedTable]
    attention: tuple[PublishedAttention, ...]
    kernels: tuple[PublishedKernel, ...]


@cache
def published() -> Published:
    """Read the file that is shipped with the package.

    Example:
        >>> lra = published().accuracy["lra"]
        >>> lra.rows[-1].name, lra.rows[-1].values["listops"]
        ('Converter (ours)', 60.38)
    """
    text = resources.files("synvolution.experiments").joinpath("published.json").read_text(encoding="utf-8")
    content = json.loads(text)
    return Published(
        accuracy={name: _table(**table) for name, table in content["accuracy"].items()},
        attention=tuple(PublishedAttention(**{**row, "mixers": tuple(row["mixers"])}) for row in content["attention"]),
        kernels=tuple(PublishedKernel(**row) for row in content["kernels"]),
    )


def _table(
    label: str, title: str, tasks: dict[str, str], rows: list[dict], elsewhere: list[dict] | None = None
) -> PublishedTable:
    both = (tuple(PublishedRow(**row) for row in part) for part in (rows, elsewhere or []))
    return PublishedTable(label, title, tasks, *both)
