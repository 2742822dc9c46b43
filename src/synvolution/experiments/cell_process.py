"""A run of the grid in a process of its own: what breaks it does not break the others."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from synvolution.data.base import cache_folder
from synvolution.data.parallel import end_with_parent
from synvolution.experiments.cell import NotHere, outcome_head, run_cell
from synvolution.experiments.grid import Cell
from synvolution.experiments.outcomes import Outcome, outcome_path, read_outcome, write_outcome
from synvolution.experiments.processes import prepared_context
from synvolution.training.callbacks import console


def run_apart(cell: Cell, folder: Path, data: Path | None, minutes: float, share: int = 1) -> Outcome | str:
    """Run a cell in a new process; its outcome, or why it was not run.

    Args:
        cell: which run.
        folder: of the results.
        data: folder with the files of the tasks.
        minutes: processor minutes for training, with the budget "cpu".
        share: how many runs share the machine's threads.
    """
    context = prepared_context(__name__)
    ours, theirs = context.Pipe(duplex=False)
    threads = max(1, torch.get_num_threads() // share)
    cache = str(cache_folder(None))
    process = context.Process(target=_child, args=(cell, folder, data, minutes, threads, cache, theirs))
    process.start()
    theirs.close()
    try:
        said = ours.recv()
    except EOFError:
        said = None
    process.join()
    if isinstance(said, str):
        return said
    path = outcome_path(folder, cell.table, cell.task, cell.row, cell.seed)
    if said is None:
        if process.exitcode == 130:
            raise KeyboardInterrupt
        outcome = Outcome(**outcome_head(cell, minutes), error=_death(process.exitcode or 0))
        write_outcome(folder, outcome)
        return outcome
    return read_outcome(path)


def _child(
    cell: Cell, folder: Path, data: Path | None, minutes: float, threads: int, cache: str, pipe: Connection
) -> None:
    end_with_parent()  # else the same command, given again, would train beside it
    torch.set_num_threads(threads)
    os.environ["SYNVOLUTION_CACHE"] = cache
    try:
        run_cell(cell, folder, data, minutes, console())
        pipe.send(True)
    except NotHere as error:
        pipe.send(str(error))
    except KeyboardInterrupt:
        os._exit(130)


def _death(code: int) -> str:
    """Why a process ended without a word.

    Example:
        >>> _death(-9)
        'ended by SIGKILL: it may have taken more memory than there is'
    """
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"ended by {name}" + (": it may have taken more memory than there is" if code == -signal.SIGKILL else "")
