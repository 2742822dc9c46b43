"""Text files line by line, compressed or not; what is wrong with them is said with file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

#: How a file is opened, by the end of its name.
OPENERS: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".tgz": gzip.open,
    ".xz": lzma.open,
    ".txz": lzma.open,
    ".bz2": bz2.open,
}

#: What the decompressors raise on a damaged file.
DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


def kind_of(path: Path) -> str:
    """The end of a file's name that says what is in it, without that of the compression.

    Example:
        >>> kind_of(Path("genes.FA.gz")), kind_of(Path("README"))
        ('.fa', '')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in OPENERS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def lines_of(path: Path | str) -> Iterator[str]:
    """The lines of a UTF-8 file with their line ends ("-": standard input), in constant memory.

    Damaged compression, bytes that are no UTF-8 and files that cannot be opened are errors that name file and line.
    """
    number, opened = 0, open_bytes(path)
    try:
        with opened as source:
            for number, line in enumerate(source, 1):
                if number == 1 and line.startswith(b"\xef\xbb\xbf"):
                    line = line[3:]  # the mark some editors put in front
                try:
                    yield line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise ValueError(
                        f"{path}: line {number}: byte {line[error.start]:#04x} at column {error.start + 1} "
                        "is not UTF-8: convert the file (iconv -f latin1 -t utf-8)"
                    ) from error
    except (*DAMAGED, OSError) as error:  # bz2 raises a bare OSError
        raise ValueError(f"{path}: damaged or cut short after line {number} ({error}): fetch it again") from error


def open_bytes(path: Path | str) -> IO[bytes]:
    """A file opened for reading bytes, decompressed by the end of its name.

    Example:
        >>> open_bytes("nowhere.txt.gz")
        Traceback (most recent call last):
        ...
        FileNotFoundError: nowhere.txt.gz does not exist
    """
    if str(path) == "-":
        return open(sys.stdin.fileno(), "rb", closefd=False)
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: expected a file")
    if path.suffix.lower() not in OPENERS:
        return path.open("rb")
    opened: IO[bytes] = OPENERS[path.suffix.lower()](path)
    return opened


def text_of(path: Path) -> str:
    """A whole small text file."""
    return "".join(lines_of(path))
