"""The parts of training: scores, order of rows, checkpoints, options."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from synvolution.training.checkpoints import checkpoints_in, fault_of, keep_newest, newest_sound, whole_checkpoint
from synvolution.training.metrics import score, wilson_interval
from synvolution.training.options import TrainingOptions
from synvolution.training.sampler import LengthGroupedSampler


def test_scores_against_counts_by_hand() -> None:
    rng = np.random.default_rng(0)
    labels, predicted = rng.integers(0, 4, 500), rng.integers(0, 4, 500)
    found = score(predicted, labels, ["a", "b", "c", "d"])
    assert found.accuracy == np.mean(labels == predicted)
    for k, entry in enumerate(found.classes):
        both = np.sum((labels == k) & (predicted == k))
        assert entry.precision == pytest.approx(both / np.sum(predicted == k))
        assert entry.recall == pytest.approx(both / np.sum(labels == k))
        assert entry.f1 == pytest.approx(2 * both / (np.sum(predicted == k) + np.sum(labels == k)))
        assert found.confusion[k] == [int(np.sum((labels == k) & (predicted == j))) for j in range(4)]
    assert found.balanced_accuracy == pytest.approx(np.mean([entry.recall for entry in found.classes]))


def test_class_without_rows_or_predictions_has_zeros_not_nan() -> None:
    found = score(np.array([0, 0]), np.array([0, 1]), ["a", "b", "never"])
    assert [entry.f1 for entry in found.classes] == [pytest.approx(2 / 3), 0.0, 0.0]
    assert found.balanced_accuracy == 0.5  # over the classes that occur


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    for share in (0.1, 0.5, 0.97):
        right = rng.binomial(400, share, 2000)
        covered = [low <= share <= high for low, high in (wilson_interval(int(k), 400) for k in right)]
        assert 0.93 < np.mean(covered) < 0.975
    assert wilson_interval(0, 10)[0] == 0
    assert wilson_interval(10, 10)[1] == pytest.approx(1)


def test_every_row_once_and_batches_of_like_length() -> None:
    lengths = np.random.default_rng(0).integers(10, 2000, 1003)
    sampler = LengthGroupedSampler(lengths.tolist(), 16, seed=3)
    order = np.array(list(sampler))
    assert len(set(order)) == len(order) == len(sampler) == 992  # 1003 rows fill 62 batches
    sampler.set_epoch(1)
    assert set(sampler) != set(order)  # other rows are left out
    batches = [lengths[order[start : start + 16]] for start in range(0, 992, 16)]
    padded = sum(len(batch) * batch.max() for batch in batches)
    assert padded / lengths[order].sum() < 1.1  # a random order has about 1.9
    assert sorted(LengthGroupedSampler([3, 1, 2], 16)) == [0, 1, 2]  # fewer rows than a batch holds
    firsts = np.array([batch.mean() for batch in batches])
    assert abs(np.corrcoef(firsts, np.arange(len(firsts)))[0, 1]) < 0.3  # not sorted over the epoch


def test_order_depends_on_seed_and_epoch_alone() -> None:
    lengths = list(range(100))
    first = LengthGroupedSampler(lengths, 8, seed=1)
    again = LengthGroupedSampler(lengths, 8, seed=1)
    again.set_epoch(3)
    first.set_epoch(3)
    assert list(first) == list(again)
    other = LengthGroupedSampler(lengths, 8, seed=2)
    other.set_epoch(3)
    assert list(first) != list(other)


def test_rows_can_keep_their_order() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 20 * 50 * 4 + 3)  # 20 pools, and rows that fill no batch
    sampler = LengthGroupedSampler(lengths.tolist(), 4, seed=1, in_order=True)
    order = np.array(list(sampler))
    pools = order.reshape(20, 200)
    assert (np.sort(pools) == np.arange(4000).reshape(20, 200)).all()
    within = [np.ptp(lengths[batch]) for batch in order.reshape(-1, 4)]
    assert np.mean(within) < 5  # of similar length
    assert (np.diff(lengths[order]) < 0).any()  # and yet the batches of a pool are shuffled
    assert order.tolist() != list(LengthGroupedSampler(lengths.tolist(), 4, seed=2, in_order=True))


def write(folder: Path, step: int, text: str = "weights") -> Path:
    with whole_checkpoint(folder / f"checkpoint-{step}") as writing:
        (writing / "model").write_text(text)
        (writing / "state").write_text(str(step))
    return folder / f"checkpoint-{step}"


def test_damage_is_found_and_the_one_before_used(tmp_path: Path) -> None:
    first, second, third, fourth = (write(tmp_path, step) for step in (5, 10, 15, 100))
    assert [path.name for path in checkpoints_in(tmp_path)] == [f"checkpoint-{n}" for n in (100, 15, 10, 5)]
    (fourth / "model").write_text("weighty")  # one byte more
    (third / "state").unlink()
    (second / "manifest.json").write_text("{")
    found, complaints = newest_sound(tmp_path)
    assert found == first
    assert [line.split(": ")[1] for line in complaints] == [
        "model is damaged",
        "state is missing",
        "manifest.json cannot be read",
    ]
    assert fault_of(first) is None


def test_truncated_and_flipped_bytes_are_damage(tmp_path: Path) -> None:
    path = write(tmp_path, 1, "x" * 1000)
    os.truncate(path / "model", 500)
    assert "damaged" in str(fault_of(path))
    path = write(tmp_path, 2, "x" * 1000)
    (path / "model").write_text("x" * 999 + "y")
    assert "damaged" in str(fault_of(path))


def test_interrupted_writing_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    write(tmp_path, 1)
    with pytest.raises(ZeroDivisionError), whole_checkpoint(tmp_path / "checkpoint-2") as writing:
        (writing / "model").write_text(str(1 / 0))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-1"]
    # what SIGKILL leaves: a folder with another name
    (tmp_path / ".checkpoint-3.writing").mkdir()
    assert newest_sound(tmp_path)[0] == tmp_path / "checkpoint-1"


def test_old_checkpoints_go_and_the_best_stays(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        write(tmp_path, step)
    keep_newest(tmp_path, 2, tmp_path / "checkpoint-1")
    assert [path.name for path in checkpoints_in(tmp_path)] == ["checkpoint-4", "checkpoint-3", "checkpoint-1"]
    assert json.loads((tmp_path / "checkpoint-1" / "manifest.json").read_text()).keys() == {"model", "state"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"learning_rate": -1.0}, "learning_rate is -1"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"warmup": 1.0}, "warmup is 1.0"),
        ({"clip": -1.0}, "clip is -1.0"),
        ({"max_steps": 0}, "max_steps is 0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingOptions(**options)  # type: ignore[arg-type]


def test_batches_divide_among_processes() -> None:
    assert TrainingOptions(batch_size=12, accumulate=3).batch_per_process(2) == 2
    with pytest.raises(ValueError, match="does not divide into 5 processes"):
        TrainingOptions(batch_size=12).batch_per_process(5)
