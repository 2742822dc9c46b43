"""One run: what it leaves, what it refuses, and what interrupts it."""

from __future__ import annotations

import errno
import io
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import DatasetDict
from rich.console import Console
from safetensors.torch import load_file
from torch import nn

from synvolution.data.base import DataOptions, Prepared, prepare
from synvolution.recipes import Recipe
from synvolution.training.checkpoints import _seal, checkpoints_in, newest_sound
from synvolution.training.inference import load_model, probabilities
from synvolution.training.rows import Rows
from synvolution.training.run import build_model, build_trainer, initial_model, run
from synvolution.training.trainer import ConverterTrainer, TrainingError
from tests.models.test_saving import Malice
from tests.training.conftest import small


def quiet() -> Console:
    return Console(record=True, width=200, file=io.StringIO())


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def equal(first: Path, second: Path) -> bool:
    a, b = weights(first), weights(second)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_run_leaves_everything_about_it(prepared: Prepared, tmp_path: Path) -> None:
    out = tmp_path / "run"
    results = run(small(), prepared, out, console=quiet())
    files = {path.name for path in out.iterdir()}
    assert {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "results.json",
        "README.md",
        "metrics.jsonl",
        "metrics.csv",
        "curves.png",
        "tensorboard",
        "recipe.json",
    } <= files
    assert json.loads((out / "results.json").read_text()) == json.loads(json.dumps(results))
    assert results["scores"]["test"]["rows"] == len(prepared.splits["test"])
    for key in ("data", "recipe", "selection", "seed", "versions", "machine", "commit", "parameters", "seconds"):
        assert key in results
    assert "test once" in results["selection"]["rule"]
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert {"loss", "accuracy", "tokens_per_second", "learning_rate"} <= set(lines[0])
    assert any("eval_accuracy" in line for line in lines)
    assert list((out / "tensorboard").glob("events*"))


def test_saved_model_is_the_best_on_validation_and_scores_are_its(prepared: Prepared, tmp_path: Path) -> None:
    out = tmp_path / "run"
    results = run(small(epochs=4, learning_rate=0.05), prepared, out, console=quiet())
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    validations = {line["step"]: line["eval_accuracy"] for line in lines if "eval_accuracy" in line}
    best = results["selection"]["step"]
    assert validations[best] == max(validations.values()) == results["scores"]["validation"]["accuracy"]
    assert equal(out, out / f"checkpoint-{best}")
    loaded = load_model(out)
    rows = Rows(prepared.splits["test"])
    found = probabilities(loaded, [rows[i] for i in range(len(rows))]).argmax(-1)
    labels = np.asarray(prepared.splits["test"]["label"])
    assert np.mean(found == labels) == results["scores"]["test"]["accuracy"]


def test_a_seed_decides_the_weights(prepared: Prepared, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(small(max_steps=4, seed=seed), prepared, tmp_path / name, console=quiet())
    assert equal(tmp_path / "a", tmp_path / "b")
    assert not equal(tmp_path / "a", tmp_path / "c")


def test_rows_are_trained_on_in_the_order_asked_for(prepared: Prepared, tmp_path: Path) -> None:
    for order in ("given", "shuffled"):
        recipe = small(order=order)
        trainer = build_trainer(recipe, prepared, build_model(recipe, prepared), tmp_path / order, quiet(), keep=False)
        sampler = trainer._get_train_sampler()
        assert sampler.in_order == (order == "given")
    results = run(small(order="given"), prepared, tmp_path / "run", console=quiet())
    assert results["recipe"]["training"]["order"] == "given"


def test_patience_ends_a_run(prepared: Prepared, tmp_path: Path) -> None:
    recipe = small(epochs=40, patience=2, learning_rate=1e-9)  # nothing is learned, so nothing improves for long
    results = run(recipe, prepared, tmp_path / "run", console=quiet())
    assert results["selection"]["epochs"] < 15


def test_folder_of_another_run_is_refused(prepared: Prepared, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(small(max_steps=2), prepared, out, console=quiet())
    with pytest.raises(ValueError, match="already holds a run: give --resume"):
        run(small(max_steps=2), prepared, out, console=quiet())
    with pytest.raises(ValueError, match=r"holds another run.*batch_size"):
        run(small(max_steps=2, batch_size=8), prepared, out, console=quiet(), resume=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match="holds other files"):
        run(small(), prepared, other, console=quiet())
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ValueError, match="cannot be written"):
        run(small(), prepared, file / "run", console=quiet())


def with_splits(prepared: Prepared, **splits: Any) -> Prepared:
    return replace(prepared, splits=DatasetDict({**prepared.splits, **splits}))


def test_class_seen_only_in_test_is_refused(prepared: Prepared, tmp_path: Path) -> None:
    train = prepared.splits["train"].filter(lambda row: row["label"] != 3)
    with pytest.raises(ValueError, match=r"class '3' occurs in .* but not in train"):
        run(small(), with_splits(prepared, train=train), tmp_path / "run", console=quiet())
    assert not (tmp_path / "run").exists()


def test_no_rows_are_refused(prepared: Prepared, tmp_path: Path) -> None:
    empty = prepared.splits["validation"].select([])
    with pytest.raises(ValueError, match="no rows for validation"):
        run(small(), with_splits(prepared, validation=empty), tmp_path / "run", console=quiet())


def test_nan_stops_with_step_rows_and_hint(prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = ConverterTrainer.compute_loss

    def poisoned(self: ConverterTrainer, model: nn.Module, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if model.training and self.state.global_step == 3:
            with torch.no_grad():
                next(model.parameters()).fill_(float("nan"))
        return compute(self, model, inputs, *args, **kwargs)

    monkeypatch.setattr(ConverterTrainer, "compute_loss", poisoned)
    with pytest.raises(TrainingError, match=r"loss is nan at step 4, batch of rows \d+, .*learning_rate"):
        run(small(), prepared, tmp_path / "run", console=quiet())


def test_exploding_gradient_stops_too(prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = ConverterTrainer.compute_loss

    def infinite(self: ConverterTrainer, *args: Any, **kwargs: Any) -> Any:
        loss = compute(self, *args, **kwargs)
        assert self.model is not None
        return loss + 0 * torch.sqrt(0 * next(self.model.parameters()).sum()) if self.state.global_step == 2 else loss

    monkeypatch.setattr(ConverterTrainer, "compute_loss", infinite)
    with pytest.raises(TrainingError, match="norm of the gradient is nan at step 3"):
        run(small(), prepared, tmp_path / "run", console=quiet())


def interrupted_at(step: int, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = ConverterTrainer.compute_loss

    def interrupt(self: ConverterTrainer, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == step:
            raise error
        return compute(self, *args, **kwargs)

    monkeypatch.setattr(ConverterTrainer, "compute_loss", interrupt)


def test_ctrl_c_leaves_a_checkpoint_that_resumes_to_the_same_bits(prepared: Prepared, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "run"
    run(small(), prepared, whole, console=quiet())
    with pytest.MonkeyPatch.context() as patch:
        interrupted_at(7, KeyboardInterrupt(), patch)
        console = quiet()
        with pytest.raises(KeyboardInterrupt):
            run(small(), prepared, out, console=console)
    assert "go on with --resume" in console.export_text()
    assert checkpoints_in(out)[0].name == "checkpoint-7"
    run(small(), prepared, out, console=quiet(), resume=True)
    assert equal(whole, out)
    steps = [
        [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for folder in (whole, out)
    ]
    assert steps[0] == steps[1]  # no line twice, none missing


def test_damaged_newest_checkpoint_is_reported_and_the_one_before_used(prepared: Prepared, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "run"
    run(small(validate_every=0.25), prepared, whole, console=quiet())
    with pytest.MonkeyPatch.context() as patch:
        interrupted_at(9, KeyboardInterrupt(), patch)
        with pytest.raises(KeyboardInterrupt):
            run(small(validate_every=0.25), prepared, out, console=quiet())
    newest = checkpoints_in(out)[0]
    with open(newest / "optimizer.pt", "r+b") as file:
        file.truncate(100)
    console = quiet()
    run(small(validate_every=0.25), prepared, out, console=console, resume=True)
    text = console.export_text()
    assert f"{newest.name}: optimizer.pt is damaged" in text.replace("\n", "")
    assert "resuming from" in text
    assert equal(whole, out)


def test_full_disk_is_said_and_earlier_checkpoints_stay(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = ConverterTrainer._save_optimizer_and_scheduler

    def full(self: ConverterTrainer, folder: str) -> None:
        save(self, folder)
        if self.state.global_step > 13:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ConverterTrainer, "_save_optimizer_and_scheduler", full)
    out = tmp_path / "run"
    with pytest.raises(TrainingError, match=r"the disk is full.*--resume"):
        run(small(), prepared, out, console=quiet())
    assert newest_sound(out)[0] is not None
    assert not list(out.glob(".*writing"))
    monkeypatch.undo()
    run(small(), prepared, out, console=quiet(), resume=True)
    run(small(), prepared, tmp_path / "whole", console=quiet())
    assert equal(out, tmp_path / "whole")


def test_resuming_never_runs_code(prepared: Prepared, tmp_path: Path) -> None:
    out, trap = tmp_path / "run", tmp_path / "trap"
    with pytest.MonkeyPatch.context() as patch:
        interrupted_at(5, KeyboardInterrupt(), patch)
        with pytest.raises(KeyboardInterrupt):
            run(small(), prepared, out, console=quiet())
    newest = checkpoints_in(out)[0]
    (newest / "manifest.json").unlink()
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
        (newest / name).write_bytes(pickle.dumps(Malice(trap)))
    _seal(newest)  # so that the checksums are right
    with pytest.raises(Exception, match=r"weights_only|[Uu]npickl|Unsupported"):
        run(small(), prepared, out, console=quiet(), resume=True)
    assert not trap.exists()


def test_model_folder_with_a_pickle_is_refused(prepared: Prepared, tmp_path: Path) -> None:
    folder, trap = tmp_path / "model", tmp_path / "trap"
    model = build_model(small(), prepared)
    model.save_pretrained(folder)
    prepared.processor.save_pretrained(folder)
    load_model(folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Malice(trap)))
    with pytest.raises(OSError, match="safetensors"):
        load_model(folder)
    assert not trap.exists()


def test_training_starts_from_the_weights_of_another_model(tmp_path: Path, cache: Path) -> None:
    recipe = small(max_steps=3)
    data = prepare("listops-quick", options=recipe.data, cache=cache)
    run(recipe, data, tmp_path / "first", console=Console(quiet=True))
    again = replace(recipe, training=replace(recipe.training, start_from=str(tmp_path / "first")))
    trained = load_file(tmp_path / "first" / "model.safetensors")
    assert all(torch.equal(value, trained[name]) for name, value in initial(again, data).items())
    fewer = replace(data, classes=[f"class {number}" for number in range(10)])
    for name, value in initial(again, fewer).items():
        assert torch.equal(value, trained[name]) != name.startswith("classifier.") or not value.any()
    wider = replace(again, model=replace(again.model, hidden_size=16))
    with pytest.raises(ValueError, match="give both models the same --model options"):
        initial(wider, data)
    with pytest.raises(ValueError, match="holds no model"):
        initial(replace(again, training=replace(again.training, start_from=str(tmp_path))), data)


def test_a_start_from_other_tokens_is_refused(tmp_path: Path, cache: Path) -> None:
    recipe = small(max_steps=1)
    data = prepare("listops-quick", options=recipe.data, cache=cache)
    run(recipe, data, tmp_path / "first", console=Console(quiet=True))
    (tmp_path / "mine.csv").write_text("text,label\n" + "".join(f"abc {k},{k % 2}\n" for k in range(40)))
    mine = prepare(str(tmp_path / "mine.csv"), None, DataOptions(), cache=cache)
    again = replace(recipe, training=replace(recipe.training, start_from=str(tmp_path / "first")))
    with pytest.raises(ValueError, match="other tokens"):
        initial(again, mine)


def initial(recipe: Recipe, data: Prepared) -> dict[str, torch.Tensor]:
    return initial_model(recipe, data, Console(quiet=True)).state_dict()
