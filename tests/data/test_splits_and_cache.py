"""Random splits, and folders that are whole or not there, even after SIGKILL."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from synvolution.data import base
from synvolution.data.base import DataOptions, Prepared, cache_folder, prepare
from synvolution.data.prepared import MARKER, is_whole, whole_folder
from synvolution.data.split import connected, random_part, random_split
from synvolution.data.verify import checks


def test_split_is_stratified_and_keeps_units_together() -> None:
    source = np.random.default_rng(0)
    labels = source.choice(3, 3000, p=[0.6, 0.3, 0.1])
    units = labels * 1000 + source.integers(0, 700, 3000)  # several rows of one class in a unit
    split = random_split(labels, units, {"validation": 0.2, "test": 0.3}, seed=4)
    for unit in np.unique(units):
        assert len(set(split[units == unit])) == 1
    for label in range(3):
        shares = np.bincount(split[labels == label], minlength=3) / (labels == label).sum()
        assert np.abs(shares - [0.5, 0.2, 0.3]).max() < 0.02
    assert (split == random_split(labels, units, {"validation": 0.2, "test": 0.3}, seed=4)).all()
    assert (split != random_split(labels, units, {"validation": 0.2, "test": 0.3}, seed=5)).any()


def test_units_of_several_classes() -> None:
    labels, units = np.array([0, 1] * 50), np.repeat(np.arange(50), 2)
    split = random_split(labels, units, {"test": 0.5}, seed=0)
    assert np.bincount(split).tolist() == [50, 0, 50]
    assert (split[::2] == split[1::2]).all()


def test_connected_units() -> None:
    source = np.random.default_rng(0)
    for _ in range(100):
        size = int(source.integers(1, 40))
        keys = [source.integers(0, size, size) for _ in range(2)]
        touching = (keys[0][:, None] == keys[0]) | (keys[1][:, None] == keys[1])
        reach = np.linalg.matrix_power(touching.astype(float), size) > 0
        units = connected(*keys)
        assert ((units[:, None] == units) == reach).all()


def test_part_keeps_the_shares() -> None:
    labels = np.array([0] * 70 + [1] * 20 + [2] * 10)
    chosen = random_part(labels, 31, seed=0)
    assert len(set(chosen.tolist())) == 31
    assert np.bincount(labels[chosen]).tolist() == [22, 6, 3]
    assert random_part(labels, 500, seed=0).tolist() == list(range(100))


def test_options_are_checked() -> None:
    for wrong, message in (
        ({"max_length": 0}, "max_length is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"validation": 0.6, "test": 0.5}, "leave nothing to train on"),
        ({"tokens": "words"}, "tokens is 'words': choose one of auto"),
        ({"workers": 0}, "workers is 0"),
        ({"workers": 100_000}, "workers is 100,000: expected at most 512"),
        ({"image_size": 1_000_000}, "image_size is 1,000,000: expected at most 4,096"),
    ):
        with pytest.raises(ValueError, match=message):
            DataOptions(**wrong)


def write_table(path: Path, rows: int = 60) -> Path:
    path.write_text("text,label\n" + "".join(f"row {number},{'ab'[number % 2]}\n" for number in range(rows)))
    return path


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_bytes_again(tmp_path: Path) -> None:
    table = write_table(tmp_path / "mine.csv")
    one, two = (prepare(table, cache=tmp_path / name) for name in ("one", "two"))
    assert one.fingerprint == two.fingerprint
    (first,), (second,) = (
        [path for path in (tmp_path / name / "prepared").iterdir() if path.is_dir()] for name in ("one", "two")
    )
    assert first.name == second.name
    assert files_of(first) == files_of(second)


def test_cache_is_used_and_noticed_to_be_old(tmp_path: Path) -> None:
    table = write_table(tmp_path / "mine.csv")
    calls: list[str] = []
    for _ in range(2):
        prepare(table, cache=tmp_path, progress=lambda what, number: calls.append(what))
    assert calls.count("rows read") == 1
    write_table(table, 80)
    assert sum(prepare(table, cache=tmp_path).facts["rows"].values()) == 80
    prepare(table, cache=tmp_path, refresh=True, progress=lambda what, number: calls.append(what))
    assert calls.count("rows read") == 2
    assert sum(prepare(table, options=DataOptions(seed=1), cache=tmp_path).facts["rows"].values()) == 80
    assert len([path for path in (tmp_path / "prepared").iterdir() if path.is_dir()]) == 3


def test_save_and_load(tmp_path: Path) -> None:
    data = prepare(write_table(tmp_path / "mine.csv"), cache=tmp_path)
    data.save(tmp_path / "copy")
    copy = Prepared.load(tmp_path / "copy")
    assert copy.facts == data.facts
    assert copy.classes == data.classes == ["a", "b"]
    assert copy.splits["train"][:] == data.splits["train"][:]
    assert copy.processor.get_vocab() == data.processor.get_vocab()  # type: ignore[union-attr]
    assert (copy.max_length, copy.pair) == (data.max_length, False)
    data.save(tmp_path / "copy")  # replaced
    (tmp_path / "copy" / MARKER).unlink()
    with pytest.raises(ValueError, match="holds no prepared data"):
        Prepared.load(tmp_path / "copy")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r"holds other files \(thesis.tex\)"):
        data.save(tmp_path / "other")
    assert (tmp_path / "other" / "thesis.tex").exists()


def test_validation_shares_nothing_with_the_test_set(tmp_path: Path) -> None:
    """Rows of train that are in the test set as well are told, and stay where the source has them."""
    both = "".join(f"on both sides {n},{'ab'[n % 2]}\n" for n in range(20))
    for split in ("train", "test"):
        rows = "".join(f"{split} {n},{'ab'[n % 2]}\n" for n in range(20))
        (tmp_path / "x").mkdir(exist_ok=True)
        (tmp_path / "x" / f"{split}.csv").write_text("text,label\n" + rows + both)
    data = prepare(tmp_path / "x", options=DataOptions(validation=0.4), cache=tmp_path)
    assert data.facts["rows"] == {"train": 24, "validation": 16, "test": 40}
    assert data.facts["duplicates"]["in validation and test"] == 0
    assert data.facts["duplicates"]["in train and test"] == 20
    found = {check.name: check.holds for check in checks(data)}
    assert found["validation ∩ test"] is True
    assert found["train ∩ test"] is None


def test_an_old_folder_is_moved_away_before_it_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a process killed while it removes would leave half a folder under the name of a whole one."""
    removed: list[str] = []
    original = shutil.rmtree

    def watched(folder: Path, ignore_errors: bool) -> None:
        removed.append(folder.name)
        original(folder, ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", watched)
    for content in ("old", "new"):
        with whole_folder(tmp_path / "x") as partial:
            (partial / "splits").write_text(content)
    assert set(removed) == {"x.partial", "x.old"}
    assert (tmp_path / "x" / "splits").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with whole_folder(tmp_path / "x") as partial:
            (partial / "file").write_text("half")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / "x.partial").exists()
    assert not is_whole(tmp_path / "x")


def test_datasets_reads_the_splits(tmp_path: Path) -> None:
    import datasets

    prepare(write_table(tmp_path / "mine.csv"), cache=tmp_path)
    (folder,) = [path for path in (tmp_path / "prepared").iterdir() if path.is_dir()]
    splits = datasets.load_from_disk(str(folder / "splits"))
    assert splits["train"].features["label"].names == ["a", "b"]
    assert json.loads((folder / "facts.json").read_text())["facts"]["rows"]["train"] == splits["train"].num_rows


KILLED = """
import sys
from pathlib import Path
from synvolution.data.base import DataOptions, prepare
prepare("listops", options=DataOptions(samples=6000), cache=Path(sys.argv[1]),
        progress=lambda what, number: print(what, number, flush=True))
print("whole", flush=True)
"""


@pytest.mark.parametrize("moment", ["rows read 2000", "rows encoded 2000"])
def test_killed_and_run_again(tmp_path: Path, moment: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(moment):
            os.kill(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    left = [path.name for path in (tmp_path / "prepared").iterdir() if path.is_dir()]
    assert left
    assert all(name.endswith(".partial") for name in left)
    again = prepare("listops", options=DataOptions(samples=6000), cache=tmp_path)
    clean = prepare("listops", options=DataOptions(samples=6000), cache=tmp_path / "clean")
    assert again.fingerprint == clean.fingerprint
    assert again.facts == clean.facts
    assert not list((tmp_path / "prepared").glob("*.partial"))


WORKERS = """
import os
from itertools import repeat
from synvolution.data.parallel import ordered_map
if __name__ == "__main__":
    for _ in ordered_map(os.getpid, repeat(()), workers=2):
        print("at work", flush=True)
"""


def test_workers_end_with_who_started_them(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(WORKERS)
    process = subprocess.Popen([sys.executable, str(tmp_path / "script.py")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"at work\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)  # the pipe ends when the last of them has ended


def test_two_at_once(tmp_path: Path) -> None:
    table = write_table(tmp_path / "mine.csv", 3000)
    script = """
import sys
from pathlib import Path
from synvolution.data.base import prepare
print(prepare(sys.argv[1], cache=Path(sys.argv[2])).fingerprint)
"""
    command = [sys.executable, "-c", script, str(table), str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert outputs[0] == outputs[1]


def test_who_waited_does_not_prepare_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write_table(tmp_path / "mine.csv")
    prepare(table, cache=tmp_path)
    answers = iter([False, True, True])  # not there when it was asked for, there when the lock was got
    monkeypatch.setattr(base, "is_whole", lambda folder: next(answers))
    calls: list[str] = []
    prepare(table, cache=tmp_path, progress=lambda what, number: calls.append(what))
    assert calls == []


def test_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNVOLUTION_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    assert cache_folder(Path("x")) == Path("x")
    monkeypatch.delenv("SYNVOLUTION_CACHE")
    assert cache_folder().name == "synvolution"
