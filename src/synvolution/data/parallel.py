"""Work in several processes with results in order."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from typing import Any, TypeVar

Result = TypeVar("Result")


def ordered_map(work: Callable[..., Result], arguments: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Result]:
    """``work(*arguments)`` for each tuple, in order, computed ahead by so many processes (1: in this one).

    The arguments may be endless: only a few are taken ahead. Processes are started afresh (spawn), since a fork of a
    process with threads can hang; a script that asks for more than one therefore needs its
    ``if __name__ == "__main__":``.

    Example:
        >>> list(ordered_map(divmod, [(7, 2), (9, 4)], workers=1))
        [(3, 1), (2, 1)]
    """
    if workers == 1:
        for one in arguments:
            yield work(*one)
        return
    remaining = iter(arguments)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=end_with_parent) as pool:
        waiting: deque[Future[Result]] = deque(pool.submit(work, *one) for one in islice(remaining, 2 * workers))
        try:
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(pool.submit(work, *one) for one in islice(remaining, 1))
                yield result
        finally:
            for future in waiting:
                future.cancel()


def end_with_parent() -> None:
    """In a new process: end when the one that started it has ended, even by SIGKILL, rather than wait for ever."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
