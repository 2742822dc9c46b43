"""From rows to a batch of tensors, padded to the longest of the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Collator:
    """Rows of prepared data → tensors, padded on the right to the longest row of the batch.

    A row's part of the batch is the same whatever its neighbours and wherever it stands. Columns that are not known
    ("length") are left out.

    Args:
        pad_token_id: id of the padding.
        pad_to_multiple_of: round lengths up to a multiple of this, for hardware that likes it.
        max_length: cut longer rows here, if given.
        keep_row_id: pass ``row_id`` on, as a list, for messages about single rows.

    Shape:
        ``input_ids`` (B, N) int64, ``attention_mask`` (B, N) int64, 1 where a position is real, ``labels`` (B,); for
        pairs ``input_ids_pair``, ``attention_mask_pair`` (B, M); ``input_values`` (B, N) float32 in place of ids.

    Example:
        >>> batch = Collator(0)([{"input_ids": [5, 6, 7], "label": 1}, {"input_ids": [8], "label": 0}])
        >>> batch["input_ids"].tolist(), batch["attention_mask"].tolist(), batch["labels"].tolist()
        ([[5, 6, 7], [8, 0, 0]], [[1, 1, 1], [1, 0, 0]], [1, 0])
    """

    pad_token_id: int = 0
    pad_to_multiple_of: int | None = None
    max_length: int | None = None
    keep_row_id: bool = False

    def __post_init__(self) -> None:
        if self.pad_to_multiple_of is not None and self.pad_to_multiple_of < 1:
            raise ValueError(f"pad_to_multiple_of is {self.pad_to_multiple_of}: expected at least 1")

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """A batch of rows as tensors."""
        if not rows:
            raise ValueError("no rows to put into a batch")
        batch: dict[str, Any] = {}
        for column, mask in (
            ("input_ids", "attention_mask"),
            ("input_values", "attention_mask"),
            ("input_ids_pair", "attention_mask_pair"),
        ):
            if column in rows[0]:
                batch[column], batch[mask] = self._padded([self._sequence(row, column) for row in rows], column)
        if not batch:
            raise ValueError(f"the rows have the columns {', '.join(rows[0])}: expected input_ids or input_values")
        label = next((name for name in ("label", "labels") if name in rows[0]), None)
        if label is not None:
            batch["labels"] = torch.tensor([int(row[label]) for row in rows])
        if self.keep_row_id and "row_id" in rows[0]:
            batch["row_id"] = [row["row_id"] for row in rows]
        return batch

    def _sequence(self, row: Mapping[str, Any], column: str) -> np.ndarray[Any, Any]:
        sequence = np.asarray(row[column])[: self.max_length]
        if sequence.ndim != 1 or len(sequence) == 0:
            name = f" {row['row_id']!r}" if "row_id" in row else ""
            raise ValueError(
                f"row{name}: {column} has shape {sequence.shape}: expected a sequence of at least 1 position"
            )
        return sequence

    def _padded(self, sequences: list[np.ndarray[Any, Any]], column: str) -> tuple[Tensor, Tensor]:
        longest = max(len(sequence) for sequence in sequences)
        multiple = self.pad_to_multiple_of or 1
        longest = -(-longest // multiple) * multiple
        values = column == "input_values"
        padded = np.full(
            (len(sequences), longest), 0 if values else self.pad_token_id, np.float32 if values else np.int64
        )
        mask = np.zeros((len(sequences), longest), np.int64)
        for number, sequence in enumerate(sequences):
            padded[number, : len(sequence)] = sequence
            mask[number, : len(sequence)] = 1
        return torch.from_numpy(padded), torch.from_numpy(mask)
