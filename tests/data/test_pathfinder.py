"""Pathfinder: labels from the geometry, room between the curves, what is drawn, and the layout of the release."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from synvolution.data.base import DataOptions, prepare
from synvolution.data.pathfinder import (
    FOLDER,
    PathfinderRule,
    Scene,
    clearance,
    draw,
    generate,
    rule_for,
    scene,
)
from synvolution.data.pathfinder_task import CLASSES, export, metadata

HARD = rule_for(32, "hard")


def curve_of(marker: NDArray[np.float64], found: Scene) -> int:
    """The curve whose paddle ends at the marker."""
    distance = [np.abs(curve - marker).sum(-1).min() for curve in found.curves]
    assert min(distance) < 1e-9
    assert sorted(distance)[1] > 0.5
    return int(np.argmin(distance))


def distance_between(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Distance of two segments, from points close together on both."""
    share = np.linspace(0, 1, 50)[:, None]
    first, second = (s[0] + share * (s[1] - s[0]) for s in (one, other))
    return float(np.sqrt(((first[:, None] - second[None]) ** 2).sum(-1)).min())


@pytest.mark.parametrize(
    ("size", "difficulty"), [(32, "easy"), (32, "middle"), (32, "hard"), (64, "hard"), (128, "easy")]
)
def test_geometry(size: int, difficulty: str) -> None:
    rule, source = rule_for(size, difficulty), np.random.default_rng(1)
    for number in range(6):
        found = scene(rule, number % 2, source)
        one, other = (curve_of(marker, found) for marker in found.markers)
        assert {one, other} <= {0, 1}
        assert int(one == other) == found.label == number % 2
        assert [len(curve) for curve in found.curves[:2]] == [rule.contour_length] * 2
        assert {len(curve) for curve in found.curves[2:]} <= {rule.distractor_length}
        check_room(found, rule)


def check_room(found: Scene, rule: PathfinderRule) -> None:
    paddles = [
        (number, place, paddle) for number, curve in enumerate(found.curves) for place, paddle in enumerate(curve)
    ]
    for number, place, paddle in paddles:
        assert np.all((paddle >= rule.padding) & (paddle <= rule.size - 1 - rule.padding))
        assert np.isclose(np.linalg.norm(paddle[1] - paddle[0]), rule.paddle_length)
        for number2, place2, paddle2 in paddles:
            if number == number2 and place2 == place + 1:
                gap = np.linalg.norm(paddle2[0] - paddle[1])
                assert gap <= 2 * found.margin + 1e-9
            elif (number, place) < (number2, place2):
                assert distance_between(paddle, paddle2) > clearance(rule, found.margin) - 0.3


def test_picture() -> None:
    """The markers are the brightest and roundest things; nothing is drawn where no curve is."""
    found = scene(HARD, 1, np.random.default_rng(2))
    image = draw(found, HARD).astype(float)
    assert image.shape == (32, 32)
    assert image.max() == 255
    for x, y in np.round(found.markers).astype(int):
        assert image[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2].max() == 255
    y, x = np.mgrid[:32, :32]
    ends = np.concatenate([curve.reshape(-1, 2) for curve in found.curves])
    far = (np.hypot(x[..., None] - ends[:, 0], y[..., None] - ends[:, 1]).min(-1) > 4).astype(bool)
    assert image[far].max(initial=0) <= 20
    assert 0.05 < (image > 60).mean() < 0.5


def test_workers_and_seeds() -> None:
    rule = rule_for(32, "easy")
    one, two = (list(generate(rule, 130, 5, workers)) for workers in (1, 2))
    assert len(one) == 130
    for (image, label), (image2, label2) in zip(one, two, strict=True):
        assert label == label2
        assert (image == image2).all()
    assert len({image.tobytes() for image, _ in one}) == 130
    assert sum(label for _, label in one) == 65
    other = next(iter(generate(rule, 1, 6)))[0]
    assert (other != one[0][0]).any()


def test_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match="image_size is 48: Pathfinder has images of 32, 64 or 128"):
        prepare("pathfinder", options=DataOptions(image_size=48, samples=10))


def test_prepared_from_the_generator_and_from_its_own_files(tmp_path: Path) -> None:
    options = DataOptions(difficulty="easy", samples=40)
    assert export(tmp_path / "files", options, per_folder=15) == 40
    drawn = prepare("pathfinder", options=options, cache=tmp_path)
    read = prepare("pathfinder", tmp_path / "files", options, cache=tmp_path)
    assert drawn.classes == CLASSES
    assert drawn.facts["rows"] == {"train": 32, "validation": 4, "test": 4}
    for name in ("train", "validation", "test"):
        assert drawn.splits[name]["input_ids"] == read.splits[name]["input_ids"]
        assert drawn.splits[name]["label"] == read.splits[name]["label"]
        assert sum(drawn.splits[name]["label"]) * 2 == drawn.splits[name].num_rows
    assert read.splits["train"]["row_id"][0].startswith("curv_baseline/imgs/0/sample_")


def test_all_difficulties(tmp_path: Path) -> None:
    data = prepare("pathfinder", options=DataOptions(difficulty="all", samples=31), cache=tmp_path)
    assert sum(data.facts["rows"].values()) == 31
    assert export(tmp_path / "out", DataOptions(difficulty="all", samples=31)) == 31
    assert len(list((tmp_path / "out").rglob("*.png"))) == 31
    with pytest.raises(ValueError, match="old and new images would mix"):
        export(tmp_path / "out", DataOptions(difficulty="easy", samples=3))


def test_fields_of_the_release(tmp_path: Path) -> None:
    """The convention of the published readers: fields between blanks, path, file, number, label."""
    export(tmp_path, DataOptions(difficulty="hard", samples=4))
    root = tmp_path / FOLDER["hard"]
    for line in (root / "metadata" / "0.npy").read_text().split("\n")[:-1]:
        fields = line.split(" ")
        with Image.open(root / fields[0] / fields[1]) as image:
            assert image.size == (32, 32)
        assert int(fields[3]) in (0, 1)
        assert fields[4:] == ["1.0", "14", "4", "2", "0.5", "1", "1"]


def published(folder: Path) -> Path:
    export(folder, DataOptions(difficulty="hard", samples=30))
    return folder / FOLDER["hard"]


def test_binary_metadata(tmp_path: Path) -> None:
    root = published(tmp_path)
    lines = metadata(root / "metadata" / "0.npy")
    np.save(root / "metadata" / "0.npy", np.array(lines))
    assert metadata(root / "metadata" / "0.npy") == lines
    np.save(root / "metadata" / "0.npy", np.array(lines).astype("S"))  # as Python 2 wrote strings
    assert metadata(root / "metadata" / "0.npy") == lines
    assert sum(prepare("pathfinder", tmp_path, cache=tmp_path / "c").facts["rows"].values()) == 30
    np.save(root / "metadata" / "0.npy", np.array([["a", 1]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"0.npy: .*pickled objects are refused"):
        prepare("pathfinder", tmp_path, cache=tmp_path / "c")


def test_bad_files(tmp_path: Path) -> None:
    root = published(tmp_path)
    image, lines = root / "imgs" / "0" / "sample_3.png", root / "metadata" / "0.npy"
    image.write_bytes(b"")
    data = prepare("pathfinder", root, cache=tmp_path / "c")
    assert data.facts["skipped"] == {"empty image file": 1}
    Image.new("L", (31, 32)).save(image)
    check_refused(root, tmp_path, r"0.npy: line 4: .*sample_3.png is 31×32: expected 32×32 pixels")
    image.write_bytes(b"no image")
    check_refused(root, tmp_path, r"line 4: .*sample_3.png: not a readable image")
    image.unlink()
    check_refused(root, tmp_path, r"line 4: .*sample_3.png: not a readable image")
    content = lines.read_text()
    lines.write_text(content.replace("sample_3.png 3 1", "sample_3.png 3 7"))
    check_refused(root, tmp_path, r"0.npy: line 4: .* no label 0 or 1 as its fourth field")
    lines.write_text(content.replace("imgs/0 sample_3.png", "../.. sample_3.png"))
    with pytest.raises(ValueError, match=r"line 4: ../../sample_3.png leads out of"):
        prepare("pathfinder", root, cache=tmp_path / "c")
    lines.write_bytes(b"imgs/0 \xff\n")
    with pytest.raises(ValueError, match=r"0.npy: line 1: neither text nor a numpy file"):
        prepare("pathfinder", root, cache=tmp_path / "c")
    lines.unlink()
    with pytest.raises(FileNotFoundError, match=r"no file N.npy"):
        prepare("pathfinder", root, cache=tmp_path / "c")
    with pytest.raises(FileNotFoundError, match=r"metadata does not exist"):
        prepare("pathfinder", root / "imgs", cache=tmp_path / "c")


def check_refused(root: Path, cache: Path, message: str) -> None:
    """An error that says where, or a counted skip."""
    with pytest.raises(ValueError, match=message):
        prepare("pathfinder", root, cache=cache / "c")
    data = prepare("pathfinder", root, DataOptions(bad_rows="skip"), cache=cache / "c")
    assert sum(data.facts["skipped"].values()) == 1
    assert sum(data.facts["rows"].values()) == 29


@pytest.mark.slow
def test_ten_thousand_images(tmp_path: Path) -> None:
    data = prepare("pathfinder", options=DataOptions(samples=10_000, workers=2), cache=tmp_path)
    assert data.facts["classes"]["train"] == {name: 4000 for name in CLASSES}
    assert set(data.facts["duplicates"].values()) == {0}
