"""Small made data for each kind of task, so that everything can be tried in minutes without a download.

They stand for no benchmark: they have its form (characters, pairs, grey pixels, bases) and an easy rule. Their names in
tables end in "-made", and no published number is put beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from synvolution.training.checkpoints import write_whole

ROWS = 600
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


def make(name: str, folder: Path) -> Path:
    """Write the made data of that name, unless it is there; the file or folder to train on.

    Example:
        >>> from tempfile import mkdtemp
        >>> path = make("text-made", Path(mkdtemp()))
        >>> path.name, len(path.read_text().splitlines())
        ('text-made.jsonl', 600)
    """
    return MADE[name](folder / name, np.random.default_rng(0))


def _words(generator: np.random.Generator, number: int) -> list[str]:
    return ["".join(generator.choice(LETTERS, generator.integers(3, 8))) for _ in range(number)]


def _text(generator: np.random.Generator, own: list[str], common: list[str], length: int) -> str:
    """Words of which every third is a topic's own."""
    chosen = [str(generator.choice(own if generator.random() < 1 / 3 else common)) for _ in range(length // 4)]
    return " ".join(chosen)[:length]


def _lines(path: Path, rows: Iterator[dict[str, str]]) -> Path:
    path = path.with_suffix(".jsonl")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, "".join(json.dumps(row) + "\n" for row in rows))
    return path


def _texts(classes: int, length: int) -> Callable[[Path, np.random.Generator], Path]:
    def write(path: Path, generator: np.random.Generator) -> Path:
        common, topics = _words(generator, 40), [_words(generator, 8) for _ in range(classes)]
        numbers = [k % classes for k in range(ROWS)]
        return _lines(
            path, ({"text": _text(generator, topics[k], common, length), "label": f"topic {k}"} for k in numbers)
        )

    return write


def _pairs(path: Path, generator: np.random.Generator) -> Path:
    """Two texts, of one topic or of two."""
    common, topics = _words(generator, 40), [_words(generator, 8) for _ in range(2)]

    def rows() -> Iterator[dict[str, str]]:
        for k in range(ROWS):
            first = int(generator.integers(2))
            second = first if k % 2 else 1 - first
            texts = [_text(generator, topics[topic], common, 96) for topic in (first, second)]
            yield {"text": texts[0], "text2": texts[1], "label": "same" if k % 2 else "other"}

    return _lines(path, rows())


def _images(path: Path, generator: np.random.Generator) -> Path:
    """Gratings of four directions, 12 × 12 pixels, with noise; a folder per class."""
    if path.exists():
        return path
    x, y = np.meshgrid(np.arange(12), np.arange(12))
    aside = path.with_name(f"{path.name}.part")
    for k in range(ROWS):
        angle = np.pi * (k % 4) / 4
        wave = np.sin(1.5 * (np.cos(angle) * x + np.sin(angle) * y) + generator.uniform(0, 2 * np.pi))
        grey = np.clip(128 + 80 * wave + 30 * generator.standard_normal(x.shape), 0, 255).astype(np.uint8)
        folder = aside / f"direction-{k % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(grey).save(folder / f"{k:04}.png")
    aside.rename(path)
    return path


def _bases(path: Path, generator: np.random.Generator) -> Path:
    """Chains in which a base depends on the one before, in another way for each class; one FASTA file per class."""
    if path.exists():
        return path
    aside = path.with_name(f"{path.name}.part")
    aside.mkdir(parents=True, exist_ok=True)
    for genus in ("first", "second"):
        steps = np.cumsum(generator.dirichlet(np.full(4, 4.0), size=4), axis=1)
        lines = [
            f">{genus}{k}\n{_chain(generator, steps, int(generator.integers(150, 300)))}" for k in range(ROWS // 2)
        ]
        (aside / f"{genus}.fa").write_text("\n".join(lines) + "\n", encoding="ascii")
    aside.rename(path)
    return path


def _chain(
    generator: np.random.Generator, steps: np.ndarray[tuple[int, int], np.dtype[np.float64]], length: int
) -> str:
    state, letters = 0, []
    for chance in generator.random(length):
        state = min(int(np.searchsorted(steps[state], chance)), 3)
        letters.append("ACGT"[state])
    return "".join(letters)


#: By name: each writes its data beside the given path and returns what to train on.
MADE: dict[str, Callable[[Path, np.random.Generator], Path]] = {
    "text-made": _texts(2, 256),
    "retrieval-made": _pairs,
    "image-made": _images,
    "longdoc-made": _texts(4, 1024),
    "dna-made": _bases,
}
