"""Options of data preparation, the same for every task."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

#: How text becomes tokens; "auto" looks at the text.
Tokens = Literal["auto", "characters", "bytes", "dna"]
Difficulty = Literal["easy", "middle", "hard", "all"]
Pixels = Literal["token", "value"]

#: Options that say how to work, not what comes out: two runs that differ in them alone give the same data.
WITHOUT_EFFECT = frozenset({"workers"})

#: Beyond these a slip of the finger would fill the memory or start a process for everything.
MOST = {"image_size": 4096, "workers": 512}


@dataclass(frozen=True)
class DataOptions:
    """What to make of a data set. None means: the task's own value, or for one's own data what fits it.

    Args:
        max_length: Longest sequence; the rest is cut off at the end, in every split alike.
        seed: Decides generated samples and random splits.
        validation: Share set apart for validation: of the training rows if the source has a test set, else of all rows.
        test: Share of all rows set apart for testing, where the source has no test set.
        tokens: How text becomes tokens: characters, bytes (UTF-8) or dna (a c g t n); auto looks at the text.
        min_frequency: Characters that are rarer than this in the training texts are unknown.
        difficulty: Pathfinder: easy, middle or hard paths, or all three mixed.
        pixels: Images as 256 grey levels (token) or as normalised numbers (value).
        image_size: Side of the images in pixels; others are scaled to it.
        text_column: Column of the sequence, in one's own tables.
        label_column: Column of the class.
        pair_column: Column of the second sequence, for pairs.
        group_column: Rows that agree in this column stay in one split (relatives of a gene, pages of a book).
        id_column: Column that names a row; a name may occur once only.
        samples: Number of samples over all splits: how many to generate, or a random part of what is there.
        bad_rows: Stop at a row that cannot be used, naming file and line (error), or leave it out and count it (skip).
        workers: Processes that generate; the result does not depend on it.

    Example:
        >>> DataOptions(max_length=512).filled(DataOptions(max_length=2000, validation=0.1)).max_length
        512
        >>> DataOptions(validation=1.5)
        Traceback (most recent call last):
        ...
        ValueError: validation is 1.5: expected a share of at least 0 and below 1
    """

    max_length: int | None = None
    seed: int = 0
    validation: float | None = None
    test: float | None = None
    tokens: Tokens = "auto"
    min_frequency: int | None = None
    difficulty: Difficulty = "hard"
    pixels: Pixels = "token"
    image_size: int | None = None
    text_column: str | None = None
    label_column: str | None = None
    pair_column: str | None = None
    group_column: str | None = None
    id_column: str | None = None
    samples: int | None = None
    bad_rows: Literal["error", "skip"] = "error"
    workers: int = 1

    def __post_init__(self) -> None:
        _check_numbers(self)
        choices: dict[str, tuple[str, ...]] = {
            "tokens": ("auto", "characters", "bytes", "dna"),
            "difficulty": ("easy", "middle", "hard", "all"),
            "pixels": ("token", "value"),
            "bad_rows": ("error", "skip"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is {getattr(self, name)!r}: choose one of {', '.join(allowed)}")

    def filled(self, defaults: DataOptions) -> DataOptions:
        """These options, with the defaults' value wherever None was left."""
        missing = {f.name: getattr(defaults, f.name) for f in fields(self) if getattr(self, f.name) is None}
        return replace(self, **missing)

    def effective(self) -> dict[str, Any]:
        """The options that decide what comes out, for facts and cache keys."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in WITHOUT_EFFECT}


def _check_numbers(options: DataOptions) -> None:
    for name in ("max_length", "min_frequency", "image_size", "samples", "workers"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}: expected at least 1")
        if value is not None and value > MOST.get(name, value):
            raise ValueError(f"{name} is {value:,}: expected at most {MOST[name]:,}")
    if not 0 <= options.seed < 2**63:
        raise ValueError(f"seed is {options.seed}: expected a number from 0 to 2^63 − 1")
    for name in ("validation", "test"):
        value = getattr(options, name)
        if value is not None and not 0 <= value < 1:
            raise ValueError(f"{name} is {value}: expected a share of at least 0 and below 1")
    if (options.validation or 0) + (options.test or 0) >= 1:
        raise ValueError(
            f"validation {options.validation} and test {options.test} leave nothing to train on: "
            "their sum must be below 1"
        )
