"""Rows of prepared data for a data loader, each with a name for messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from datasets import Dataset


class Rows(torch.utils.data.Dataset[dict[str, Any]]):
    """Rows of a split as numpy arrays, with ``row_id``: its own where the data names rows, else the row's number.

    Example:
        >>> rows = Rows(Dataset.from_dict({"input_ids": [[1, 2], [3]], "label": [0, 1], "length": [2, 1]}))
        >>> rows[1]["row_id"], rows[1]["input_ids"].tolist(), rows.lengths
        ('1', [3], [2, 1])
    """

    def __init__(self, data: Dataset) -> None:
        self.data = data.with_format("numpy")
        self.lengths: list[int] = [int(length) for length in data["length"]]

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Several rows at once, as the data loader asks for a batch."""
        columns = self.data[list(indices)]
        names = columns.get("row_id", indices)
        rows = [{name: values[k] for name, values in columns.items()} for k in range(len(indices))]
        return [{**row, "row_id": str(name)} for row, name in zip(rows, names, strict=True)]
