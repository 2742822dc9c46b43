"""Real data, where it is: ``SYNVOLUTION_TEST_DATA=FOLDER pytest -m slow tests/data``.

The folder holds imdb/aclImdb.tar.xz, cifar10/cifar10_gray.npz, dna/ and longdoc/; tests whose file is missing are
skipped. The full ListOps is generated as well.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from synvolution.data.base import DataOptions, Prepared, prepare
from synvolution.data.verify import checks

pytestmark = pytest.mark.slow
FOLDER = Path(os.environ.get("SYNVOLUTION_TEST_DATA", "nowhere"))


def real(name: str) -> Path:
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{path} is not here: set SYNVOLUTION_TEST_DATA to the folder of real data")
    return path


def passed(data: Prepared) -> None:
    assert [check for check in checks(data) if check.holds is False] == []


def test_listops(tmp_path: Path) -> None:
    one = prepare("listops", options=DataOptions(workers=1), cache=tmp_path / "1")
    two = prepare("listops", options=DataOptions(workers=2), cache=tmp_path / "2")
    assert one.fingerprint == two.fingerprint
    assert one.facts["rows"] == {"train": 96_000, "validation": 2_000, "test": 2_000}
    assert set(one.facts["duplicates"].values()) == {0}
    assert 500 < one.facts["length"]["min"] <= one.facts["length"]["max"] < 2000
    passed(one)


def test_imdb(tmp_path: Path) -> None:
    data = prepare("text", real("imdb/aclImdb.tar.xz"), cache=tmp_path)
    assert data.facts["rows"] == {"train": 22_500, "validation": 2_500, "test": 25_000}
    assert data.facts["classes"]["validation"] == {"neg": 1_250, "pos": 1_250}
    found = data.facts["duplicates"]
    assert found["in train and test"] == 123
    assert found["in train and validation"] == found["in validation and test"] == 0
    names = {split: set(rows["row_id"]) for split, rows in data.splits.items()}
    assert all(name.startswith("train/") for name in names["train"] | names["validation"])
    assert not names["train"] & names["validation"]
    assert len(names["train"] | names["validation"]) == 25_000
    assert all(name.startswith("test/") for name in names["test"])
    passed(data)


def test_cifar(tmp_path: Path) -> None:
    data = prepare("image", real("cifar10/cifar10_gray.npz"), cache=tmp_path)
    assert data.facts["rows"] == {"train": 45_000, "validation": 5_000, "test": 10_000}
    assert set(data.facts["classes"]["validation"].values()) == {500}
    assert set(data.facts["duplicates"].values()) == {0}
    passed(data)


def test_fasta(tmp_path: Path) -> None:
    folder = real("dna")
    (tmp_path / "cds").mkdir()
    for path in folder.glob("*.cds.all.fa.gz"):
        (tmp_path / "cds" / path.name).symlink_to(path)
    data = prepare(tmp_path / "cds", options=DataOptions(max_length=16_384), cache=tmp_path)
    assert sum(data.facts["rows"].values()) == 6_600 + 6_448 + 4_239
    passed(data)


@pytest.mark.parametrize(
    ("name", "options", "number", "encoding"),
    [
        ("dna/yeast_orthologs.tsv.xz", DataOptions(group_column="ortholog"), 16_408, "dna"),
        ("dna/bacteria_phyla.tsv.xz", DataOptions(max_length=16_384), 4_710, "dna"),
        ("dna/vertebrate_mtdna.tsv.xz", DataOptions(max_length=16_384), 4_322, "dna"),
        ("longdoc/arxiv_cs.jsonl.xz", DataOptions(max_length=16_384, validation=0.2, test=0.2), 6_000, "characters"),
    ],
)
def test_tables(name: str, options: DataOptions, number: int, encoding: str, tmp_path: Path) -> None:
    data = prepare(real(name), options=options, cache=tmp_path)
    assert sum(data.facts["rows"].values()) == number
    assert data.facts["encoding"] == encoding
    shared = {what: count for what, count in data.facts["duplicates"].items() if " and " in what}
    assert set(shared.values()) == {0}
    passed(data)
