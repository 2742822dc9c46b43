"""``synvolution data``: what a user sees, and what an error looks like."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from synvolution.cli import main
from synvolution.data.base import TASKS, DataOptions, prepare
from synvolution.data.verify import checks, value_of


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNVOLUTION_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str, int]:
    monkeypatch.setattr(sys, "argv", ["synvolution", "data", *arguments])
    code = 0
    try:
        main()
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    captured = capsys.readouterr()
    return captured.out, captured.err, code


def test_list(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    prepare("listops-quick", options=DataOptions(samples=10))
    out, _, code = run(monkeypatch, capsys, "list")
    assert code == 0
    assert all(name in out for name in TASKS)
    assert out.count("prepared (1)") == 1


def test_prepare_show_and_verify(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--samples", "60", "--workers", "1", "--seed", "3")
    out, _, code = run(monkeypatch, capsys, "prepare", "listops-quick", *options)
    assert code == 0
    assert "duplicates: none" in out
    out, _, code = run(monkeypatch, capsys, "verify", "listops-quick", *options)
    assert code == 0
    assert "values computed again" in out
    assert "no " not in [line[-4:-1] for line in out.splitlines()]
    out, _, code = run(monkeypatch, capsys, "show", "listops-quick", "--number", "2")
    assert code == 0
    assert out.count("tokens)") == 2


def test_contact_sheet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, _, code = run(monkeypatch, capsys, "show", "pathfinder", "--difficulty", "easy", "--number", "6")
    assert code == 0
    assert "written: pathfinder.png" in out
    with Image.open(tmp_path / "pathfinder.png") as sheet:
        pixels = np.asarray(sheet)
    assert pixels.shape == (150, 816)
    assert pixels[4:132, 4:132].max() == 255
    assert (pixels[4:132, 4:132] == 0).mean() > 0.5


def test_own_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("words,kind\n" + "".join(f"some words {n},{'ab'[n % 2]}\n" for n in range(40)))
    out, _, code = run(monkeypatch, capsys, "show", "mine.csv")
    assert code == 0
    assert "columns: text = words, label = kind" in out
    assert "some words" in out


def test_names_are_no_markup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nothing in a file, be it a name or a text, can end in a traceback of the table or steer the terminal."""
    rows = "".join(f"\x1b[2Jsome words {n},{('[/b]', '[red]')[n % 2]}\n" for n in range(40))
    (tmp_path / "[x] [").mkdir()
    (tmp_path / "[x] [" / "b].csv").write_text("[/words],label\n" + rows)
    for command in ("prepare", "show", "verify"):
        out, err, code = run(monkeypatch, capsys, command, "[x] [/b].csv")
        assert (code, err) == (0, "")
    out, _, _ = run(monkeypatch, capsys, "show", "[x] [/b].csv")
    assert "columns: text = [/words], label = label" in out
    assert all(line in out for line in ("[/b] (", "[red] (", "\ufffd[2Jsome words"))
    assert "\x1b" not in out


def test_lists_that_were_cut_are_right(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out, _, code = run(monkeypatch, capsys, "verify", "listops-quick", "--samples", "60", "--max-length", "50")
    assert code == 0
    assert "all rows right" in out


def test_export(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ("--difficulty", "easy", "--samples", "20", "--workers", "1")
    out, _, code = run(monkeypatch, capsys, "prepare", "pathfinder", *options, "--export", "out")
    assert code == 0
    assert "20 images" in out
    assert len(list((tmp_path / "out").rglob("*.png"))) == 20
    _, err, code = run(monkeypatch, capsys, "prepare", "listops", "--export", "out")
    assert code == 2
    assert "--export writes drawn Pathfinder images" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("prepare", "nowhere.csv"), "is no task"),
        (("prepare", "retrieval"), "retrieval needs its data"),
        (("prepare", "text", "--offline"), "text needs its data"),
        (("prepare", "listops", "--validation", "2"), "validation is 2.0"),
        (("show", "listops", "--number", "0"), "1 to 1000 rows"),
        (("prepare", "pathfinder", "--image-size", "7", "--samples", "10"), "image_size is 7"),
    ],
)
def test_errors_are_one_line(
    arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err, code = run(monkeypatch, capsys, *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_verify_finds_what_was_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = prepare("listops-quick", options=DataOptions(samples=60))
    assert all(check.holds is not False for check in checks(data))
    (folder,) = [path for path in (tmp_path / "cache" / "prepared").iterdir() if path.is_dir()]
    (file,) = (folder / "splits" / "train").glob("*.arrow")
    with pa.memory_map(str(file)) as source:
        table = pa.ipc.open_stream(source).read_all()
        labels = table["label"].to_numpy().copy()
        table = table.set_column(1, table.schema.field("label"), pa.array((labels + 1) % 10))
        with pa.OSFile(str(tmp_path / "new"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    (tmp_path / "new").replace(file)
    out, err, code = run(monkeypatch, capsys, "verify", "listops-quick", "--samples", "60")
    assert code == 2
    assert "does not pass: fingerprint, ids, lengths and labels" in err
    assert "a list has the value" in out


def test_evaluator() -> None:
    assert value_of(["[MED", "1", "2", "9", "]"]) == 2
    assert value_of(["7"]) == 7
    for wrong in ("[MED 1 2", "1 2", "[MIN ]", "]"):
        assert value_of(wrong.split()) is None


def test_the_documented_python_runs(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(block, "docs/data.md", "exec"), {})
    assert (tmp_path / "tokenizer" / "tokenizer.json").exists()


def test_documents_name_every_task() -> None:
    text = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in TASKS)
