"""Folders of files, one folder per class: texts, images or FASTA; perhaps below train, validation and test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from synvolution.data import fasta
from synvolution.data.files import kind_of, text_of
from synvolution.data.options import DataOptions
from synvolution.data.pixels import grey
from synvolution.data.rows import Reading, Row, SplitName
from synvolution.data.tables import split_of

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
TEXTS = (".txt", ".text", ".md")


def class_folders(source: Path) -> list[tuple[Path, SplitName | None]]:
    """The folders of the classes, by name, with their split if they lie in train, validation or test."""
    below = sorted(path for path in source.iterdir() if path.is_dir() and not path.name.startswith("."))
    splits = [(path, split_of(path)) for path in below]
    if below and all(split is not None and any(child.is_dir() for child in path.iterdir()) for path, split in splits):
        return [(child, split) for path, split in splits for child in sorted(path.iterdir()) if child.is_dir()]
    return [(path, None) for path in below]


def content_of(source: Path) -> str | None:
    """What the class folders hold: "texts", "images", "fasta", or None if neither."""
    for folder, _ in class_folders(source):
        for path in sorted(folder.rglob("*")):
            for name, kinds in (("texts", TEXTS), ("images", IMAGES), ("fasta", fasta.KINDS)):
                if path.is_file() and kind_of(path) in kinds:
                    return name
    return None


def _files(source: Path, kinds: tuple[str, ...]) -> Iterator[tuple[Path, str, SplitName | None, str]]:
    """Path, class, split and name of each file of some kinds."""
    number = 0
    for folder, split in class_folders(source):
        for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
            if path.is_file() and kind_of(path) in kinds:
                number += 1
                yield path, folder.name, split, path.relative_to(source).as_posix()
    if number == 0:
        raise ValueError(
            f"{source} has no files {', '.join('*' + kind for kind in kinds)} in folders, one for each class"
        )


def text_rows(source: Path, reading: Reading, options: DataOptions) -> Iterator[Row]:
    """One text per file."""
    for path, label, split, name in _files(source, TEXTS):
        try:
            text = text_of(path)
        except ValueError as error:
            reading.reject(str(error), "unreadable text", options.bad_rows)
            continue
        yield Row(text, label, split=split, identity=name, place=str(path))


def fasta_rows(source: Path, options: DataOptions) -> Iterator[Row]:
    """Sequences of all FASTA files of a class."""
    for path, label, split, name in _files(source, fasta.KINDS):
        for row in fasta.rows_of(path, label, options, f"{name}/"):
            row.split = split
            yield row


def image_rows(source: Path, size: tuple[int, int], reading: Reading, options: DataOptions) -> Iterator[Row]:
    """One image per file, (height, width) as asked for; another size is a bad row unless an image_size was given."""
    for path, label, split, name in _files(source, IMAGES):
        try:
            pixels = grey(path) if options.image_size is None else grey(path, *size)
            if pixels.shape != size:
                raise ValueError(
                    f"{path} is {pixels.shape[1]}×{pixels.shape[0]}: expected {size[1]}×{size[0]} pixels, "
                    "or image_size to scale all"
                )
        except ValueError as error:
            reading.reject(str(error), "unreadable image", options.bad_rows)
            continue
        yield Row(pixels, label, split=split, identity=name, place=str(path))


def first_image_size(source: Path) -> tuple[int, int]:
    """Height and width of the first image that can be read."""
    for path, *_ in _files(source, IMAGES):
        with suppress(ValueError):  # the bad row is told, or left out, when the rows are read
            height, width = grey(path).shape
            return height, width
    raise ValueError(f"{source}: none of its images can be read")
