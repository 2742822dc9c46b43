"""The Pathfinder task: drawn here, or read from the published folders; and written in their layout."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from synvolution.data.options import DataOptions
from synvolution.data.pathfinder import CONTOUR_LENGTH, FOLDER, PathfinderRule, generate, rule_for
from synvolution.data.pixels import grey
from synvolution.data.rows import Reading, Row

CLASSES = ["different curves", "same curve"]

#: Images of one difficulty in the release.
PUBLISHED = 200_000


def read(source: Path | None, options: DataOptions) -> Reading:
    """Pathfinder images: drawn, or from a folder with the published sub-folders."""
    difficulties = list(FOLDER) if options.difficulty == "all" else [options.difficulty]
    size = options.image_size or 32
    reading = Reading(lambda: iter(()), "pixels", CLASSES, facts={"image size": [size, size]})
    if source is None:
        rules = [rule_for(size, difficulty) for difficulty in difficulties]
        reading.facts["source"] = f"drawn: {', '.join(map(str, rules))}, seed {options.seed}"
        reading.rows = lambda: _drawn(rules, options)
    else:
        reading.facts["source"] = str(source)
        folders = [source / FOLDER[difficulty] for difficulty in difficulties]
        if len(folders) == 1 and not folders[0].is_dir() and (source / "metadata").is_dir():
            folders = [source]  # the sub-folder itself was named
        for folder in folders:
            if not (folder / "metadata").is_dir():
                raise FileNotFoundError(
                    f"{folder / 'metadata'} does not exist: expected metadata/N.npy and imgs/N/*.png"
                )
        reading.rows = lambda: (row for folder in folders for row in _published(folder, size, reading, options))
    return reading


def _shares(options: DataOptions, difficulties: int) -> list[int]:
    """Images of each difficulty, as many as are asked for in all."""
    total = options.samples or PUBLISHED * difficulties
    return [total // difficulties + (number < total % difficulties) for number in range(difficulties)]


def _drawn(rules: list[PathfinderRule], options: DataOptions) -> Iterator[Row]:
    for rule, share in zip(rules, _shares(options, len(rules)), strict=True):
        for image, label in generate(rule, share, options.seed, options.workers):
            yield Row(image, CLASSES[label])


def _published(folder: Path, size: int, reading: Reading, options: DataOptions) -> Iterator[Row]:
    files = sorted((folder / "metadata").glob("*.npy"), key=lambda path: (len(path.stem), path.stem))
    if not files:
        raise FileNotFoundError(f"{folder / 'metadata'} has no file N.npy")
    for path in files:
        for number, fields in enumerate(metadata(path), 1):
            place = f"{path}: line {number}"
            if len(fields) < 4 or fields[3] not in ("0", "1"):
                problem = f"{place}: {fields} has no label 0 or 1 as its fourth field"
                reading.reject(problem, "bad line of metadata", options.bad_rows)
                continue
            image = (folder / fields[0] / fields[1]).resolve()
            if not image.is_relative_to(folder.resolve()):
                raise ValueError(f"{place}: {fields[0]}/{fields[1]} leads out of {folder}")
            if image.is_file() and image.stat().st_size == 0:
                reading.skipped["empty image file"] += 1  # the release has one
                continue
            try:
                pixels = grey(image)
                if pixels.shape != (size, size):
                    raise ValueError(f"{image} is {pixels.shape[1]}×{pixels.shape[0]}: expected {size}×{size} pixels")
            except ValueError as error:
                reading.reject(f"{place}: {error}", "unreadable image", options.bad_rows)
                continue
            yield Row(
                pixels, CLASSES[int(fields[3])], identity=str(image.relative_to(folder.parent.resolve())), place=place
            )


def metadata(path: Path) -> list[list[str]]:
    """Fields of each image: lines of text (the release, in spite of the file's name) or a binary array of strings."""
    content = path.read_bytes()
    if content.startswith(b"\x93NUMPY"):
        try:
            array = np.load(io.BytesIO(content), allow_pickle=False)
            return np.atleast_2d(array.astype(str) if array.dtype.kind == "S" else array).astype(str).tolist()
        except (ValueError, EOFError, OSError) as error:
            raise ValueError(
                f"{path}: not readable as an array of strings ({error}); pickled objects are refused"
            ) from error
    try:
        return [line.split() for line in content.decode("utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(f"{path}: line {line}: neither text nor a numpy file") from error


def export(folder: Path, options: DataOptions, per_folder: int = 1000) -> int:
    """Draw images and write them in the layout of the release, with metadata as lines of text; the number of images."""
    difficulties = list(FOLDER) if options.difficulty == "all" else [options.difficulty]
    for difficulty, total in zip(difficulties, _shares(options, len(difficulties)), strict=True):
        rule, root = rule_for(options.image_size or 32, difficulty), folder / FOLDER[difficulty]
        if root.exists():
            raise ValueError(f"{root} exists: old and new images would mix; remove it or choose another folder")
        lines: list[str] = []
        (root / "metadata").mkdir(parents=True, exist_ok=True)
        for number, (image, label) in enumerate(generate(rule, total, options.seed, options.workers)):
            batch, index = divmod(number, per_folder)
            (root / "imgs" / str(batch)).mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(root / "imgs" / str(batch) / f"sample_{index}.png")
            rest = (rule.continuity, CONTOUR_LENGTH[difficulty], rule.distractor_length, rule.paddle_length)
            fields = (f"imgs/{batch}", f"sample_{index}.png", index, label, *rest, rule.thickness, rule.margins[0], 1)
            lines.append(" ".join(map(str, fields)) + "\n")
            if index == per_folder - 1 or number == total - 1:
                (root / "metadata" / f"{batch}.npy").write_text("".join(lines), encoding="utf-8")
                lines = []
    return sum(_shares(options, len(difficulties)))
