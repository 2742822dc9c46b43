"""One run: data, model and training from a recipe, to a folder that holds everything about it."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from transformers import TrainerCallback, TrainingArguments, set_seed
from transformers.utils import logging as transformers_logging

from synvolution.data.base import Prepared
from synvolution.data.collate import Collator
from synvolution.data.pixels import PixelProcessor
from synvolution.models import ConverterConfig, ConverterForPairClassification, ConverterForSequenceClassification
from synvolution.recipes import Recipe
from synvolution.training.callbacks import (
    ClockCallback,
    MetricsCallback,
    PatienceCallback,
    ProgressCallback,
)
from synvolution.training.card import commit, write_results
from synvolution.training.checkpoints import newest_sound, write_whole
from synvolution.training.curves import draw_curves
from synvolution.training.memory import keep_memory
from synvolution.training.metrics import Scores, score
from synvolution.training.rows import Rows
from synvolution.training.start import start_from
from synvolution.training.trainer import ConverterTrainer, TrainingError

RECIPE = "recipe.json"

Classifier = ConverterForSequenceClassification | ConverterForPairClassification


def run(
    recipe: Recipe,
    prepared: Prepared,
    out: Path,
    *,
    console: Console,
    origin: str | None = None,
    resume: bool = False,
) -> dict[str, Any]:
    """Train, select on validation, test once; returns what ``results.json`` holds.

    Args:
        recipe: model and training; its data options are those ``prepared`` was made with.
        prepared: the data.
        out: folder of the run.
        console: where progress is shown.
        origin: where the data came from, as given.
        resume: go on from the newest whole checkpoint in the folder.
    """
    started, code = time.time(), commit()
    _check_classes(prepared)
    keep_memory()
    set_seed(recipe.training.seed)
    model = initial_model(recipe, prepared, console)  # before the folder is made: what fails here leaves nothing behind
    checkpoint = claim(out, recipe, prepared, resume, console)
    trainer = build_trainer(recipe, prepared, model, out, console)
    main = trainer.is_world_process_zero()
    if main:
        count = sum(parameter.numel() for parameter in model.parameters())
        console.print(
            f"{len(prepared.splits['train']):,} rows, {len(prepared.classes)} classes, {count:,} parameters → {out}",
            highlight=False,
        )
    _train(trainer, checkpoint, out, console)
    best = trainer.load_best()
    model.eval()
    scores = {name: _scores(trainer, prepared, name) for name in ("validation", "test") if len(prepared.splits[name])}
    results: dict[str, Any] = {}
    if main:
        _save(model, prepared, out)
        results = write_results(out, recipe, prepared, trainer, scores, best, time.time() - started, origin, code)
        draw_curves(trainer.state.log_history, out / "curves.png")
    trainer.accelerator.wait_for_everyone()
    if trainer.args.world_size > 1:
        trainer.accelerator.end_training()  # a process that exits with its connections open may be aborted by them
    return results


def validate(recipe: Recipe, prepared: Prepared, scratch: Path, callback: TrainerCallback) -> float | None:
    """Train without testing, checkpoints or card: the validation accuracy of the model that a run would select.

    Args:
        recipe: model and training.
        prepared: the data; its test rows are not touched.
        scratch: folder for the log.
        callback: sees every validation and may stop the training.

    Returns:
        The accuracy, or None if training was stopped before the first validation.
    """
    _check_classes(prepared)
    keep_memory()
    set_seed(recipe.training.seed)
    model = initial_model(recipe, prepared, Console(quiet=True))
    trainer = build_trainer(recipe, prepared, model, scratch, Console(quiet=True), keep=False)
    trainer.add_callback(callback)
    trainer.train()
    step, history = trainer.state.best_global_step, trainer.state.log_history
    found = [entry["eval_accuracy"] for entry in history if entry["step"] == step and "eval_accuracy" in entry]
    return found[-1] if found else None


def claim(out: Path, recipe: Recipe, prepared: Prepared, resume: bool, console: Console) -> Path | None:
    """Make the folder ours, or refuse; with ``resume`` the checkpoint to go on from."""
    if int(os.environ.get("RANK", "0")):  # the first process decides; torchrun ends the others if it refuses
        return newest_sound(out)[0] if resume else None
    settled = out / RECIPE
    state = {"recipe": json.loads(recipe.to_json()), "fingerprint": prepared.fingerprint}
    if settled.exists():
        held = json.loads(settled.read_text(encoding="utf-8"))
        if not resume:
            raise ValueError(f"{out} already holds a run: give --resume to go on with it, or another --out")
        if held != state:
            raise ValueError(f"{out} holds another run, --resume would mix them: {difference(held, state)}")
    elif out.exists() and any(out.iterdir()):
        raise ValueError(f"{out} exists and holds other files: give another --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not settled.exists():
            write_whole(settled, json.dumps(state, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise ValueError(f"{out} cannot be written ({error.strerror}): give another --out") from error
    if not resume:
        return None
    checkpoint, complaints = newest_sound(out)
    for line in complaints:
        console.print(f"left aside: {line}", style="yellow", highlight=False)
    console.print(f"resuming from {checkpoint}" if checkpoint else "no checkpoint yet: starting anew", highlight=False)
    return checkpoint


def initial_model(recipe: Recipe, prepared: Prepared, console: Console) -> Classifier:
    """The model of a recipe as its training starts: new, or with the weights of another one."""
    model = build_model(recipe, prepared)
    if recipe.training.start_from is None:
        return model
    folder = Path(recipe.training.start_from)
    head = start_from(model, prepared, folder)
    console.print(
        f"starting from {folder}" + ("" if head else ", with a new head: its classes are others"), style="dim"
    )
    return model


def build_model(recipe: Recipe, prepared: Prepared) -> Classifier:
    """The model of a recipe for prepared data, with initial weights from torch's random numbers."""
    processor = prepared.processor
    if isinstance(processor, PixelProcessor):  # no pixel is padding
        inputs: dict[str, Any] = {"vocab_size": processor.vocab_size, "pad_token_id": None}
        inputs |= {"input_features": 1} if processor.mode == "value" else {}
    else:
        inputs = {"vocab_size": len(processor), "pad_token_id": processor.pad_token_id}
    config = ConverterConfig(
        **asdict(recipe.model),
        **inputs,
        max_position_embeddings=prepared.max_length,
        id2label=dict(enumerate(prepared.classes)),
        label2id={name: number for number, name in enumerate(prepared.classes)},
    )
    return (ConverterForPairClassification if prepared.pair else ConverterForSequenceClassification)(config)


def build_trainer(
    recipe: Recipe, prepared: Prepared, model: Classifier, out: Path, console: Console, keep: bool = True
) -> ConverterTrainer:
    """The trainer of a run, with its callbacks; without ``keep`` it writes no checkpoints."""
    transformers_logging.disable_progress_bar()
    train, validation = Rows(prepared.splits["train"]), Rows(prepared.splits["validation"])
    options = recipe.training
    trainer = ConverterTrainer(
        in_order=options.order == "given",
        model=model,
        args=_arguments(recipe, out, len(train), keep),
        train_dataset=train,
        eval_dataset=validation,
        data_collator=Collator(pad_token_id=model.config.pad_token_id or 0, keep_row_id=True),
        compute_metrics=_accuracy,
        preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
    )
    for callback in list(trainer.callback_handler.callbacks):
        if type(callback).__name__ in ("PrinterCallback", "ProgressCallback", "NotebookProgressCallback"):
            trainer.remove_callback(callback)
    trainer.add_callback(MetricsCallback(out))
    trainer.add_callback(ProgressCallback(console))
    if options.patience:
        trainer.add_callback(PatienceCallback(options.patience))
    if keep and trainer.args.world_size == 1 and options.checkpoint_minutes:
        trainer.add_callback(ClockCallback(options.checkpoint_minutes))
    return trainer


def _arguments(recipe: Recipe, out: Path, rows: int, keep: bool) -> TrainingArguments:
    options = recipe.training
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    per_epoch = max(1, rows // options.batch_size)
    total = options.max_steps or max(1, round(options.epochs * per_epoch))
    every = max(1, min(total, round(options.validate_every * per_epoch)))
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(out / "tensorboard")
    return TrainingArguments(
        output_dir=str(out),
        max_steps=total,
        per_device_train_batch_size=options.batch_per_process(processes),
        per_device_eval_batch_size=max(1, (options.evaluation_batch_size or options.batch_size) // processes),
        gradient_accumulation_steps=options.accumulate,
        learning_rate=options.learning_rate,
        weight_decay=options.weight_decay,
        lr_scheduler_type=options.schedule,
        warmup_steps=round(options.warmup * total),
        max_grad_norm=options.clip,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps" if keep else "no",
        save_steps=every,
        metric_for_best_model=options.select,
        greater_is_better=options.select == "accuracy",
        restore_callback_states_from_checkpoint=True,
        logging_steps=options.log_every,
        logging_nan_inf_filter=False,
        seed=options.seed,
        bf16=options.precision == "bf16",
        fp16=options.precision == "fp16",
        activation_checkpointing=options.gradient_checkpointing,
        torch_compile=options.compile,
        remove_unused_columns=False,
        label_names=["labels"],
        dataloader_pin_memory=torch.cuda.is_available(),
        report_to=["tensorboard"] if keep else [],
        ddp_backend=None if torch.cuda.is_available() or processes == 1 else "gloo",
        use_cpu=not (torch.cuda.is_available() or torch.backends.mps.is_available()),
        ddp_find_unused_parameters=False,
        disable_tqdm=True,
    )


def _train(trainer: ConverterTrainer, checkpoint: Path | None, out: Path, console: Console) -> None:
    """Train to the end; an interruption leaves a checkpoint and says how to go on."""
    bars = [callback for callback in trainer.callback_handler.callbacks if isinstance(callback, ProgressCallback)]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*lr_scheduler.step.*")  # the first step of a resumed schedule
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    except KeyboardInterrupt:
        for bar in bars:
            bar.stop()
        if trainer.state.global_step:
            with contextlib.suppress(TrainingError):
                trainer.save_now()
        console.print(f"interrupted at step {trainer.state.global_step}: go on with --resume --out {out}")
        raise
    finally:
        for bar in bars:
            bar.stop()


def _scores(trainer: ConverterTrainer, prepared: Prepared, split: str) -> Scores:
    found = trainer.predict(Rows(prepared.splits[split]), metric_key_prefix=split)
    return score(np.asarray(found.predictions), np.asarray(found.label_ids), prepared.classes)


def _accuracy(prediction: Any) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions == prediction.label_ids).mean())}


def _save(model: Classifier, prepared: Prepared, out: Path) -> None:
    model.save_pretrained(out)
    prepared.processor.save_pretrained(out)


def _check_classes(prepared: Prepared) -> None:
    """Every class that is tested must have been trained."""
    counts = {
        name: np.bincount(np.asarray(split["label"], dtype=np.int64), minlength=len(prepared.classes))
        for name, split in prepared.splits.items()
    }
    for name in ("train", "validation"):
        if not counts[name].sum():
            raise ValueError(f"{prepared.name}: no rows for {name}: give more data, or another share of validation")
    for split in ("validation", "test"):
        missing = [prepared.classes[k] for k in np.flatnonzero((counts["train"] == 0) & (counts[split] > 0))]
        if missing:
            raise ValueError(
                f"{prepared.name}: class {missing[0]!r} occurs in {split} but not in train: no model can learn it; "
                "give it training rows or take it out"
            )


def difference(held: dict[str, Any], wanted: dict[str, Any]) -> str:
    """The first lines in which two settings differ.

    Example:
        >>> difference({"seed": 0, "epochs": 5}, {"seed": 1, "epochs": 5})
        '-"seed": 0; +"seed": 1'
    """
    old, new = (json.dumps(settings, indent=0, sort_keys=True).splitlines() for settings in (held, wanted))
    changed = [line for line in difflib.unified_diff(old, new, n=0, lineterm="") if line[:3] not in ("---", "+++")]
    lines = [line.rstrip(",") for line in changed if not line.startswith("@@")]
    return "; ".join(lines[:4]) + (" …" if len(lines) > 4 else "")
