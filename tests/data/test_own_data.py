"""People's own data: tables, folders, FASTA, the hub; columns guessed; what is wrong is said with file and line."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import socket
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image
from transformers import PreTrainedTokenizerFast

from synvolution.data import own
from synvolution.data.base import DataOptions, Prepared, prepare
from synvolution.data.pixels import grey
from synvolution.data.tables import columns_of

ROWS = [{"label": "ab"[n % 2], "n": n, "text": f'line "{n}", with\nnewline and ünïcode'} for n in range(40)]


def first_texts(data: Prepared, column: str = "input_ids") -> set[str]:
    assert isinstance(data.processor, PreTrainedTokenizerFast)
    return {str(data.processor.decode(ids)) for split in data.splits.values() for ids in split[column]}


def csv_of(rows: list[dict[str, Any]]) -> str:
    quoted = [[str(value).replace('"', '""') for value in row.values()] for row in rows]
    lines = [",".join(rows[0]), *(",".join(f'"{cell}"' for cell in row) for row in quoted)]
    return "\n".join(lines) + "\n"


def test_every_kind_of_table_gives_the_same(tmp_path: Path) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    files: dict[str, bytes] = {
        "a.csv": csv_of(ROWS).encode(),
        "b.csv.gz": gzip.compress(csv_of(ROWS).encode()),
        "c.jsonl": lines.encode(),
        "d.jsonl.xz": lzma.compress(lines.encode()),
        "e.ndjson.bz2": bz2.compress(lines.encode()),
        "f.json": json.dumps(ROWS).encode(),
        "g.csv": b"\xef\xbb\xbf" + csv_of(ROWS).encode(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    pa.parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "h.parquet")
    found = [prepare(tmp_path / name, cache=tmp_path / "c") for name in (*files, "h.parquet")]
    assert len({data.fingerprint for data in found}) == 1
    assert found[0].facts["rows"] == {"train": 32, "validation": 4, "test": 4}
    assert found[0].facts["columns"] == {"text": "text", "label": "label"}
    assert first_texts(found[0]) == {row["text"] for row in ROWS}
    assert found[0].name == "a"


def test_tsv_has_no_quotes(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("target\tsequence\n" + "".join(f'{n % 3}\t"it is {n}\n' for n in range(30)))
    data = prepare(tmp_path / "x.tsv", cache=tmp_path)
    assert data.classes == ["0", "1", "2"]
    assert '"it is 7' in first_texts(data)


def test_splits_by_name_of_file(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, number in (("train", 20), ("dev", 6), ("test", 8)):
        (folder / f"{name}.csv").write_text("text,label\n" + "".join(f"{name} {n},{n % 2}\n" for n in range(number)))
    (folder / "notes.csv").write_text("who,what\nme,nothing\n")
    data = prepare(folder, cache=tmp_path)
    assert data.facts["rows"] == {"train": 20, "validation": 6, "test": 8}
    assert data.facts["split"] == "train as given, validation as given, test as given"
    (folder / "dev.csv").unlink()
    assert prepare(folder, cache=tmp_path).facts["rows"] == {"train": 18, "validation": 2, "test": 8}


def test_numbers_as_classes_are_in_order(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text,label\n" + "".join(f"t{n},{n % 12}\n" for n in range(120)))
    assert prepare(tmp_path / "x.csv", cache=tmp_path).classes == [str(number) for number in range(12)]


def test_groups_and_dna(tmp_path: Path) -> None:
    source = np.random.default_rng(0)
    lines = ["species\tgene_id\tortholog\tsequence"]
    for gene in range(100):
        bases = "".join(source.choice(list("ACGT"), 40))
        lines += [
            f"{species}\t{species}{gene}\tO{gene}\t{bases}{'ACG'[k]}" for k, species in enumerate(("x", "y", "z"))
        ]
    lines += [f"x\tx_{gene}\tP{gene}\tACGTACGTACGTACGTACGTACGTACGTA" for gene in range(6)]  # equal in different groups
    (tmp_path / "g.tsv.xz").write_bytes(lzma.compress("\n".join(lines).encode()))
    options = DataOptions(group_column="ortholog", id_column="gene_id", validation=0.2, test=0.2)
    data = prepare(tmp_path / "g.tsv.xz", options=options, cache=tmp_path)
    assert data.facts["encoding"] == "dna"
    assert data.facts["columns"] == {"text": "sequence", "label": "species", "group": "ortholog", "identity": "gene_id"}
    genes = [{name[1:] for name in split["row_id"]} for split in data.splits.values()]
    assert not genes[0] & genes[1]
    assert not genes[0] & genes[2]
    assert not genes[1] & genes[2]
    shared = {name: number for name, number in data.facts["duplicates"].items() if "and" in name}
    assert set(shared.values()) == {0}
    without = prepare(tmp_path / "g.tsv.xz", options=DataOptions(tokens="characters"), cache=tmp_path)
    assert without.facts["encoding"] == "characters"


def test_pairs(tmp_path: Path) -> None:
    rows = [{"premise": f"p{n}", "hypothesis": f"a longer h{n}", "label": n % 2, "other": n} for n in range(30)]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = prepare(tmp_path / "x.jsonl", cache=tmp_path)
    assert data.pair
    assert first_texts(data, "input_ids_pair") == {row["hypothesis"] for row in rows}
    options = DataOptions(text_column="other", pair_column="premise")
    with pytest.raises(ValueError, match=r"x.jsonl: line 1: column 'other' holds int: expected text"):
        prepare(tmp_path / "x.jsonl", options=options, cache=tmp_path)


def test_columns() -> None:
    def guess(record: dict[str, Any], **options: Any) -> tuple[str, str | None, str | None]:
        found = columns_of([("x: line 2", record)], DataOptions(**options))
        return found.text, found.label, found.pair

    assert guess({"Review": "a long text", "Sentiment": "pos"}) == ("Review", "Sentiment", None)
    assert guess({"a": "short", "b": "quite a long text here"}) == ("b", "a", None)
    assert guess({"question1": "a", "question2": "b", "label": "1", "id": "7"}) == ("question1", "label", "question2")
    assert guess({"a": "x", "b": "y", "c": "z"}, text_column="a", label_column="c") == ("a", "c", None)
    assert guess({"text": "x", "label": "y", "z": "1"}, label_column="z") == ("text", "z", None)
    with pytest.raises(ValueError, match="column 'a' is named for two things"):
        guess({"a": "x", "label": "y"}, text_column="a", pair_column="a")
    with pytest.raises(ValueError, match="cannot tell the label_column among a, b, c"):
        guess({"a": "x", "b": "y", "c": "long text"})
    with pytest.raises(ValueError, match=r"no column 'q' \(text_column\): there are a, b"):
        guess({"a": "x", "b": "y"}, text_column="q")


GOOD = "text,label,id\n" + "".join(f"row {n},{'ab'[n % 2]},{n}\n" for n in range(30))


@pytest.mark.parametrize(
    ("line", "message", "reason"),
    [
        ("only one\n", r"x.csv: line 32: 1 columns: expected 3: text, label, id", "wrong number of columns"),
        ("a,b,c,d\n", r"line 32: 4 columns", "wrong number of columns"),
        (",a,99\n", r"line 32: the sequence is empty", "empty sequence"),
        ("t,,99\n", r"line 32: nothing in column 'label'", "no label"),
        ("t,a,7\n", r"line 32: id '7' has occurred before", "duplicate id"),
    ],
)
def test_bad_rows(tmp_path: Path, line: str, message: str, reason: str) -> None:
    (tmp_path / "x.csv").write_text(GOOD + line)
    with pytest.raises(ValueError, match=message):
        prepare(tmp_path / "x.csv", options=DataOptions(id_column="id"), cache=tmp_path)
    data = prepare(tmp_path / "x.csv", options=DataOptions(id_column="id", bad_rows="skip"), cache=tmp_path)
    assert data.facts["skipped"] == {reason: 1}
    assert sum(data.facts["rows"].values()) == 30


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"", r"x.csv is empty"),
        ("x.csv", b"text,label\n", r"x.csv has no usable row"),
        ("x.csv", b"text,text\na,b\n", r"line 1: the names of the columns .* must be there and differ"),
        ("x.csv", b"text,label\na,b\n\xff,c\n", r"x.csv: line 3: byte 0xff at column 1 is not UTF-8"),
        ("x.csv", b'text,label\n"a,b\n', r"x.csv: line 2: unexpected end of data"),
        ("x.csv", b"text,label\na,b\nc,b\n", r"one class only \('b'\)"),
        ("x.csv", b"text,label\na,b\nc,d\n", r"no row is left for"),
        ("x.csv.gz", gzip.compress(GOOD.encode() * 50)[:-40], r"x.csv.gz: damaged or cut short after line \d+"),
        ("x.csv.xz", lzma.compress(GOOD.encode())[:-20], r"x.csv.xz: damaged or cut short after line \d+"),
        ("x.jsonl", b"", r"x.jsonl is empty"),
        ("x.jsonl", b'{"text": "a", "label": 1}\n{"text": \n', r"x.jsonl: line 2: no JSON"),
        ("x.jsonl", b"[1, 2]\n", r"x.jsonl: line 1: list: expected an object"),
        ("x.jsonl", b'{"text": "a\\ud800", "label": 1}\n', r"line 1: character 2 is half of a surrogate pair"),
        ("x.jsonl", b'{"text": "a", "label": null}\n', r"line 1: nothing in column 'label'"),
        ("x.json", b'{"text": 1}', r"x.json: dict: expected a list"),
        ("x.json", b"[", r"x.json: no JSON"),
        ("x.parquet", b"PAR1 nothing", r"x.parquet: damaged, or no parquet file"),
        ("x.fa", b">a\nACGT\n", r"one FASTA file and has no classes"),
        ("x.csv", b"\n\ntext,label\na,b\n", r"line 1: the names of the columns \[\] must be there"),
        ("x.csv.bz2", b"no bz2 at all", r"x.csv.bz2: damaged or cut short after line 0"),
        ("x.jsonl", b'{"label": ' + b"1" * 5000 + b"}\n", r"x.jsonl: line 1: no JSON"),
        ("x.jsonl", b'{"text": "a", "label": "\\ud800"}\n', r"line 1: the label or id has half of a surrogate pair"),
        ("x.jsonl", b'{"text": "a", "label": ["b"]}\n', r"line 1: column 'label' holds list: expected one value"),
        ("x.json", b'["\xff"]', r"x.json: line 1: byte 0xff"),
        ("x.docx", b"PK", r"unknown kind of file '.docx': expected .csv, .tsv"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        prepare(tmp_path / name, cache=tmp_path / "c")
    assert not [path for path in (tmp_path / "c").rglob("*") if path.is_dir() and path.name != "prepared"]


def test_free_text_is_no_class(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text,label\n" + "".join(f"t{n},unique {n}\n" for n in range(1500)))
    with pytest.raises(ValueError, match="1500 different values, such as 'unique 0': these are no classes"):
        prepare(tmp_path / "x.csv", cache=tmp_path)


def test_random_part(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text,label\n" + "".join(f"t{n},{n % 2}\n" for n in range(400)))
    data = prepare(tmp_path / "x.csv", options=DataOptions(samples=100), cache=tmp_path)
    assert data.facts["rows"] == {"train": 80, "validation": 10, "test": 10}
    assert data.facts["classes"]["train"] == {"0": 40, "1": 40}


def test_columns_of_what_has_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"group_column goes with tables: generated .* has no columns"):
        prepare("listops-quick", options=DataOptions(group_column="gene", samples=20), cache=tmp_path)


def test_a_folder_for_each_class(tmp_path: Path) -> None:
    for label in ("cats", "dogs"):
        (tmp_path / "t" / label / "deep").mkdir(parents=True)
        for number in range(15):
            (tmp_path / "t" / label / "deep" / f"{number}.txt").write_text(f"{label} {number}\n")
    data = prepare(tmp_path / "t", cache=tmp_path)
    assert data.classes == ["cats", "dogs"]
    assert "dogs 3\n" in first_texts(data)
    assert "cats/deep/3.txt" in [name for split in data.splits.values() for name in split["row_id"]]
    (tmp_path / "t" / "cats" / "deep" / "0.txt").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"cats/deep/0.txt: line 1: byte 0xff"):
        prepare(tmp_path / "t", cache=tmp_path)


def test_folders_of_images(tmp_path: Path) -> None:
    source = np.random.default_rng(0)
    for split, number in (("train", 20), ("test", 6)):
        for label in ("x", "y"):
            (tmp_path / "i" / split / label).mkdir(parents=True)
            for index in range(number):
                pixels = source.integers(0, 256, (6, 9, 3)).astype(np.uint8)
                Image.fromarray(pixels).save(tmp_path / "i" / split / label / f"{index}.png")
    data = prepare(tmp_path / "i", cache=tmp_path)
    assert data.max_length == 54
    assert data.facts["rows"] == {"train": 36, "validation": 4, "test": 12}
    assert prepare(tmp_path / "i", options=DataOptions(image_size=4), cache=tmp_path).max_length == 16
    Image.new("L", (5, 5)).save(tmp_path / "i" / "train" / "x" / "3.png")
    with pytest.raises(ValueError, match=r"x/3.png is 5×5: expected 9×6 pixels, or image_size to scale all"):
        prepare(tmp_path / "i", cache=tmp_path)
    (tmp_path / "i" / "test" / "x" / "0.png").write_bytes(b"no image, and the first of all")
    Image.new("I;16", (9, 6)).save(tmp_path / "i" / "train" / "y" / "2.png")
    skipped = prepare(tmp_path / "i", options=DataOptions(bad_rows="skip"), cache=tmp_path)
    assert skipped.facts["skipped"] == {"unreadable image": 3}
    with pytest.raises(ValueError, match=r"y/2.png: not a readable image \(an image of mode I;16 has 16 bits"):
        grey(tmp_path / "i" / "train" / "y" / "2.png")


def test_fasta_for_each_class(tmp_path: Path) -> None:
    source = np.random.default_rng(0)
    (tmp_path / "f").mkdir()
    (tmp_path / "g" / "one").mkdir(parents=True)
    (tmp_path / "g" / "two").mkdir()
    for number, label in enumerate(("one", "two")):
        lines = "".join(f">s{n}\n{''.join(source.choice(list('acgt'), 30 + number))}\n" for n in range(20))
        (tmp_path / "f" / f"{label}.cds.fa").write_text(lines)
        (tmp_path / "g" / label / "part.fasta.gz").write_bytes(gzip.compress(lines.encode()))
    files, folders = (prepare(tmp_path / name, cache=tmp_path) for name in ("f", "g"))
    assert files.classes == folders.classes == ["one", "two"]
    assert files.facts["encoding"] == "dna"
    assert first_texts(files) == first_texts(folders)


def test_nothing_known(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds nothing known: expected tables"):
        prepare(tmp_path / "empty", cache=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"is no task .* and does not exist"):
        prepare("./some/where/else", cache=tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is neither a file nor a folder"):
        prepare(tmp_path / "pipe", cache=tmp_path)
    with pytest.raises(FileNotFoundError, match="pipe is neither a file nor a folder"):
        prepare("text", tmp_path / "pipe", cache=tmp_path)
    with pytest.raises(ValueError, match="goes with a task"):
        prepare(tmp_path / "empty", source=tmp_path, cache=tmp_path)


def test_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder stands in for the hub: the same call, the same code of datasets, no network."""
    repository = tmp_path / "repository"
    repository.mkdir()
    for split, number in (("train", 40), ("test", 10)):
        rows = [{"text": f"{split} {n}", "label": n % 2} for n in range(number)]
        (repository / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked: list[tuple[str, dict[str, Any]]] = []
    original = datasets.load_dataset

    def stand_in(name: str, **options: Any) -> Any:
        asked.append((name, options))
        return original(str(repository), cache_dir=str(tmp_path / "hf"), **options)

    monkeypatch.setattr(datasets, "load_dataset", stand_in)
    data = prepare("someone/reviews", cache=tmp_path, offline=True)
    assert data.name == "someone--reviews"
    assert data.facts["rows"] == {"train": 36, "validation": 4, "test": 10}
    assert asked[0][0] == "someone/reviews"
    assert asked[0][1]["download_config"].local_files_only
    assert "trust_remote_code" not in asked[0][1]
    assert prepare("hub:someone/reviews", cache=tmp_path, offline=True).fingerprint == data.fingerprint
    with pytest.raises(ValueError, match="label '0' is none of neg, pos"):
        prepare("text", "hub:someone/reviews", cache=tmp_path)
    with pytest.raises(ValueError, match="listops is not read from the hub"):
        prepare("listops", "hub:someone/reviews", cache=tmp_path)


def hub_of(monkeypatch: pytest.MonkeyPatch, splits: dict[str, datasets.Dataset]) -> None:
    monkeypatch.setattr(datasets, "load_dataset", lambda name, **options: datasets.DatasetDict(splits))


def test_hub_with_class_names_and_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])})
    rows, others = (
        {"text": [f"{word}{n}" for n in range(20)], "label": [n % 2 for n in range(20)]} for word in ("t", "other ")
    )
    splits = {"train": rows, "test": others}
    hub_of(monkeypatch, {name: datasets.Dataset.from_dict(content, features) for name, content in splits.items()})
    assert prepare("text", "hub:imdb", cache=tmp_path).facts["classes"]["test"] == {"neg": 10, "pos": 10}
    pictures = datasets.Features({"img": datasets.Image(), "label": datasets.ClassLabel(names=["p", "q"])})
    images = [np.full((4, 4, 3), n * 5, np.uint8) for n in range(40)]
    content = {"img": images, "label": [n % 2 for n in range(40)]}
    hub_of(monkeypatch, {"train": datasets.Dataset.from_dict(content, pictures)})
    data = prepare("someone/pictures", cache=tmp_path)
    assert data.facts["columns"] == {"text": "img", "label": "label"}
    assert data.max_length == 16
    assert data.splits["train"]["input_ids"][0] == [0] * 16
    hub_of(monkeypatch, {"all": datasets.Dataset.from_dict(rows, features)})
    with pytest.raises(ValueError, match="the splits are all: expected train"):
        own.read_hub("someone/other", DataOptions(), offline=False)


def test_hub_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline means that no address is even looked up."""

    def looked_up(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    with pytest.raises(
        ValueError, match=r"'no/such-data' is no task and no file or folder here, and is not in the local"
    ):
        prepare("no/such-data", cache=tmp_path, offline=True)
    assert not datasets.config.HF_HUB_OFFLINE


@pytest.mark.parametrize("name", ["listop", "ListOps", "pathfindr", "longdoc-16k"])
def test_a_slip_in_the_name_of_a_task(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"'{name}' is no task: did you mean (listops|pathfinder|longdoc16k)\?"):
        prepare(name, cache=tmp_path)
