"""Downloads against a server on loopback: verified, resumed, mirrored, switched off."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from synvolution.data import download
from synvolution.data.base import prepare
from synvolution.data.download import DOWNLOADS, Download, fetch
from tests.data.test_readers import pack, reviews

CONTENT = bytes(range(256)) * 4000


class Server(ThreadingHTTPServer):
    """Serves one content at any path; may break off, ignore ranges, or not know the file."""

    content = CONTENT
    break_after: int | None = None
    ranges = True
    missing = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.requests: list[tuple[str, str | None]] = []
        self.address = f"http://127.0.0.1:{self.server_address[1]}"


class Answer(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.requests.append((self.path, wanted))
        if self.server.missing:
            self.send_error(404)
            return
        content = self.server.content
        first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.ranges else 0
        if first >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        self.wfile.write(content[first : self.server.break_after])

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def of(server: Server, content: bytes = CONTENT) -> Download:
    return Download(f"{server.address}/file.bin", f"sha256:{hashlib.sha256(content).hexdigest()}", len(content))


def test_fetched_once(server: Server, tmp_path: Path) -> None:
    told: list[int] = []
    path = fetch(of(server), tmp_path, progress=lambda what, number: told.append(number))
    assert path.read_bytes() == CONTENT
    assert told[-1] == len(CONTENT)
    assert fetch(of(server), tmp_path) == path
    assert len(server.requests) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.bin"]


def test_resumed(server: Server, tmp_path: Path) -> None:
    server.break_after = 300_000
    with pytest.raises(OSError, match="the connection ended after 300000 of 1024000 bytes; run it again to go on"):
        fetch(of(server), tmp_path)
    assert not (tmp_path / "file.bin").exists()
    server.break_after = None
    assert fetch(of(server), tmp_path).read_bytes() == CONTENT
    assert server.requests[-1] == ("/file.bin", "bytes=300000-")


def test_a_server_without_ranges(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:1000])
    server.ranges = False
    assert fetch(of(server), tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_whole(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    assert fetch(of(server), tmp_path).read_bytes() == CONTENT


def test_a_wrong_file(server: Server, tmp_path: Path) -> None:
    server.content = CONTENT[:-1] + b"!"
    with pytest.raises(ValueError, match=r"file.bin is not the file that was expected: .*hash"):
        fetch(of(server), tmp_path)
    assert list(tmp_path.iterdir()) == []
    server.content = CONTENT
    assert fetch(of(server), tmp_path).read_bytes() == CONTENT


def test_a_missing_file(server: Server, tmp_path: Path) -> None:
    server.missing = True
    with pytest.raises(OSError, match=r"file.bin cannot be fetched .*Not Found.*: fetch it by hand"):
        fetch(of(server), tmp_path)
    with pytest.raises(OSError, match="cannot be fetched"):
        fetch(Download("http://127.0.0.1:9/file.bin", "md5:0", 1), tmp_path)
    for wrong in ("file:///etc/passwd", "http://[bad/file.bin", "http://host/a b\n"):
        with pytest.raises(ValueError, match="expected an address that begins with https://"):
            fetch(Download(wrong, "md5:0", 1), tmp_path)
    with pytest.raises(OSError, match=r"localhost:abc/file.bin cannot be fetched \(nonnumeric port"):
        fetch(Download("http://localhost:abc/file.bin", "md5:0", 1), tmp_path)


def test_a_server_that_speaks_something_else(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/file.bin"

        def answer() -> None:
            with listening.accept()[0] as connection:
                connection.recv(1000)
                connection.sendall(b"220 mail.example.org ready\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(OSError, match=r"file.bin cannot be fetched .*: fetch it by hand"):
            fetch(Download(address, "md5:0", 1), tmp_path)
        thread.join()


def test_mirror(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Download("https://example.invalid/far/file.bin", of(server).checksum, len(CONTENT))
    assert fetch(original, tmp_path / "a", mirror=server.address + "/copies/").read_bytes() == CONTENT
    monkeypatch.setenv("SYNVOLUTION_MIRROR", server.address)
    assert fetch(original, tmp_path / "b").read_bytes() == CONTENT
    assert [path for path, _ in server.requests] == ["/copies/file.bin", "/file.bin"]


def test_a_task_is_downloaded_and_prepared(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.content = pack(reviews(tmp_path / "imdb"), tmp_path / "imdb.tar.gz").read_bytes()
    one = Download(f"{server.address}/aclImdb_v1.tar.gz", of(server, server.content).checksum, len(server.content))
    monkeypatch.setitem(download.DOWNLOADS, "text", one)
    with pytest.raises(FileNotFoundError, match="text needs its data"):
        prepare("text", cache=tmp_path / "c", offline=True)
    assert server.requests == []
    data = prepare("text", cache=tmp_path / "c")
    assert sum(data.facts["rows"].values()) == 80
    assert prepare("text", cache=tmp_path / "c", offline=True).fingerprint == data.fingerprint


def test_published_addresses() -> None:
    for entry in DOWNLOADS.values():
        assert entry.url.startswith("https://")
        kind, _, digest = entry.checksum.partition(":")
        assert len(digest) == {"md5": 32, "sha256": 64}[kind]
