"""Files of a folder or of a tar archive, in the order of their names, nothing unpacked to disk."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from synvolution.data.files import DAMAGED, open_bytes


def files_in(source: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Name (with "/") and content of the wanted files of a folder or tar archive (.tar, .tar.gz, .tar.xz, .tgz).

    An archive is read in one go and its wanted files kept in memory until all are there, so that they come in the same
    order as from a folder. Names that lead out of the archive are an error; links are left out; nothing is unpacked.
    """
    if source.is_dir():
        for path in sorted(source.rglob("*"), key=lambda path: path.relative_to(source).as_posix()):
            name = path.relative_to(source).as_posix()
            if wanted(name) and path.is_file():
                yield name, path.read_bytes()
        return
    if not source.exists():
        raise FileNotFoundError(f"{source} does not exist")
    try:
        with open_bytes(source) as unpacked:
            found = _members(source, _Tail(unpacked), wanted)
    except (tarfile.TarError, *DAMAGED, OSError) as error:
        raise ValueError(f"{source}: damaged, cut short, or no tar archive ({error}): fetch it again") from error
    yield from sorted(found.items())


def _members(source: Path, unpacked: _Tail, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=unpacked, mode="r|") as archive:  # type: ignore[call-overload]  # read() is all it needs
        for member in archive:
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"{source}: the member {member.name!r} leads out of the archive: not read")
            content = archive.extractfile(member) if member.isreg() and wanted(str(path)) else None
            if content is not None:
                found[str(path)] = content.read()
    while unpacked.read(1 << 20):  # to the end, so that the checksums of the compression are looked at
        pass
    if any(unpacked.tail) or len(unpacked.tail) < 1024:
        raise tarfile.ReadError("the two empty blocks at its end are missing")
    return found


class _Tail:
    """A file that remembers the last two blocks read. tarfile itself takes the end of a cut archive for its end."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source, self.tail = source, b""

    def read(self, size: int = -1) -> bytes:
        """As of the file."""
        content = self._source.read(size)
        self.tail = (self.tail + content)[-1024:]
        return content


def is_archive(path: Path) -> bool:
    """Whether a file's name is that of a tar archive.

    Example:
        >>> is_archive(Path("aclImdb_v1.tar.gz")), is_archive(Path("a.csv.gz"))
        (True, False)
    """
    return path.name.lower().endswith((".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2"))
