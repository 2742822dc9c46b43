"""Prepared data: splits in Arrow files, the processor and the facts, in one folder that is whole or not there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
from filelock import FileLock
from transformers import PreTrainedTokenizerFast

from synvolution.data.pixels import PixelProcessor

Processor = PreTrainedTokenizerFast | PixelProcessor

#: Written last: a folder without it is not whole.
MARKER = "complete.json"


@dataclass
class Prepared:
    """A data set ready for training.

    Args:
        name: the task, or the name of the user's data.
        splits: "train", "validation" and "test" with the columns ``input_ids`` (or ``input_values``), for pairs also
            ``input_ids_pair``, ``label`` (a ClassLabel), ``length`` (tokens of the row; of the longer text for pairs)
            and, where the source names its rows, ``row_id``. Memory-mapped, not loaded.
        classes: names of the classes, in the order of the labels.
        processor: the tokenizer or the PixelProcessor that made the ids.
        max_length: where sequences were cut.
        pair: whether rows are pairs.
        facts: source, seed, split rule, counts, skipped rows, duplicates, fingerprint.
    """

    name: str
    splits: datasets.DatasetDict
    classes: list[str]
    processor: Processor
    max_length: int
    pair: bool
    facts: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """Hash of everything in the splits: equal fingerprints mean equal data."""
        return str(self.facts["fingerprint"])

    def save(self, folder: Path) -> None:
        """Write a copy that ``load`` reads back; an existing one is replaced."""
        with locked(folder), whole_folder(folder) as partial:
            datasets.DatasetDict(self.splits).save_to_disk(partial / "splits", max_shard_size="500MB")
            self.processor.save_pretrained(partial / "processor")
            write_facts(partial, self.name, self.classes, self.max_length, self.pair, self.facts)

    @classmethod
    def load(cls, folder: Path) -> Prepared:
        """Read a folder that ``prepare`` or ``save`` wrote."""
        folder = Path(folder)
        if not is_whole(folder):
            raise ValueError(f"{folder} holds no prepared data (no {MARKER} in it): run prepare again")
        about = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        splits = datasets.load_from_disk(str(folder / "splits"))
        if (folder / "processor" / PixelProcessor.FILE).exists():
            processor: Processor = PixelProcessor.from_pretrained(folder / "processor")
        else:
            processor = PreTrainedTokenizerFast.from_pretrained(folder / "processor")
        return cls(
            about["name"], splits, about["classes"], processor, about["max_length"], about["pair"], about["facts"]
        )


def write_facts(
    folder: Path, name: str, classes: list[str], max_length: int, pair: bool, facts: dict[str, Any]
) -> None:
    """The facts of prepared data as JSON, beside its splits."""
    content = {"name": name, "classes": classes, "max_length": max_length, "pair": pair, "facts": facts}
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    (folder / "facts.json").write_text(text, encoding="utf-8")


def is_whole(folder: Path) -> bool:
    """Whether a folder was finished.

    Example:
        >>> is_whole(Path("not there"))
        False
    """
    return (folder / MARKER).is_file()


def locked(folder: Path) -> FileLock:
    """A lock for a context: one process at a time writes a folder. It ends with its process, however that ends."""
    folder = Path(folder).absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(str(folder) + ".lock")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder to write into, which gets its name only when everything is in it; to be used inside ``locked``.

    Whoever is interrupted, even by SIGKILL, leaves folders with other names, which the next one removes. An old folder
    of the name is moved away before it is removed: what is half removed must not be taken for whole either.
    """
    folder = Path(folder).absolute()
    partial, old = (folder.with_name(folder.name + end) for end in (".partial", ".old"))
    _removed(partial, old)
    partial.mkdir()
    try:
        yield partial
        marker = partial / MARKER
        marker.write_text(json.dumps({"files": sum(1 for _ in partial.rglob("*"))}) + "\n", encoding="utf-8")
        if folder.exists():
            _only_ours(folder)
            os.replace(folder, old)
        os.replace(partial, folder)
    finally:
        _removed(partial, old)


def _removed(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _only_ours(folder: Path) -> None:
    """Refuse to replace a folder that is not prepared data."""
    foreign = [
        entry.name for entry in folder.iterdir() if entry.name not in {"splits", "processor", "facts.json", MARKER}
    ]
    if foreign:
        raise ValueError(
            f"{folder} exists and holds other files ({', '.join(sorted(foreign)[:3])}): choose another folder"
        )
