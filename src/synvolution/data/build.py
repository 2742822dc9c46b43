"""From a reading to prepared data: stage, split, make the vocabulary, encode, write."""

from __future__ import annotations

import shutil
from collections import Counter
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synvolution.data.encoding import ColumnWriter, encoded, features_of, fingerprint_of
from synvolution.data.options import DataOptions
from synvolution.data.pixels import PixelProcessor
from synvolution.data.prepared import Processor, write_facts
from synvolution.data.rows import SPLITS, Reading, SplitName
from synvolution.data.split import connected, random_part, random_split
from synvolution.data.staging import Progress, Staged, stage
from synvolution.data.tokenizers import byte_tokenizer, characters_counted, dna_tokenizer, listops_tokenizer

#: Longest sequence of one's own data if nothing is said: what the longest of the tasks has.
LONGEST = 32768


def build(name: str, reading: Reading, options: DataOptions, folder: Path, progress: Progress | None = None) -> None:
    """Write prepared data into an empty folder."""
    asked = options.max_length
    options = options.filled(DataOptions(max_length=LONGEST, validation=0.1, test=0.1, min_frequency=1))
    work = folder / "work"
    work.mkdir()
    staged = stage(reading, options, work / "rows.arrow", progress)
    rule, split = _split(staged, options)
    processor = _processor(staged, split, options, reading)
    if isinstance(processor, PixelProcessor) and asked is not None and asked < processor.length:
        raise ValueError(
            f"max_length is {asked}: the images have {processor.length} pixels and are not cut; image_size scales them"
        )
    lengths, digests = _write(staged, split, processor, options, reading.pair, work, progress)
    fingerprint = fingerprint_of(staged.classes, processor, digests)
    _save(
        work, folder / "splits", features_of(processor, staged.classes, reading.pair, staged.has_identity), fingerprint
    )
    processor.save_pretrained(folder / "processor")
    facts = {
        **reading.facts,
        "options": options.effective(),
        "encoding": staged.encoding,
        "split": rule,
        **_counts(staged, split, lengths),
        "skipped": dict(sorted(reading.skipped.items())),
        "duplicates": _duplicates(staged, split),
        "fingerprint": fingerprint,
    }
    if staged.encoding == "dna":
        facts["letters read as n"] = staged.ambiguous_bases
    longest = processor.length if isinstance(processor, PixelProcessor) else options.max_length or LONGEST
    write_facts(folder, name, staged.classes, longest, reading.pair, facts)
    shutil.rmtree(work)


def _split(staged: Staged, options: DataOptions) -> tuple[str, NDArray[np.int64]]:
    """The rule in words, and the split of each row (−1: left out). Splits the source lacks are cut out of train."""
    given = {SPLITS[number] for number in np.unique(staged.splits) if number >= 0}
    split = np.maximum(staged.splits, 0)
    wanted: dict[SplitName, float] = {"validation": options.validation or 0.0, "test": options.test or 0.0}
    shares = {name: share for name, share in wanted.items() if name not in given}
    ours = np.flatnonzero(split == 0)
    if shares:
        keys = [staged.digests] if staged.groups is None else [staged.digests, staged.groups]
        units = connected(*keys)
        stays = np.isin(units[ours], units[split > 0])  # its equal is in a given split: ours share nothing with those
        numbers = np.unique(units[ours], return_inverse=True)[1]
        split[ours] = random_split(staged.labels[ours], numbers, shares, options.seed, stays)
    words = [f"{name} as given" for name in SPLITS if name in given]
    words += [f"{name} {share:.3g} of {'train' if given else 'all'}" for name, share in shares.items()]
    if shares:
        groups = "" if staged.groups is None else f"groups of {options.group_column} and "
        words.append(f"random by class, seed {options.seed}, {groups}equal rows together")
    if options.samples is not None and options.samples < len(split):
        split = _part(staged.labels, split, options)
        words.append(f"random part of {options.samples}")
    for number, name in enumerate(SPLITS):
        if not (split == number).any():
            raise ValueError(
                f"no row is left for {name} of {len(split)} rows ({', '.join(words)}): give more rows or another share"
            )
    return ", ".join(words), split


def _part(labels: NDArray[np.int64], split: NDArray[np.int64], options: DataOptions) -> NDArray[np.int64]:
    kept = np.full_like(split, -1)
    for number in range(3):
        rows = np.flatnonzero(split == number)
        share = max(1, round((options.samples or 0) * len(rows) / len(split)))
        chosen = rows[random_part(labels[rows], share, options.seed)]
        kept[chosen] = number
    return kept


def _processor(staged: Staged, split: NDArray[np.int64], options: DataOptions, reading: Reading) -> Processor:
    """The tokenizer; what it learns (vocabulary, mean of the pixels) comes from the training rows alone."""
    fixed = {"bytes": byte_tokenizer, "dna": dna_tokenizer, "listops": listops_tokenizer}
    if staged.encoding in fixed:
        return fixed[staged.encoding](options.max_length)
    counts: Counter[str] = Counter()
    levels = np.zeros(256, np.int64)
    for first, batch in staged.batches():
        train = np.flatnonzero(split[first : first + batch.num_rows] == 0)
        for name in ("content", "pair"):
            for value in batch.column(name).take(pa.array(train)).drop_null().to_pylist():
                if isinstance(value, str):
                    counts.update(value)
                else:
                    levels += np.bincount(np.frombuffer(value, np.uint8), minlength=256)
    if staged.encoding == "characters":
        return characters_counted(counts, min_frequency=options.min_frequency or 1, max_length=options.max_length)
    grid = np.arange(256) / 255
    mean = float((levels * grid).sum() / levels.sum())
    std = float(np.sqrt((levels * (grid - mean) ** 2).sum() / levels.sum()))
    height, width = reading.facts["image size"]
    return PixelProcessor(height, width, options.pixels, round(mean, 6), round(std, 6) or 1.0)


def _write(
    staged: Staged,
    split: NDArray[np.int64],
    processor: Processor,
    options: DataOptions,
    pair: bool,
    work: Path,
    progress: Progress | None,
) -> tuple[NDArray[np.int64], list[str]]:
    """Encode every row into the file of its split. Returns (length after encoding, hash of each split)."""
    features = features_of(processor, staged.classes, pair, staged.has_identity)
    writers = [ColumnWriter(work / f"{name}.arrow", features) for name in SPLITS]
    lengths = np.zeros(len(split), np.int64)
    for first, batch in staged.batches():
        part = split[first : first + batch.num_rows]
        labels = staged.labels[first : first + batch.num_rows]
        for number, writer in enumerate(writers):
            rows = np.flatnonzero(part == number)
            if len(rows):
                columns = encoded(batch.take(pa.array(rows)), labels[rows], processor, options.max_length, features)
                writer.write(columns)
                lengths[first + rows] = columns["length"].to_numpy()
        if progress is not None:
            progress("rows encoded", first + batch.num_rows)
    return lengths, [writer.close() for writer in writers]


def _save(work: Path, folder: Path, features: datasets.Features, fingerprint: str) -> None:
    """The splits as ``datasets.load_from_disk`` reads them, without anything that changes from run to run."""
    splits = {}
    for name in SPLITS:
        table = datasets.table.MemoryMappedTable.from_file(str(work / f"{name}.arrow"))
        info = datasets.DatasetInfo(features=features)
        splits[name] = datasets.Dataset(
            table,
            info=info,
            split=datasets.NamedSplit(name),
            fingerprint=sha256((name + fingerprint).encode()).hexdigest()[:16],
        )
    bars = datasets.utils.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        datasets.DatasetDict(splits).save_to_disk(folder, max_shard_size="500MB")
    finally:
        if not bars:
            datasets.enable_progress_bars()


def _counts(staged: Staged, split: NDArray[np.int64], lengths: NDArray[np.int64]) -> dict[str, Any]:
    """Rows and classes of each split, lengths over all, rows that were cut."""
    whole = np.concatenate([batch.column("whole").to_numpy() for _, batch in staged.batches()])
    used = split >= 0
    counts = {name: int((split == number).sum()) for number, name in enumerate(SPLITS)}
    classes = {
        name: dict(
            zip(
                staged.classes,
                np.bincount(staged.labels[split == number], minlength=len(staged.classes)).tolist(),
                strict=True,
            )
        )
        for number, name in enumerate(SPLITS)
    }
    length = {
        "min": int(lengths[used].min()),
        "median": float(np.median(lengths[used])),
        "mean": round(float(lengths[used].mean()), 2),
        "max": int(lengths[used].max()),
        "rows cut": int((whole[used] > lengths[used]).sum()),
    }
    return {"rows": counts, "classes": classes, "length": length}


def _duplicates(staged: Staged, split: NDArray[np.int64]) -> dict[str, int]:
    """How often the same content occurs: more than once in a split, and in two splits (different contents counted)."""
    contents = {name: staged.digests[split == number] for number, name in enumerate(SPLITS)}
    unique = {name: np.unique(digests) for name, digests in contents.items()}
    found = {f"in {name}": len(contents[name]) - len(unique[name]) for name in SPLITS}
    for one, other in combinations(SPLITS, 2):
        found[f"in {one} and {other}"] = len(np.intersect1d(unique[one], unique[other], assume_unique=True))
    if staged.groups is not None:
        for a, b in combinations(range(3), 2):
            shared = np.intersect1d(staged.groups[split == a], staged.groups[split == b])
            found[f"groups in {SPLITS[a]} and {SPLITS[b]}"] = len(shared)
    return found
