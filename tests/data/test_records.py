"""Records for prediction, and batches."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

from synvolution.data.base import Collator, DataOptions, stream_records
from synvolution.data.pixels import PixelProcessor, grey


def test_tables_with_and_without_label(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text,label\n"one, two",x\nthree,\n')
    found = list(stream_records(tmp_path / "a.csv"))
    assert found[0] == {
        "text": "one, two",
        "pair": None,
        "id": 0,
        "label": "x",
        "place": f"{tmp_path / 'a.csv'}: line 2",
    }
    assert (found[1]["text"], found[1]["label"], found[1]["id"]) == ("three", None, 1)
    (tmp_path / "b.jsonl").write_text(json.dumps({"premise": "p", "hypothesis": "h", "key": "k1"}) + "\n")
    (record,) = stream_records(tmp_path / "b.jsonl", DataOptions(id_column="key"))
    assert (record["text"], record["pair"], record["id"]) == ("p", "h", "k1")
    pa.parquet.write_table(pa.Table.from_pylist([{"sequence": "ACGT"}]), tmp_path / "c.parquet")
    assert [record["text"] for record in stream_records(tmp_path / "c.parquet")] == ["ACGT"]


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "a.fa.gz").write_bytes(gzip.compress(b">g1 about\nAC\nGT\n>g2\nA\n"))
    assert [(r["id"], r["text"]) for r in stream_records(tmp_path / "a.fa.gz")] == [("g1", "ACGT"), ("g2", "A")]
    (tmp_path / "a.txt").write_text("first\n\nthird\n")
    assert [record["text"] for record in stream_records(tmp_path / "a.txt")] == ["first", "", "third"]
    (tmp_path / "t" / "pos").mkdir(parents=True)
    (tmp_path / "t" / "pos" / "x.txt").write_text("two\nlines")
    (tmp_path / "t" / "y.txt").write_text("alone")
    found = [(r["id"], r["text"], r["label"]) for r in stream_records(tmp_path / "t")]
    assert found == [("pos/x.txt", "two\nlines", "pos"), ("y.txt", "alone", None)]
    with pytest.raises(ValueError, match=r"unknown kind of file '.docx'"):
        list(stream_records(_touch(tmp_path / "a.docx")))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        stream_records(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match="holds no texts"):
        list(stream_records(_folder(tmp_path / "e")))


def _touch(path: Path) -> Path:
    path.write_text("")
    return path


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_bad_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("text,label\nfine,x\nbroken\nlast,y\n")
    with pytest.raises(ValueError, match=r"a.csv: line 3: 1 columns"):
        list(stream_records(tmp_path / "a.csv"))
    found = list(stream_records(tmp_path / "a.csv", DataOptions(bad_rows="skip")))
    assert [record["text"] for record in found] == ["fine", "last"]
    assert "left out" in capsys.readouterr().err


def test_it_streams(tmp_path: Path) -> None:
    """The first records come although the file is damaged further on: it is not read as a whole."""
    lines = "".join(json.dumps({"text": f"t{number} " + "x" * 100}) + "\n" for number in range(50_000))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode())[:-1000])
    assert len(list(islice(stream_records(tmp_path / "a.jsonl.gz"), 500))) == 500
    with pytest.raises(ValueError, match=r"damaged or cut short after line \d{3}"):
        list(stream_records(tmp_path / "a.jsonl.gz"))


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        ("one line\nanother\n", None, ["one line", "another"]),
        (">a\nACGT\n", None, ["ACGT"]),
        ('{"text": "ä"}\n', None, ["ä"]),
        ("text,label\nx,1\n", ".csv", ["x"]),
        ("text\tlabel\nx\t1\n", "tsv", ["x"]),
    ],
)
def test_standard_input(
    content: str, kind: str | None, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").write_text(content, encoding="utf-8")
    with (tmp_path / "in").open() as source:
        monkeypatch.setattr(sys, "stdin", source)
        assert [record["text"] for record in stream_records("-", kind=kind)] == expected


def test_standard_input_of_a_process() -> None:
    script = "from synvolution.data.records import stream_records as s; print([r['text'] for r in s('-')])"
    done = subprocess.run([sys.executable, "-c", script], input="a\nb", capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['a', 'b']", done.stderr


def test_batches() -> None:
    rows: list[dict[str, Any]] = [
        {"input_ids": [1, 2, 3], "input_ids_pair": [4], "label": 1, "length": 3, "row_id": "x"},
        {"input_ids": np.array([7], np.uint8), "input_ids_pair": [8, 9], "label": 0, "length": 2, "row_id": "y"},
    ]
    batch = Collator(pad_token_id=5, pad_to_multiple_of=4)(rows)
    assert batch["input_ids"].tolist() == [[1, 2, 3, 5], [7, 5, 5, 5]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0], [1, 0, 0, 0]]
    assert batch["input_ids_pair"].tolist() == [[4, 5, 5, 5], [8, 9, 5, 5]]
    assert batch["attention_mask_pair"].tolist() == [[1, 0, 0, 0], [1, 1, 0, 0]]
    assert batch["labels"].tolist() == [1, 0]
    assert batch["input_ids"].dtype == batch["labels"].dtype == torch.int64
    assert set(batch) == {"input_ids", "attention_mask", "input_ids_pair", "attention_mask_pair", "labels"}
    turned = Collator(pad_token_id=5, pad_to_multiple_of=4)(rows[::-1])
    assert all(torch.equal(batch[name].flip(0), turned[name]) for name in batch)
    assert Collator(keep_row_id=True)(rows)["row_id"] == ["x", "y"]
    assert Collator(max_length=2)(rows)["input_ids"].tolist() == [[1, 2], [7, 0]]


def test_batches_of_numbers_and_bad_rows() -> None:
    batch = Collator()([{"input_values": [0.5, -1.0]}, {"input_values": [2.0]}])
    assert batch["input_values"].dtype == torch.float32
    assert batch["input_values"].tolist() == [[0.5, -1.0], [2.0, 0.0]]
    assert "labels" not in batch
    with pytest.raises(ValueError, match="row 'x7': input_ids has shape"):
        Collator()([{"input_ids": [], "row_id": "x7"}])
    with pytest.raises(ValueError, match="the rows have the columns text: expected input_ids"):
        Collator()([{"text": "a"}])
    with pytest.raises(ValueError, match="no rows"):
        Collator()([])
    with pytest.raises(ValueError, match="pad_to_multiple_of is 0"):
        Collator(pad_to_multiple_of=0)


def test_pixel_processor(tmp_path: Path) -> None:
    from PIL import Image

    colour = np.random.default_rng(0).integers(0, 256, (8, 6, 3)).astype(np.uint8)
    expected = np.asarray(Image.fromarray(colour).convert("L"))
    processor = PixelProcessor(8, 6, "token", 0.4, 0.2)
    Image.fromarray(colour).save(tmp_path / "x.png")
    for image in (colour, Image.fromarray(colour), str(tmp_path / "x.png"), tmp_path / "x.png"):
        assert (processor(image)["input_ids"] == expected.reshape(1, -1)).all()
    assert processor([colour, colour])["input_ids"].shape == (2, 48)
    values = PixelProcessor(8, 6, "value", 0.4, 0.2)(colour)["input_values"]
    assert np.allclose(values, (expected.reshape(1, -1) / 255 - 0.4) / 0.2, atol=1e-6)
    assert values.dtype == np.float32
    processor.save_pretrained(tmp_path / "p")
    assert PixelProcessor.from_pretrained(tmp_path / "p") == processor
    (tmp_path / "p" / "preprocessor_config.json").write_text("{}")
    with pytest.raises(ValueError, match="not the file of a PixelProcessor"):
        PixelProcessor.from_pretrained(tmp_path / "p")
    with pytest.raises(ValueError, match=r"shape \(2, 2, 2\) and type uint8"):
        grey(np.zeros((2, 2, 2), np.uint8))
    with pytest.raises(ValueError, match="type float64"):
        grey(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="16 bits"):
        grey(Image.fromarray(np.zeros((2, 2), np.uint16)))
    for wrong, message in (
        ((0, 1), "at least 1"),
        ((1, 1, "colour"), "choose token or value"),
        ((1, 1, "value", 0, 0), "std"),
    ):
        with pytest.raises(ValueError, match=message):
            PixelProcessor(*wrong)
