"""People's own data: tables, folders of classes, FASTA files, data sets of the hub."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub

from synvolution.data import fasta, folders, tables
from synvolution.data.files import kind_of
from synvolution.data.options import DataOptions
from synvolution.data.pixels import grey
from synvolution.data.rows import Reading, Row, SplitName


def read(source: Path, options: DataOptions) -> Reading:
    """A reading of a file or folder: what it is, is told by the names in it."""
    reading = Reading(lambda: iter(()), "auto", facts={"source": str(source)})
    if source.is_file():
        return _of_file(source, reading, options)
    if not source.is_dir():
        raise ValueError(f"{source} is neither a file nor a folder: expected a table or a folder")
    entries = [path for path in sorted(source.iterdir()) if path.is_file()]
    if any(kind_of(path) in tables.KINDS for path in entries):
        reading.rows = _table_rows(source, reading, options)
    elif any(fasta.is_fasta(path) for path in entries):
        reading.rows = lambda: _fasta_per_class(fasta.fasta_files(source), options)
    else:
        content = folders.content_of(source)
        if content == "texts":
            reading.rows = lambda: folders.text_rows(source, reading, options)
        elif content == "fasta":
            reading.rows = lambda: folders.fasta_rows(source, options)
        elif content == "images":
            side = options.image_size
            size = (side, side) if side is not None else folders.first_image_size(source)
            reading.encoding, reading.facts["image size"] = "pixels", list(size)
            reading.rows = lambda: folders.image_rows(source, size, reading, options)
        else:
            raise ValueError(
                f"{source} holds nothing known: expected tables ({', '.join(tables.KINDS)}), FASTA files, or a "
                "folder for each class with texts (.txt), images or FASTA files"
            )
    return reading


def _of_file(source: Path, reading: Reading, options: DataOptions) -> Reading:
    if fasta.is_fasta(source):
        raise ValueError(f"{source} is one FASTA file and has no classes: give a folder with one file for each class")
    if kind_of(source) not in tables.KINDS:
        raise ValueError(
            f"{source}: unknown kind of file {kind_of(source)!r}: expected {', '.join(tables.KINDS)}, "
            "perhaps with .gz, .xz or .bz2, or a folder"
        )
    reading.rows = _table_rows(source, reading, options)
    return reading


def _table_rows(source: Path, reading: Reading, options: DataOptions) -> Callable[[], Iterator[Row]]:
    return lambda: tables.labelled_rows(source, reading, options)


def _fasta_per_class(files: list[Path], options: DataOptions) -> Iterator[Row]:
    for path in files:
        label = path.name.split(".")[0]
        yield from fasta.rows_of(path, label, options, f"{label}/")


def read_hub(name: str, options: DataOptions, offline: bool, classes: list[str] | None = None) -> Reading:
    """A reading of a data set of the Hugging Face hub, through ``datasets``; code in it is never run."""
    download = datasets.DownloadConfig(local_files_only=offline)
    try:
        with _switched_off(offline):
            found = datasets.load_dataset(name, download_config=download)
    except Exception as error:  # datasets raises its own, the hub's, the network's and pandas' errors alike
        where = "is not in the local cache (offline)" if offline else "cannot be loaded from the hub"
        raise ValueError(f"{name!r} is no task and no file or folder here, and {where}: {error}") from error
    known: dict[str, SplitName] = {"train": "train", "validation": "validation", "valid": "validation", "test": "test"}
    splits = {split: data for split, data in found.items() if split in known}
    if "train" not in splits:
        raise ValueError(f"{name}: the splits are {', '.join(found)}: expected train, and perhaps validation and test")
    features = splits["train"].features
    image = next((column for column, kind in features.items() if isinstance(kind, datasets.Image)), None)
    reading = Reading(
        lambda: iter(()), "auto" if image is None else "pixels", classes, facts={"source": f"hub: {name}"}
    )
    if image is not None:
        height, width = grey(splits["train"][0][image]).shape
        side = options.image_size
        reading.facts["image size"] = [side or height, side or width]
    reading.rows = lambda: _hub_rows(splits, known, image, reading, options)
    return reading


@contextmanager
def _switched_off(offline: bool) -> Iterator[None]:
    """No network for the libraries of the hub: they ask it in spite of local_files_only."""
    switches = (datasets.config, huggingface_hub.constants)
    before = [switch.HF_HUB_OFFLINE for switch in switches]
    for switch, value in zip(switches, before, strict=True):
        switch.HF_HUB_OFFLINE = offline or value
    try:
        yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.HF_HUB_OFFLINE = value


def _hub_rows(
    splits: dict[str, Any],
    known: dict[str, SplitName],
    image: str | None,
    reading: Reading,
    options: DataOptions,
) -> Iterator[Row]:
    features = splits["train"].features
    head = [("train: row 1", {name: "" if name == image else value for name, value in splits["train"][0].items()})]
    if image is not None:
        head[0][1][image] = "image"
    columns = tables.columns_of(head, options if image is None else replace(options, text_column=image))
    label = features[columns.label]
    reading.pair = columns.pair is not None
    reading.facts["columns"] = {name: value for name, value in vars(columns).items() if value is not None}
    for split, data in splits.items():
        for number, record in enumerate(data, 1):
            place = f"{reading.facts['source']}: {split}: row {number}"
            if isinstance(label, datasets.ClassLabel) and isinstance(record[columns.label], int):
                value = record[columns.label]
                if value < 0:
                    reading.reject(f"{place}: no label", "no label", options.bad_rows)
                    continue
                record[columns.label] = label.int2str(value)
            if image is not None:
                pixels = grey(record[image], *reading.facts["image size"])
                yield Row(pixels, str(record[columns.label]), split=known[split], place=place)
                continue
            row = tables.row_of(place, record, columns)
            if isinstance(row, Row):
                row.split = known[split]
                yield row
            else:
                reading.reject(row[0], row[1], options.bad_rows)
