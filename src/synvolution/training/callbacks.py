"""What happens beside training: progress, files of metrics, patience, checkpoints by the clock."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from synvolution.training.checkpoints import write_whole

METRICS = "metrics.jsonl"


class PatienceCallback(TrainerCallback):
    """End training after so many validations without a new best. What it knows is in the trainer's own history."""

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Count validations since the best one; this one's verdict is not in yet, so it counts with the next."""
        best = state.best_global_step
        since = [entry for entry in state.log_history if "eval_loss" in entry and best and entry["step"] > best]
        if best and len(since) > self.patience:
            control.should_training_stop = True


class ClockCallback(TrainerCallback):
    """Ask for a checkpoint when so many minutes have passed since the last one."""

    def __init__(self, minutes: float) -> None:
        self.seconds, self.last = 60 * minutes, time.monotonic()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start the clock."""
        self.last = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Look at it."""
        if time.monotonic() - self.last >= self.seconds:
            control.should_save = True

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Start it again."""
        self.last = time.monotonic()


class MetricsCallback(TrainerCallback):
    """Write every line of the log to ``metrics.jsonl``, and all of it to ``metrics.csv`` at the end.

    After a restart the file begins with the history of the checkpoint: lines of steps that are done again go.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """The history so far."""
        if state.is_world_process_zero:
            lines = [json.dumps(entry) for entry in state.log_history]
            write_whole(self.folder / METRICS, "".join(line + "\n" for line in lines))

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """The newest line."""
        if state.is_world_process_zero and state.log_history:
            with open(self.folder / METRICS, "a", encoding="utf-8") as file:
                file.write(json.dumps(state.log_history[-1]) + "\n")

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """All of it as a table."""
        if state.is_world_process_zero:
            write_whole(self.folder / "metrics.csv", as_csv(state.log_history))


def as_csv(history: list[dict[str, Any]]) -> str:
    """A log's entries as csv, one column per name.

    Example:
        >>> print(as_csv([{"step": 1, "loss": 2.0}, {"step": 2, "eval_loss": 1.5}]), end="")
        step,loss,eval_loss
        1,2.0,
        2,,1.5
    """
    names = list(dict.fromkeys(name for entry in history for name in entry))
    names = ["step", *(name for name in names if name != "step")] if "step" in names else names
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    return text.getvalue()


class ProgressCallback(TrainerCallback):
    """A bar with loss, accuracy, tokens per second and time left; plain lines where the output is not a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar: Progress | None = None
        self.since, self.best = time.monotonic(), ""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Draw the bar."""
        self.since = time.monotonic()
        if not state.is_world_process_zero or not self.console.is_terminal:
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.bar = Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=self.console)
        self.task = self.bar.add_task("training", total=state.max_steps, completed=state.global_step)
        self.bar.start()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Move the bar."""
        if self.bar is not None:
            self.bar.update(self.task, completed=state.global_step)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Say how it goes."""
        if not state.is_world_process_zero or logs is None:
            return
        if "eval_accuracy" in logs:
            self.best = f"  validation {logs['eval_accuracy']:.2%}"
            self._line(f"step {state.global_step}  epoch {state.epoch:.2f}  {self._validation(logs, state)}")
        elif "loss" in logs:
            text = f"loss {logs['loss']:.3f}"
            text += f"  accuracy {logs['accuracy']:.1%}" if "accuracy" in logs else ""
            text += f"  {logs['tokens_per_second']:,.0f} tokens/s" if "tokens_per_second" in logs else ""
            if self.bar is not None:
                self.bar.update(self.task, description=text + self.best)
            elif time.monotonic() - self.since > 30:  # not a line for every step of a log file
                self.since = time.monotonic()
                self._line(f"step {state.global_step}/{state.max_steps}  epoch {state.epoch:.2f}  {text}")

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Take the bar away."""
        self.stop()

    def stop(self) -> None:
        """Take the bar away, also after an error."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _validation(self, logs: dict[str, Any], state: TrainerState) -> str:
        best = max(entry["eval_accuracy"] for entry in state.log_history if "eval_accuracy" in entry)
        return f"validation accuracy {logs['eval_accuracy']:.2%} (best {best:.2%})  loss {logs['eval_loss']:.3f}"

    def _line(self, text: str) -> None:
        self.console.print(text, highlight=False)


def console() -> Console:
    """The terminal, or plain lines of 110 characters."""
    return Console(width=None if sys.stdout.isatty() else 110)
