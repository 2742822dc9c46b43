"""Checkpoints that are whole or not there: written aside, listed with their checksums, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MANIFEST = "manifest.json"


@contextmanager
def whole_checkpoint(folder: Path, owner: bool = True) -> Iterator[Path]:
    """A folder to write a checkpoint into, which gets its name when everything is in it.

    Args:
        folder: its final name.
        owner: whether this process finishes it; other processes only write their files.
    """
    writing = folder.with_name(f".{folder.name}.writing")
    if owner:
        shutil.rmtree(writing, ignore_errors=True)
    writing.mkdir(parents=True, exist_ok=True)
    try:
        yield writing
        if owner:
            _seal(writing)
            if folder.exists():  # the same step again after a restart: the same content
                shutil.rmtree(folder)
            os.replace(writing, folder)
            _sync(folder.parent)
    finally:
        if owner:
            shutil.rmtree(writing, ignore_errors=True)


def fault_of(folder: Path) -> str | None:
    """What is wrong with a checkpoint, or None: every file is there with the checksum it was written with.

    Example:
        >>> fault_of(Path("not there"))
        'manifest.json is missing: it was not finished'
    """
    try:
        listed: dict[str, str] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"{MANIFEST} is missing: it was not finished"
    except (OSError, ValueError) as error:
        return f"{MANIFEST} cannot be read: {error}"
    for name, checksum in listed.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if _checksum(path) != checksum:
            return f"{name} is damaged: its checksum is not the one it was written with"
    return None


def checkpoints_in(folder: Path) -> list[Path]:
    """Checkpoints by falling step."""
    found = {
        int(match[1]): path
        for path in folder.glob("checkpoint-*")
        if (match := re.fullmatch(r"checkpoint-(\d+)", path.name))
    }
    return [found[step] for step in sorted(found, reverse=True)]


def newest_sound(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest checkpoint that is whole, and a line about each newer one that is not."""
    complaints: list[str] = []
    for path in checkpoints_in(folder):
        fault = fault_of(path)
        if fault is None:
            return path, complaints
        complaints.append(f"{path}: {fault}")
    return None, complaints


def keep_newest(folder: Path, count: int, besides: Path | None) -> None:
    """Delete all but the newest checkpoints and one more (the best)."""
    for path in checkpoints_in(folder)[count:]:
        if besides is None or path.name != besides.name:
            shutil.rmtree(path, ignore_errors=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file that is never seen half written."""
    writing = path.with_name(f".{path.name}.writing")
    try:
        with open(writing, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(writing, path)
    finally:
        writing.unlink(missing_ok=True)


def _seal(folder: Path) -> None:
    """Force the files to the disk and list them with their checksums."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        _sync(path)
    listed = {str(path.relative_to(folder)): _checksum(path) for path in files}
    write_whole(folder / MANIFEST, json.dumps(listed, indent=1) + "\n")


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    with contextlib.suppress(OSError):  # folders cannot be synchronised on every system
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
