"""Downloads: verified, resumed, from a mirror if wanted, or not at all."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pooch

from synvolution.data.staging import Progress

#: Bytes taken from the network at a time.
BLOCK = 1 << 18


@dataclass(frozen=True)
class Download:
    """A public file.

    Args:
        url: where its maker offers it.
        checksum: "md5:…" or "sha256:…", as published.
        size: bytes, to be told before the download.
    """

    url: str
    checksum: str
    size: int

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.url.rsplit("/", 1)[-1]


#: Checksums: the md5 printed on the page of CIFAR-10; for IMDB the one that torchtext and others check.
DOWNLOADS: dict[str, Download] = {
    "text": Download(
        "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
        "md5:7c2ac02c03563afcf9b574c7e56c153a",
        84_125_825,
    ),
    "image": Download(
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        "md5:c58f30108f718f92721af3b95e74349a",
        170_498_071,
    ),
}


def fetch(download: Download, folder: Path, mirror: str | None = None, progress: Progress | None = None) -> Path:
    """The file, from the folder if it is there and right, else from its address or from the mirror.

    A mirror is an address that has files of the same names; SYNVOLUTION_MIRROR is one, too. What an interrupted
    download has got stays in a .part file and is continued.
    """
    mirror = mirror or os.environ.get("SYNVOLUTION_MIRROR")
    url = f"{mirror.rstrip('/')}/{download.name}" if mirror else download.url
    if re.fullmatch(r"https?://(\[[\da-fA-F:.]+\]|[\w.-]+)(:\w+)?(/[!-~]*)?", url) is None:
        raise ValueError(f"{url}: expected an address that begins with https:// or http://")
    try:
        path = pooch.retrieve(
            url,
            known_hash=download.checksum,
            fname=download.name,
            path=folder,
            downloader=_Resuming(folder / (download.name + ".part"), progress),
        )
    except (OSError, http.client.HTTPException) as error:  # also what breaks off in the middle
        reason = str(getattr(error, "reason", error)).strip()
        raise OSError(
            f"{url} cannot be fetched ({reason}): fetch it by hand and give its path (train: --data, "
            "data prepare: --source)"
        ) from error
    except ValueError as error:  # pooch: the checksum differs
        (folder / (download.name + ".part")).unlink(missing_ok=True)
        raise ValueError(f"{url} is not the file that was expected: {error}") from error
    (folder / (download.name + ".part")).unlink(missing_ok=True)
    return Path(path)


class _Resuming:
    """A downloader for pooch that goes on where the last one was interrupted."""

    def __init__(self, part: Path, progress: Progress | None) -> None:
        self.part, self.progress = part, progress

    def __call__(self, url: str, output_file: str | IO[bytes], pooch: Any, check_only: bool = False) -> None:
        """Fetch an address into the .part file, then copy it to where pooch wants it."""
        got = self.part.stat().st_size if self.part.exists() else 0
        request = urllib.request.Request(url, headers={"Range": f"bytes={got}-"} if got else {})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                resumed = answer.status == 206
                self._take(answer, "ab" if resumed else "wb", got if resumed else 0)
        except urllib.error.HTTPError as error:
            if error.code != 416:  # 416: nothing is left to fetch
                raise
        if isinstance(output_file, str):
            shutil.copyfile(self.part, output_file)
        else:
            with self.part.open("rb") as source:
                shutil.copyfileobj(source, output_file)

    def _take(self, answer: Any, mode: str, got: int) -> None:
        expected = answer.headers.get("Content-Length")
        total = None if expected is None else got + int(expected)
        with self.part.open(mode) as target:
            while block := answer.read(BLOCK):
                target.write(block)
                got += len(block)
                if self.progress is not None:
                    self.progress("bytes fetched", got)
        if total is not None and got < total:
            raise urllib.error.URLError(f"the connection ended after {got} of {total} bytes; run it again to go on")
