"""One trial of a sweep, in a process of its own: its memory is limited, and what breaks it does not break the sweep.

The process is forked from a server that has imported everything (where the system can), so that it starts in no time.
It sends every validation through a pipe and waits for the word to go on or to stop.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from synvolution.data.parallel import end_with_parent
from synvolution.experiments.mixer_step import limit_memory
from synvolution.experiments.peak_memory import peak_bytes
from synvolution.experiments.processes import prepared_context
from synvolution.recipes import Recipe
from synvolution.training.callbacks import console
from synvolution.training.commands import prepare_for
from synvolution.training.run import validate
from synvolution.training.trainer import TrainingError

OUT_OF_MEMORY = "out of memory"
PRUNED = "pruned"
#: How the lack of memory shows itself in messages of torch, Python, C++ and the system.
_SIGNS = (
    "can't allocate memory",
    "MemoryError",
    "bad_alloc",
    "not enough memory",
    "Cannot allocate memory",
    OUT_OF_MEMORY,
)


@dataclass(frozen=True)
class Order:
    """What a trial does.

    Args:
        recipe: as JSON.
        origin: where the data is, as given.
        cache: folder of prepared data.
        memory: GiB it may take beyond the program itself, on the processor or on the device it trains on.
        share: how many trials share the machine.
    """

    recipe: str
    origin: str | None
    cache: str
    memory: float
    share: int = 1


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: a value, or the reason why there is none.

    Args:
        value: validation accuracy of the model that a run would select.
        reason: "pruned", "out of memory", or what went wrong.
        hopeless: whether these settings cannot work (memory, a loss that is not finite), rather than the program.
        peak_bytes: the most that the process held.
    """

    value: float | None = None
    reason: str | None = None
    hopeless: bool = False
    peak_bytes: int | None = None


#: Told of a validation (its number from 1, the accuracy): whether to stop.
Judge = Callable[[int, float], bool]


def run_trial(order: Order, judge: Judge) -> Outcome:
    """Run one trial in its own process and tell ``judge`` of each validation."""
    context = prepared_context(__name__)
    ours, theirs = context.Pipe()
    with tempfile.TemporaryDirectory(prefix="synvolution-trial-", ignore_cleanup_errors=True) as scratch:
        process = context.Process(target=_child, args=(order, theirs, scratch), daemon=True)
        process.start()
        theirs.close()
        try:
            outcome = _listen(ours, judge)
        finally:
            _end(process)
        if outcome is not None:
            return outcome
        log = Path(scratch) / "log.txt"
        return _died(process.exitcode or 0, log.read_text(errors="replace") if log.exists() else "")


def _listen(ours: Connection, judge: Judge) -> Outcome | None:
    """Answer validations until the outcome comes; None if the process died without a word."""
    while True:
        try:
            message = ours.recv()
        except (EOFError, ConnectionError):
            return None
        if isinstance(message, Outcome):
            return message
        ours.send(judge(*message))


def _end(process: BaseProcess) -> None:
    process.join(5)
    if process.is_alive():
        process.kill()
        process.join()


def _died(code: int, log: str) -> Outcome:
    """What ended a process that could not tell: lack of memory (an abort, the system's killer), or its last line.

    Example:
        >>> _died(-9, "").reason, _died(-11, "Segmentation fault").reason
        ('out of memory', 'exit code -11: Segmentation fault')
    """
    if code == -9 or any(sign in log for sign in _SIGNS):
        return Outcome(reason=OUT_OF_MEMORY, hopeless=True)
    last = (log.strip().splitlines() or [""])[-1]
    return Outcome(reason=f"exit code {code}" + (f": {last}" if last else ""))


# In the process of the trial


class _Reporter(TrainerCallback):
    """Send each validation's accuracy and stop if the answer says so."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe, self.count, self.stopped = pipe, 0, False

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """Ask whether to go on."""
        self.count += 1
        self.pipe.send((self.count, (metrics or {})["eval_accuracy"]))
        stop = self.pipe.recv()
        if stop and state.global_step < state.max_steps:  # after the last step there is nothing to spare
            self.stopped = control.should_training_stop = True


def _child(order: Order, pipe: Connection, scratch: str) -> None:
    """Everything the trial's process does."""
    log = os.open(os.path.join(scratch, "log.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    end_with_parent()
    try:
        outcome = _trained(order, pipe, Path(scratch))
    except Exception as error:
        outcome = _failure(error)
    pipe.send(outcome)


def _trained(order: Order, pipe: Connection, scratch: Path) -> Outcome:
    os.environ["SYNVOLUTION_CACHE"] = order.cache
    torch.set_num_threads(max(1, torch.get_num_threads() // order.share))
    recipe = Recipe.from_json(order.recipe)
    prepared = prepare_for(recipe, order.origin, console())
    _limit(order.memory)
    reporter = _Reporter(pipe)
    value = validate(recipe, prepared, scratch, reporter)
    if reporter.stopped:
        return Outcome(reason=PRUNED, peak_bytes=_peak())
    if value is None:
        return Outcome(reason="no validation took place", peak_bytes=_peak())
    return Outcome(value=value, peak_bytes=_peak())


def _limit(gib: float) -> None:
    """Limit the memory of the device if there is one, else that of the process (on Linux)."""
    if torch.cuda.is_available():
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, gib * 2**30 / total))
    else:
        limit_memory(int(gib * 2**30))


def _peak() -> int | None:
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    return peak_bytes() if sys.platform != "win32" else None


def _failure(error: Exception) -> Outcome:
    """Why a trial failed.

    Example:
        >>> _failure(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")).reason
        'out of memory'
    """
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) or any(sign in text for sign in _SIGNS):
        return Outcome(reason=OUT_OF_MEMORY, hopeless=True)
    return Outcome(reason=text[:300] or type(error).__name__, hopeless=isinstance(error, TrainingError))
