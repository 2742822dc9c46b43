"""The official formats of the tasks, small and whole, and then damaged in every way we could think of."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from transformers import PreTrainedTokenizerFast

from synvolution.data.base import DataOptions, Prepared, prepare
from synvolution.data.image import CLASSES as CIFAR
from synvolution.data.longdoc import without_tags


def rows(data: Prepared) -> int:
    return sum(data.facts["rows"].values())


def texts(data: Prepared, split: str, column: str = "input_ids") -> list[str]:
    assert isinstance(data.processor, PreTrainedTokenizerFast)
    return [str(data.processor.decode(ids)) for ids in data.splits[split][column]]


def refused(task: str, source: Path, cache: Path, message: str, skipped: int = 0, **options: object) -> None:
    """An error that says where; with bad_rows=skip a counted skip, if so many are expected."""
    with pytest.raises((ValueError, OSError), match=message):
        prepare(task, source, DataOptions(**options), cache=cache)  # type: ignore[arg-type]
    assert not [path for path in (cache / "prepared").glob("*") if path.is_dir()]
    if skipped:
        data = prepare(task, source, DataOptions(bad_rows="skip", **options), cache=cache / "skip")  # type: ignore[arg-type]
        assert sum(data.facts["skipped"].values()) == skipped


# ---------------------------------------------------------------- text


def reviews(folder: Path, number: int = 20) -> Path:
    for split in ("train", "test"):
        for label in ("neg", "pos"):
            (folder / "aclImdb" / split / label).mkdir(parents=True)
            for index in range(number):
                text = f"{split} {label} <br />no. {index} — ünïcode\n\nend"
                (folder / "aclImdb" / split / label / f"{index}_7.txt").write_text(text, encoding="utf-8")
    (folder / "aclImdb" / "train" / "unsup").mkdir()
    (folder / "aclImdb" / "train" / "unsup" / "0_0.txt").write_text("not labelled")
    return folder


def pack(folder: Path, archive: Path) -> Path:
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder / "aclImdb", "aclImdb")
    return archive


def test_reviews_from_folder_and_archive(tmp_path: Path) -> None:
    folder = reviews(tmp_path / "imdb")
    archive = pack(folder, tmp_path / "imdb.tar.gz")
    one = prepare("text", folder / "aclImdb", cache=tmp_path)
    two = prepare("text", archive, cache=tmp_path)
    assert one.fingerprint == two.fingerprint
    assert one.facts["rows"] == {"train": 36, "validation": 4, "test": 40}
    assert one.facts["classes"]["validation"] == {"neg": 2, "pos": 2}
    assert one.splits["test"]["row_id"][0] == "test/neg/0_7.txt"
    assert texts(one, "test")[0] == "test neg <br />no. 0 — ünïcode\n\nend"
    assert all(name.startswith("train/") for name in one.splits["validation"]["row_id"])


def test_vocabulary_is_from_train_alone(tmp_path: Path) -> None:
    folder = reviews(tmp_path / "imdb")
    (folder / "aclImdb" / "test" / "neg" / "0_7.txt").write_text("☃ only here", encoding="utf-8")
    data = prepare("text", folder, cache=tmp_path)
    assert "☃" not in data.processor.get_vocab()  # type: ignore[union-attr]
    assert data.splits["test"]["input_ids"][0][0] == 1
    as_bytes = prepare("text", folder, DataOptions(tokens="bytes", max_length=20), cache=tmp_path)
    assert as_bytes.splits["test"]["input_ids"][0] == [byte + 1 for byte in "☃ only here".encode()]
    assert as_bytes.facts["length"]["max"] == 20
    assert as_bytes.facts["length"]["rows cut"] > 0


def test_equal_reviews_are_told_and_kept(tmp_path: Path) -> None:
    folder = reviews(tmp_path / "imdb")
    for name in ("train/neg/3_7.txt", "train/neg/4_7.txt", "test/neg/1_7.txt"):
        (folder / "aclImdb" / name).write_text("the same")
    data = prepare("text", folder, cache=tmp_path)
    found = data.facts["duplicates"]
    assert rows(data) == 80
    assert found["in train and test"] == 1
    assert found["in validation and test"] == found["in train and validation"] == 0


def test_reviews_from_tables(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for split in ("train", "test"):
        lines = [f'"{split}, {number}",{number % 2}\n' for number in range(40)]
        (tmp_path / "t" / f"{split}.csv").write_text("text,label\n" + "".join(lines))
    data = prepare("text", tmp_path / "t", cache=tmp_path)
    assert data.facts["rows"] == {"train": 36, "validation": 4, "test": 40}
    assert data.facts["classes"]["test"] == {"neg": 20, "pos": 20}
    (tmp_path / "t" / "test.csv").write_text("text,label\nx,2\n")
    refused("text", tmp_path / "t", tmp_path / "c", r"test.csv: line 2: label '2' is none of neg, pos")


def test_damaged_archives(tmp_path: Path) -> None:
    archive = pack(reviews(tmp_path / "imdb"), tmp_path / "imdb.tar.gz")
    whole = archive.read_bytes()
    for length in (20, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        archive.write_bytes(whole[:length])
        refused("text", archive, tmp_path / "c", r"imdb.tar.gz: damaged, cut short, or no tar archive")
    plain = tmp_path / "imdb.tar"
    for length in (512 * 40, 512 * 41, 512 * 42 + 7):  # between members, too, where tarfile sees nothing wrong
        plain.write_bytes(gzip.decompress(whole)[:length])
        refused("text", plain, tmp_path / "c", r"imdb.tar: damaged, cut short, or no tar archive")
    archive.write_bytes(b"")
    refused("text", archive, tmp_path / "c", r"imdb.tar.gz: damaged, cut short, or no tar archive")
    for name in ("../../evil/train/pos/1_7.txt", "/etc/train/pos/1_7.txt"):
        with tarfile.open(archive, "w:gz") as tar:
            member = tarfile.TarInfo(name)
            member.size = 4
            tar.addfile(member, io.BytesIO(b"evil"))
        refused("text", archive, tmp_path / "c", r"leads out of the archive")
    with tarfile.open(archive, "w:gz") as tar:
        link = tarfile.TarInfo("aclImdb/train/pos/1_7.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    refused("text", archive, tmp_path / "c", r"no file train/pos")


def test_bad_reviews(tmp_path: Path) -> None:
    folder = reviews(tmp_path / "imdb")
    (folder / "aclImdb" / "train" / "neg" / "5_7.txt").write_bytes(b"ok \xff")
    refused("text", folder, tmp_path / "c", r"aclImdb/train/neg/5_7.txt: byte 4 is not UTF-8", skipped=1)
    (folder / "aclImdb" / "train" / "neg" / "5_7.txt").write_bytes(b"")
    refused("text", folder, tmp_path / "d", r"5_7.txt: the sequence is empty", skipped=1)
    refused("text", tmp_path / "nowhere", tmp_path / "d", r"nowhere does not exist")


# ---------------------------------------------------------------- image


def cifar_arrays() -> dict[str, Any]:
    source = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, number in (("train", 100), ("test", 20)):
        arrays[f"x_{split}"] = source.integers(0, 256, (number, 3072)).astype(np.uint8)
        arrays[f"y_{split}"] = np.arange(number, dtype=np.uint8) % 10
    return arrays


def cifar_batches(folder: Path, arrays: dict[str, Any]) -> Path:
    """As the official ones: pickles of protocol 2 with bytes as keys."""
    folder.mkdir()
    parts = [
        (f"data_batch_{n + 1}", arrays["x_train"][20 * n : 20 * n + 20], arrays["y_train"][20 * n : 20 * n + 20])
        for n in range(5)
    ]
    for name, data, labels in [*parts, ("test_batch", arrays["x_test"], arrays["y_test"])]:
        content = {b"batch_label": name.encode(), b"labels": labels.tolist(), b"data": data, b"filenames": [b"x.png"]}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    return folder


def test_cifar_in_every_form(tmp_path: Path) -> None:
    arrays = cifar_arrays()
    folder = cifar_batches(tmp_path / "cifar-10-batches-py", arrays)
    with tarfile.open(tmp_path / "cifar-10-python.tar.gz", "w:gz") as tar:
        tar.add(folder, folder.name)
    np.savez(tmp_path / "colour.npz", **arrays)
    grey: dict[str, Any] = {}
    for split in ("train", "test"):
        colour = arrays[f"x_{split}"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        grey[f"x_{split}"] = np.stack([np.asarray(Image.fromarray(one).convert("L")) for one in colour]).reshape(
            -1, 1024
        )
        for number, (image, label) in enumerate(zip(colour, arrays[f"y_{split}"], strict=True)):
            place = tmp_path / "pictures" / split / CIFAR[label]
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(place / f"{number:03d}.png")
        grey[f"y_{split}"] = arrays[f"y_{split}"]
    np.savez(tmp_path / "grey.npz", **grey)
    sources = [folder, tmp_path / "cifar-10-python.tar.gz", tmp_path / "colour.npz", tmp_path / "grey.npz"]
    found = [prepare("image", source, cache=tmp_path / "c") for source in sources]
    assert len({data.fingerprint for data in found}) == 1
    assert found[0].facts["rows"] == {"train": 90, "validation": 10, "test": 20}
    assert found[0].splits["test"]["input_ids"] == grey["x_test"].tolist()
    assert found[0].splits["test"]["label"] == grey["y_test"].tolist()
    pictures = prepare("image", tmp_path / "pictures", cache=tmp_path / "c")
    assert sorted(pictures.splits["test"]["input_ids"]) == sorted(grey["x_test"].tolist())
    value = prepare("image", tmp_path / "grey.npz", DataOptions(pixels="value"), cache=tmp_path / "c")
    train = np.array(value.splits["train"]["input_values"])
    assert abs(train.mean()) < 1e-3
    assert abs(train.std() - 1) < 1e-3
    assert value.splits["train"].features["input_values"].feature.dtype == "float32"


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch evil",)


def test_pickles_run_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = cifar_batches(tmp_path / "py", cifar_arrays())
    for content in (Evil(), {b"data": Evil()}, {b"data": np.zeros((1, 3072)), b"labels": [1]}, {b"labels": [1]}, 3):
        (folder / "data_batch_2").write_bytes(pickle.dumps(content, protocol=2))
        refused("image", folder, tmp_path / "c", r"data_batch_2: no batch of CIFAR-10, or damaged")
        assert not (tmp_path / "evil").exists()


def compressed(path: Path, arrays: dict[str, Any]) -> bytes:
    np.savez_compressed(path, **arrays)
    return path.read_bytes()


def test_bad_cifar(tmp_path: Path) -> None:
    arrays = cifar_arrays()
    folder = cifar_batches(tmp_path / "py", arrays)
    whole = (folder / "data_batch_3").read_bytes()
    (folder / "data_batch_3").write_bytes(whole[:5000])
    refused("image", folder, tmp_path / "c", r"data_batch_3: no batch of CIFAR-10, or damaged")
    (folder / "data_batch_3").unlink()
    refused("image", folder, tmp_path / "c", r"data_batch_3 not found")
    np.savez(tmp_path / "a.npz", **(arrays | {"y_train": np.full(100, 11, np.uint8)}))
    refused("image", tmp_path / "a.npz", tmp_path / "c", r"a.npz: train image 0: label '11' is none of airplane")
    np.savez(tmp_path / "a.npz", **(arrays | {"x_train": arrays["x_train"][:, :3000]}))
    refused("image", tmp_path / "a.npz", tmp_path / "c", r"images of shape \(3000,\): expected 1024 or 3072")
    np.savez(tmp_path / "a.npz", **(arrays | {"y_train": arrays["y_train"][:50]}))
    refused("image", tmp_path / "a.npz", tmp_path / "c", r"shape \(100, 3072\), 50 labels of type uint8: expected as")
    for labels in (arrays["y_train"] / 1.0, np.array(["cat"] * 100)):
        np.savez(tmp_path / "a.npz", **(arrays | {"y_train": labels}))
        refused("image", tmp_path / "a.npz", tmp_path / "c", r"a.npz: .*expected .*labels of whole numbers")
    for images in (np.uint8(3), np.zeros((100, 32, 32, 5), np.uint8)):
        np.savez(tmp_path / "a.npz", **(arrays | {"x_train": images}))
        refused("image", tmp_path / "a.npz", tmp_path / "c", r"a.npz: images of .*expected")
    damaged = bytearray(compressed(tmp_path / "a.npz", arrays))
    damaged[len(damaged) // 3 :: 7] = bytes(len(damaged[len(damaged) // 3 :: 7]))
    (tmp_path / "a.npz").write_bytes(damaged)
    refused("image", tmp_path / "a.npz", tmp_path / "c", r"a.npz: no npz file")
    np.savez(tmp_path / "a.npz", x_train=arrays["x_train"])
    refused("image", tmp_path / "a.npz", tmp_path / "c", r"no npz file with x_train")
    np.savez(tmp_path / "a.npz", **(arrays | {"x_train": np.array([Evil()], dtype=object)}))
    refused("image", tmp_path / "a.npz", tmp_path / "c", r"no npz file with x_train.*allow_pickle")
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 nothing")
    refused("image", tmp_path / "a.npz", tmp_path / "c", r"no npz file with x_train")
    refused("image", tmp_path / "a.npz", tmp_path / "c", r"image_size is 64", image_size=64)
    np.savez(tmp_path / "a.npz", **arrays)
    refused("image", tmp_path / "a.npz", tmp_path / "c", r"max_length is 9: the images have 1024 pixels", max_length=9)


# ---------------------------------------------------------------- retrieval


def pairs(folder: Path, extra: bytes = b"") -> Path:
    folder.mkdir(exist_ok=True)
    for name in ("train", "eval", "test"):
        lines = [
            f'{number % 2}.0\tP{number}\tQ{number}\t"first text {number}\tsecond, {number}\n' for number in range(6)
        ]
        (folder / f"new_aan_pairs.{name}.tsv").write_bytes("".join(lines).encode() + (extra if name == "eval" else b""))
    return folder


def test_pairs(tmp_path: Path) -> None:
    data = prepare("retrieval", pairs(tmp_path / "aan"), cache=tmp_path)
    assert data.pair
    assert data.facts["rows"] == {"train": 6, "validation": 6, "test": 6}
    assert texts(data, "validation")[1] == '"first text 1'
    assert texts(data, "validation", "input_ids_pair")[1] == "second, 1"
    assert data.splits["validation"]["label"] == [0, 1] * 3
    assert data.splits["validation"]["length"][1] == 13
    cut = prepare("retrieval", tmp_path / "aan", DataOptions(max_length=4), cache=tmp_path)
    assert texts(cut, "test", "input_ids_pair")[0] == "seco"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"1.0\ta\tb\tonly one\n", r"eval.tsv: line 7: 4 columns: expected 5"),
        (b"1.0\ta\tb\tone\ttwo\tthree\n", r"eval.tsv: line 7: 6 columns"),
        (b"2.0\ta\tb\tone\ttwo\n", r"eval.tsv: line 7: label '2.0' is none of"),
        (b"1.0\ta\tb\tone\t\n", r"eval.tsv: line 7: the sequence is empty"),
    ],
)
def test_bad_pairs(tmp_path: Path, line: bytes, message: str) -> None:
    refused("retrieval", pairs(tmp_path / "aan", line), tmp_path / "c", message, skipped=1)


def test_bad_pair_files(tmp_path: Path) -> None:
    refused(
        "retrieval", pairs(tmp_path / "aan", b"1.0\ta\tb\t\xc3\tx\n"), tmp_path / "c", r"line 7: byte 0xc3 .* not UTF-8"
    )
    (tmp_path / "aan" / "new_aan_pairs.eval.tsv").write_text("")
    refused("retrieval", tmp_path / "aan", tmp_path / "c", r"eval.tsv is empty")
    (tmp_path / "aan" / "new_aan_pairs.eval.tsv").unlink()
    refused("retrieval", tmp_path / "aan", tmp_path / "c", r"eval.tsv does not exist")


# ---------------------------------------------------------------- long documents


def papers(folder: Path) -> Path:
    for label in ("cs.AI", "cs.NE", "math.AC", "math.GR", "math.ST"):
        (folder / label).mkdir(parents=True)
        for number in range(10):
            text = f"arXiv:12{number} [{label}] by [1] and [{label}, cs.LG] " + f"{label[0]}{number} words " * 50
            (folder / label / f"{number}.txt").write_text(text)
    return folder


def test_papers(tmp_path: Path) -> None:
    data = prepare("longdoc16k", papers(tmp_path / "docs"), DataOptions(max_length=100), cache=tmp_path)
    assert data.facts["rows"] == {"train": 24, "validation": 8, "test": 8}
    assert set(map(str, data.facts["classes"]["test"].values())) == {"2"}
    assert data.facts["tags stripped"] == 80
    for split in ("train", "validation", "test"):
        for text in texts(data, split):
            assert text.startswith("arXiv:12")  # the first characters, in every split
            assert "[1]" in text
            assert "cs." not in text
            assert "math" not in text
    assert data.classes == ["cs.AI", "cs.NE", "math.AC", "math.GR"]


def test_tags() -> None:
    kept = "f[x] [12] [Smith et al.] [a.b] x[i] [the cs department] [math]"
    assert without_tags(kept)[0] in (kept, kept.replace("[math]", ""))
    for tag in ("[cs.AI]", "[math.GR]", "[cs.NE cs.LG]", "[cs.AI; stat.ML]", "[ cs.AI ]", "[hep-th]"):
        assert without_tags(f"a {tag} b") == ("a  b", 1)
    without_tags("[a" + " " * 200_000)  # in linear time


def test_bad_papers(tmp_path: Path) -> None:
    refused("longdoc16k", tmp_path, tmp_path / "c", r"has no text file in a folder cs.AI")
    folder = papers(tmp_path / "docs")
    (folder / "cs.AI" / "3.txt").write_text("")
    refused("longdoc16k", folder, tmp_path / "c", r"cs.AI/3.txt: the sequence is empty", skipped=1)
    (folder / "cs.AI" / "3.txt").write_bytes(b"old text \xe9 with latin letters")
    data = prepare("longdoc32k", folder, cache=tmp_path)
    assert data.facts["files with bytes that are no UTF-8"] == 1


# ---------------------------------------------------------------- Ensembl


def genes(folder: Path, extra: bytes = b"") -> Path:
    folder.mkdir(exist_ok=True)
    source = np.random.default_rng(0)
    for species in ("Bos_taurus.ARS-UCD1.2", "Bos_grunniens.LU", "Sus_scrofa.Sscrofa11.1", "Ovis_aries.v1"):
        lines = b""
        for number in range(20):
            bases = "".join(source.choice(list("ACGT"), 150))
            wrapped = "\n".join(bases[place : place + 60] for place in range(0, 150, 60))
            lines += f">ENST{number}.1 cdna chromosome:1 gene:G{number}\n{wrapped}\n".encode()
        lines += extra if species.startswith("Sus") else b""
        with gzip.open(folder / f"{species}.cdna.all.fa.gz", "wb") as file:
            file.write(lines)
    return folder


def test_genes(tmp_path: Path) -> None:
    data = prepare("ensembl-bs", genes(tmp_path / "dna", b">odd x\nacgtRYn\nU\n"), cache=tmp_path)
    assert data.classes == ["Bos", "Sus"]
    assert rows(data) == 61
    assert data.facts["rows"] == {"train": 37, "validation": 12, "test": 12}
    assert data.facts["letters read as n"] == 2
    assert data.facts["length"]["min"] == 8
    found = {
        name: ids
        for split in data.splits.values()
        for name, ids in zip(split["row_id"], split["input_ids"], strict=True)
    }
    assert found["Sus_scrofa/odd"] == [1, 2, 3, 4, 5, 5, 5, 4]
    cut = prepare("ensembl-bs", tmp_path / "dna", DataOptions(max_length=100), cache=tmp_path)
    assert cut.facts["length"] == {"min": 8, "median": 100.0, "mean": 98.49, "max": 100, "rows cut": 60}


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (b">a\nACGT*\n", r"Sus_scrofa.*fa.gz: line 81: '\*' is no base"),
        (b">a\nMKLVEFP\n", r"line 81: 'L' is no base"),
        (b">a\n>b\nAC\n", r"line 81: the sequence is empty"),
        (b">ENST3.1\nAC\n", r"line 81: id 'Sus_scrofa/ENST3.1' has occurred before"),
    ],
)
def test_bad_genes(tmp_path: Path, extra: bytes, message: str) -> None:
    refused("ensembl-bs", genes(tmp_path / "dna", extra), tmp_path / "c", message, skipped=1)


def test_bad_gene_files(tmp_path: Path) -> None:
    folder = genes(tmp_path / "dna")
    path = folder / "Sus_scrofa.Sscrofa11.1.cdna.all.fa.gz"
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    refused("ensembl-bs", folder, tmp_path / "c", r"Sus_scrofa.*fa.gz: damaged or cut short after line \d+")
    path.write_bytes(b"not gzip")
    refused("ensembl-bs", folder, tmp_path / "c", r"Sus_scrofa.*fa.gz: damaged or cut short after line 0")
    path.write_bytes(gzip.compress(b""))
    refused("ensembl-bs", folder, tmp_path / "c", r"Sus_scrofa.*fa.gz is empty")
    path.write_bytes(gzip.compress(b"ACGT\n"))
    refused("ensembl-bs", folder, tmp_path / "c", r"line 1 does not begin with '>'")
    path.write_bytes(gzip.compress(b">a\nAC\xffGT\n"))
    refused("ensembl-bs", folder, tmp_path / "c", r"line 2: byte 0xff at column 3 is not UTF-8")
    refused("ensembl-mr", folder, tmp_path / "c", r"has no file Mus_\*.fa")


def test_tasks_without_their_data(tmp_path: Path) -> None:
    for task in ("retrieval", "longdoc16k", "ensembl-bs", "ensembl-mr"):
        with pytest.raises(
            FileNotFoundError, match=rf"{task} needs its data: put .*; give its path .*, or put it at .*{task}"
        ):
            prepare(task, cache=tmp_path)
    with pytest.raises(FileNotFoundError, match="text needs its data: downloaded"):
        prepare("text", cache=tmp_path, offline=True)
    pairs(tmp_path / "x")
    (tmp_path / "sources").mkdir()
    (tmp_path / "x").rename(tmp_path / "sources" / "retrieval")
    assert rows(prepare("retrieval", cache=tmp_path)) == 18
    with pytest.raises(ValueError, match="tokens is 'bytes': this data has tokens of its own"):
        prepare("listops-quick", options=DataOptions(tokens="bytes", samples=10), cache=tmp_path)
