"""Hugging Face's Trainer with an order of rows that survives restarts, whole checkpoints, and no patience with NaN."""

from __future__ import annotations

import errno
import time
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import Trainer
from transformers.trainer_callback import ExportableState
from transformers.trainer_utils import SaveStrategy

from synvolution.training.checkpoints import keep_newest, whole_checkpoint
from synvolution.training.rows import Rows
from synvolution.training.sampler import LengthGroupedSampler, LengthSortedSampler

#: Checkpoints that stay besides the best one: the newest, and one more should it be damaged.
KEPT = 2


class TrainingError(ValueError):
    """A run that cannot go on, with the reason and what to do."""


class ConverterTrainer(Trainer):
    """Trainer for prepared data; see the module's line. Batches carry ``row_id``, which the model does not see."""

    def __init__(self, *args: Any, in_order: bool = False, **kwargs: Any) -> None:
        self._in_order = in_order
        super().__init__(*args, **kwargs)
        self._seen, self._since = torch.zeros(3, dtype=torch.long), time.perf_counter()  # rows, right answers, tokens
        self._names: list[str] = []

    # The order of rows

    def _get_train_sampler(self, train_dataset: Any = None) -> LengthGroupedSampler:
        rows = cast(Rows, self.train_dataset if train_dataset is None else train_dataset)
        whole = self.args.train_batch_size * self.args.world_size * self.args.gradient_accumulation_steps
        return LengthGroupedSampler(rows.lengths, whole, self.args.seed, self._in_order)

    def _get_eval_sampler(self, eval_dataset: Any) -> LengthSortedSampler:
        return LengthSortedSampler(eval_dataset.lengths)

    # Losses

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The model's loss; it must be finite. In training, counts rows, right answers and tokens as well."""
        names = inputs.pop("row_id", [])
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        if model.training:
            self._names = names
            self._count(inputs, outputs)
            self._must_be_finite(loss, "loss")
        return (loss, outputs) if return_outputs else loss

    def _count(self, inputs: dict[str, Any], outputs: Any) -> None:
        right = int((outputs["logits"].argmax(-1) == inputs["labels"]).sum())
        tokens = sum(int(value.sum()) for name, value in inputs.items() if name.startswith("attention"))
        self._seen += torch.tensor([len(inputs["labels"]), right, tokens])

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add accuracy and tokens per second since the last line."""
        if "loss" in logs:
            rows, right, tokens = self.accelerator.reduce(self._seen.to(self.args.device)).tolist()
            now = time.perf_counter()
            if rows:
                logs |= {"accuracy": right / rows, "tokens_per_second": tokens / (now - self._since)}
            self._seen.zero_()
            self._since = now
        super().log(logs, start_time)

    def _must_be_finite(self, value: Any, what: str) -> None:
        value = torch.as_tensor(value).detach()
        if bool(torch.isfinite(value).all()):
            return
        names = ", ".join(self._names[:8]) + (", …" if len(self._names) > 8 else "")
        raise TrainingError(
            f"the {what} is {float(value)} at step {self.state.global_step + 1}, batch of rows {names}. "
            "Lower training.learning_rate, raise training.warmup, set training.clip to 1, or train in float32: with "
            "other options it is another run and wants another --out"
        )

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        norm = super()._clip_grad_norm(model)
        if norm is not None and self.accelerator.scaler is None:  # a scaler looks for infinities itself
            self._must_be_finite(norm, "norm of the gradient")
        return norm

    # Checkpoints

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        best = super()._determine_best_metric(metrics=metrics, trial=trial) or self._equal_with_less_loss(metrics)
        if best:
            self.state.best_global_step = self.state.global_step
            self.control.should_save = self.args.save_strategy != SaveStrategy.NO
        return best

    def _equal_with_less_loss(self, metrics: dict[str, float]) -> bool:
        """Whether the accuracy equals the best one and the loss is lower: the better of two equal models."""
        if metrics.get(f"eval_{self.args.metric_for_best_model}") != self.state.best_metric:
            return False
        step, history = self.state.best_global_step, self.state.log_history
        losses = [entry["eval_loss"] for entry in history if entry["step"] == step and "eval_loss" in entry]
        return bool(losses) and metrics["eval_loss"] < min(losses)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        folder = Path(str(self.args.output_dir))
        name = f"checkpoint-{self.state.global_step}"
        self._remember_callbacks()
        try:
            with whole_checkpoint(folder / name, owner=self.args.should_save) as writing:
                self.accelerator.wait_for_everyone()
                self.save_model(str(writing), _internal_call=True)
                self._save_optimizer_and_scheduler(str(writing))
                self._save_scaler(str(writing))
                self._save_rng_state(str(writing))
                if self.args.should_save:
                    self._point_to_best(folder)
                    self.state.save_to_json(str(writing / "trainer_state.json"))
                self.accelerator.wait_for_everyone()
        except OSError as error:
            raise TrainingError(_disk_message(folder / name, error)) from error
        if self.args.should_save:
            best = self.state.best_model_checkpoint
            keep_newest(folder, KEPT, None if best is None else Path(best))
        self.accelerator.wait_for_everyone()

    def save_now(self) -> None:
        """Write a checkpoint of this moment."""
        assert self.model is not None
        self._save_checkpoint(self.model, None)

    def _remember_callbacks(self) -> None:
        states = cast(dict[str, Any], self.state.stateful_callbacks)
        for callback in (*self.callback_handler.callbacks, self.control):
            if isinstance(callback, ExportableState):
                states[type(callback).__name__] = callback.state()

    def _point_to_best(self, folder: Path) -> None:
        """The best model's folder by its step: it holds even if the output folder was moved."""
        step = self.state.best_global_step
        self.state.best_model_checkpoint = None if not step else str(folder / f"checkpoint-{step}")

    def load_best(self) -> int | None:
        """Load the weights that were best on validation; their step, or None if nothing was validated."""
        self._point_to_best(Path(str(self.args.output_dir)))
        if self.state.best_model_checkpoint is None:
            return None
        weights = load_file(str(Path(self.state.best_model_checkpoint) / "model.safetensors"))
        model = self.accelerator.unwrap_model(self.model, keep_torch_compile=False)
        model.load_state_dict(weights)
        return int(self.state.best_global_step or 0)


def _disk_message(checkpoint: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        what = "the disk is full"
    elif error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        what = "the folder cannot be written"
    else:
        what = str(error)
    return (
        f"{checkpoint}: {what}. Earlier checkpoints are untouched: make room or mend the folder, then run the same "
        "command with --resume"
    )
