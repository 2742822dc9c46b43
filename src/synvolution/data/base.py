"""The one entry point to data: ``prepare``, and the table of tasks."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import platformdirs

from synvolution.data import fasta, image, listops_task, longdoc, own, pathfinder_task, retrieval, tables, text
from synvolution.data.build import build
from synvolution.data.collate import Collator
from synvolution.data.download import DOWNLOADS, fetch
from synvolution.data.options import DataOptions
from synvolution.data.prepared import Prepared, is_whole, locked, whole_folder
from synvolution.data.records import stream_records
from synvolution.data.rows import Reading
from synvolution.data.staging import Progress

__all__ = ["TASKS", "Collator", "DataOptions", "Prepared", "Task", "cache_folder", "prepare", "stream_records"]

#: Part of every cache key: raise it when preparation itself changes what comes out.
VERSION = 1


@dataclass(frozen=True)
class Task:
    """A benchmark task.

    Args:
        description: what is classified, in one line.
        obtain: how to get the data, in one sentence.
        num_classes: number of classes.
        defaults: what options left at None mean for this task.
        read: makes a reading of a source with filled options.
        pair: whether two sequences are compared.
        generated: whether it needs no source.
        version: part of the cache key: raise it when the reader changes what it gives.
    """

    description: str
    obtain: str
    num_classes: int
    defaults: DataOptions
    read: Callable[[Path | None, DataOptions], Reading]
    pair: bool = False
    generated: bool = False
    version: int = 1


def _ensembl(what: str, genera: tuple[str, str]) -> Task:
    return Task(
        what,
        "put the *.cdna.all.fa.gz files of all "
        f"{genera[0]} and {genera[1]} species from ftp.ensembl.org/pub/current_fasta/SPECIES/cdna into one folder",
        num_classes=2,
        defaults=DataOptions(max_length=16384, validation=0.2, test=0.2),
        read=fasta.ensembl(*genera),
    )


def _longdoc(length: int) -> Task:
    return Task(
        f"subject of arXiv papers (cs.AI, cs.NE, math.AC, math.GR) from their first {length} characters",
        "put the folders cs.AI, cs.NE, math.AC, math.GR of LiqunW/Long-document-dataset (GitHub) into one folder",
        num_classes=4,
        defaults=DataOptions(max_length=length, validation=0.2, test=0.2),
        read=longdoc.read,
    )


#: The tasks by name. To add one, write a file with a function ``read(source, options)`` and add it here.
TASKS: dict[str, Task] = {
    "listops": Task(
        "value of nested lists of MIN, MAX, MED and SM, 500 to 2000 tokens",
        "nothing to get: it is generated; the published basic_*.tsv files are read from --source FOLDER",
        num_classes=10,
        defaults=DataOptions(max_length=1999),
        read=listops_task.read,
        generated=True,
    ),
    "text": Task(
        "IMDB reviews as characters: positive or negative",
        "downloaded (aclImdb_v1.tar.gz, 80 MB), or --source the archive, its folder, or csv/parquet files",
        num_classes=2,
        defaults=DataOptions(max_length=4096, validation=0.1),
        read=text.read,
        version=2,
    ),
    "retrieval": Task(
        "pairs of articles as characters: does one cite the other?",
        "put new_aan_pairs.{train,eval,test}.tsv of lra_release.gz (google-research/long-range-arena) into one folder",
        num_classes=2,
        defaults=DataOptions(max_length=4000),
        read=retrieval.read,
        pair=True,
    ),
    "image": Task(
        "CIFAR-10 as 1024 grey pixels: what is in the picture?",
        "downloaded (cifar-10-python.tar.gz, 170 MB), or --source the archive, its folder, an npz, or image folders",
        num_classes=10,
        defaults=DataOptions(max_length=1024, validation=0.1),
        read=image.read,
    ),
    "pathfinder": Task(
        "drawings of dashed curves as 1024 grey pixels: are both markers on one curve?",
        "nothing to get: it is drawn; the published folders curv_* are read from --source FOLDER",
        num_classes=2,
        defaults=DataOptions(validation=0.1, test=0.1, image_size=32),
        read=pathfinder_task.read,
        generated=True,
    ),
    "longdoc16k": _longdoc(16384),
    "longdoc32k": _longdoc(32768),
    "ensembl-bs": _ensembl("cDNA of cattle and pigs: Bos or Sus?", ("Bos", "Sus")),
    "ensembl-mr": _ensembl("cDNA of mice and rats: Mus or Rattus? (2:1)", ("Mus", "Rattus")),
    "listops-quick": Task(
        "ListOps with 30 to 120 tokens: a small model learns much of it in minutes",
        "nothing to get: it is generated",
        num_classes=10,
        defaults=DataOptions(max_length=119),
        read=listops_task.read_quick,
        generated=True,
    ),
    "listops-lessons": Task(
        "ListOps as a course: from two digits under one operator to 120 tokens, in order",
        "nothing to get: it is generated",
        num_classes=10,
        defaults=DataOptions(max_length=119),
        read=listops_task.read_lessons,
        generated=True,
    ),
}


def prepare(
    task_or_path: str | Path,
    source: str | Path | None = None,
    options: DataOptions | None = None,
    cache: Path | None = None,
    offline: bool = False,
    mirror: str | None = None,
    refresh: bool = False,
    progress: Progress | None = None,
) -> Prepared:
    """Data ready for training: a task by name, or one's own file, folder or hub data set.

    The result is kept in the cache and found there the next time. It is written aside and renamed when whole, so that
    an interrupted run leaves nothing that could be mistaken for data.

    Args:
        task_or_path: a name in ``TASKS``, a file or folder, or the name of a data set on the Hugging Face hub.
        source: where the files of a task lie, or "hub:NAME" for a copy on the hub; by default downloaded or generated.
        options: what to make of it; see ``DataOptions``.
        cache: folder of prepared data; by default SYNVOLUTION_CACHE or the system's place for caches.
        offline: never use the network.
        mirror: address with copies of the files to download; SYNVOLUTION_MIRROR is one, too.
        refresh: prepare again even if it is in the cache.
        progress: called with (what, number of rows) while it works.

    Example:
        >>> from tempfile import mkdtemp
        >>> data = prepare("listops-quick", options=DataOptions(samples=50), cache=Path(mkdtemp()))
        >>> data.splits["train"].num_rows, data.classes[:3], len(data.processor)
        (42, ['0', '1', '2'], 16)
    """
    home = cache_folder(cache)
    name, options, key, read = _chosen(
        str(task_or_path), source, options or DataOptions(), home, offline, mirror, progress
    )
    folder = home / "prepared" / f"{name}-{key}"
    if refresh or not is_whole(folder):
        reading = read()
        with locked(folder):
            if refresh or not is_whole(folder):  # another process may have made it while we waited
                with whole_folder(folder) as partial:
                    build(name, reading, options, partial, progress)
    return Prepared.load(folder)


def _chosen(
    name: str,
    source: str | Path | None,
    options: DataOptions,
    home: Path,
    offline: bool,
    mirror: str | None,
    progress: Progress | None,
) -> tuple[str, DataOptions, str, Callable[[], Reading]]:
    """Short name, filled options, cache key and reader of what was asked for."""
    if name in TASKS:
        task = TASKS[name]
        options = options.filled(task.defaults)
        hub = str(source).removeprefix("hub:") if str(source).startswith("hub:") else None
        if hub is not None:
            return name, options, _key(name, task.version, hub, options), lambda: _hub_task(name, hub, options, offline)
        place = _source_of(name, Path(source) if source is not None else None, home, offline, mirror, progress)
        state = None if place is None else _state(place)
        return name, options, _key(name, task.version, state, options), lambda: task.read(place, options)
    if source is not None:
        raise ValueError(f"source {source} goes with a task ({', '.join(TASKS)}); {name!r} is none")
    path = Path(name).expanduser()
    if path.exists():
        short = re.sub(r"[^A-Za-z0-9_-]", "-", path.absolute().name.split(".")[0]) or "data"
        return short, options, _key("own", 2, _state(path), options), lambda: own.read(path, options)
    if re.fullmatch(r"(hub:)?[\w.-]+(/[\w.-]+)?", name) is None or path.suffix in (*tables.KINDS, ".gz", ".xz"):
        raise FileNotFoundError(f"{name} is no task ({', '.join(TASKS)}) and does not exist as a file or folder")
    if near := get_close_matches(name.lower(), TASKS, 1, 0.75):
        raise ValueError(f"{name!r} is no task: did you mean {near[0]}? (hub:{name} is the data set of the hub)")
    hub = name.removeprefix("hub:")
    short = hub.replace("/", "--")
    return short, options, _key("hub", 2, hub, options), lambda: own.read_hub(hub, options, offline)


def _hub_task(name: str, hub: str, options: DataOptions, offline: bool) -> Reading:
    """A task from a copy on the hub: the classes must be the task's."""
    classes = {"text": text.CLASSES, "image": image.CLASSES}
    if name not in classes:
        raise ValueError(f"{name} is not read from the hub, only {' and '.join(classes)} are: {TASKS[name].obtain}")
    return own.read_hub(hub, options, offline, classes[name])


def _source_of(
    name: str, source: Path | None, home: Path, offline: bool, mirror: str | None, progress: Progress | None
) -> Path | None:
    """Where a task's files are: as given, in the cache's folder of sources, or downloaded. None: none are needed."""
    if source is not None:
        if not (source.is_file() or source.is_dir()):
            what = "is neither a file nor a folder" if source.exists() else "does not exist"
            raise FileNotFoundError(f"{source} {what}")
        return source
    if TASKS[name].generated:
        return None
    by_hand = home / "sources" / name
    if by_hand.exists():
        return by_hand
    if name in DOWNLOADS and not offline:
        return fetch(DOWNLOADS[name], home / "downloads", mirror, progress)
    if name in DOWNLOADS and (home / "downloads" / DOWNLOADS[name].name).exists():
        return home / "downloads" / DOWNLOADS[name].name
    raise FileNotFoundError(
        f"{name} needs its data: {TASKS[name].obtain}; give its path (train: --data, data prepare: --source), or "
        f"put it at {by_hand}"
    )


def cache_folder(cache: Path | None = None) -> Path:
    """Where prepared and downloaded data is kept: as given, $SYNVOLUTION_CACHE, or the system's place for caches.

    Example:
        >>> cache_folder(Path("here"))
        PosixPath('here')
    """
    chosen = cache or os.environ.get("SYNVOLUTION_CACHE") or platformdirs.user_cache_dir("synvolution")
    return Path(chosen).expanduser()


def _key(name: str, version: int, source: object, options: DataOptions) -> str:
    content = [VERSION, name, version, source, options.effective()]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def _state(source: Path) -> list[list[object]]:
    """Names, sizes and times of the files of a source: what tells cheaply that it has changed."""
    files = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
    stats = [(path, path.stat()) for path in files]
    return [[str(path.absolute()), stat.st_size, stat.st_mtime_ns] for path, stat in stats]
