"""Image: CIFAR-10 in grey, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synvolution.data import cifar_batches, folders
from synvolution.data.archives import files_in, is_archive
from synvolution.data.options import DataOptions
from synvolution.data.pixels import grey
from synvolution.data.rows import Reading, Row, SplitName

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
SIDE = 32


def read(source: Path | None, options: DataOptions) -> Reading:
    """CIFAR-10 from the official python batches (archive or folder), an npz file, or folders of images by class."""
    if source is None:
        raise ValueError("image needs its data")  # base.py offers the download before it comes to this
    if options.image_size not in (None, SIDE):
        raise ValueError(f"image_size is {options.image_size}: the images of CIFAR-10 have {SIDE} pixels")
    reading = Reading(lambda: iter(()), "pixels", CLASSES, facts={"source": str(source), "image size": [SIDE, SIDE]})
    if source.suffix == ".npz":
        reading.rows = lambda: _from_npz(source)
    elif is_archive(source) or (source.is_dir() and any(source.rglob("data_batch_1"))):
        reading.rows = lambda: _from_batches(source)
    elif source.is_dir():
        reading.rows = lambda: folders.image_rows(source, (SIDE, SIDE), reading, options)
    else:
        raise ValueError(
            f"{source}: expected cifar-10-python.tar.gz, a folder, or an npz with x_train, y_train, x_test, y_test"
        )
    return reading


def _from_npz(source: Path) -> Iterator[Row]:
    try:
        with source.open("rb") as file, np.load(file, allow_pickle=False) as content:
            arrays = {name: content[name] for name in ("x_train", "y_train", "x_test", "y_test")}
    except Exception as error:  # a damaged zip file can raise nearly anything
        raise ValueError(f"{source}: no npz file with x_train, y_train, x_test, y_test ({error})") from error
    splits: tuple[SplitName, ...] = ("train", "test")
    for split in splits:
        yield from _rows(arrays[f"x_{split}"], arrays[f"y_{split}"].reshape(-1), split, str(source))


def _from_batches(source: Path) -> Iterator[Row]:
    """The official batches: pickles of bytes, read without running anything."""
    names = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
    seen = []
    for name, content in files_in(source, lambda name: name.rsplit("/", 1)[-1] in names):
        seen.append(name.rsplit("/", 1)[-1])
        place = f"{source}: {name}"
        images, labels = cifar_batches.read_batch(content, place)
        yield from _rows(images, labels, "test" if seen[-1] == "test_batch" else "train", place)
    missing = sorted(set(names) - set(seen))
    if missing:
        raise ValueError(f"{source}: {', '.join(missing)} not found")


def _rows(images: NDArray[np.uint8], labels: NDArray[np.integer], split: SplitName, place: str) -> Iterator[Row]:
    """Images as (n, 1024) grey, (n, 3072) planes, (n, 32, 32) or (n, 32, 32, 3)."""
    if images.dtype != np.uint8 or images.shape[:1] != labels.shape or labels.dtype.kind not in "iu":
        raise ValueError(
            f"{place}: images of type {images.dtype} and shape {images.shape}, {len(labels)} labels of type "
            f"{labels.dtype}: expected as many, images of bytes (uint8), labels of whole numbers"
        )
    if images.ndim == 2 and images.shape[1] == 3 * SIDE * SIDE:
        images = images.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    elif images.ndim == 2 and images.shape[1] == SIDE * SIDE:
        images = images.reshape(-1, SIDE, SIDE)
    if images.shape[1:] not in ((SIDE, SIDE), (SIDE, SIDE, 1), (SIDE, SIDE, 3)):
        raise ValueError(f"{place}: images of shape {images.shape[1:]}: expected 1024 or 3072 numbers, or 32×32 pixels")
    for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        name = CLASSES[label] if 0 <= label < len(CLASSES) else str(label)
        yield Row(grey(image), name, split=split, place=f"{place}: {split} image {number}")
