"""New processes that start in no time."""

from __future__ import annotations

import multiprocessing
from typing import Any


def prepared_context(module: str) -> Any:
    """Processes forked from a server that has imported a module, or begun anew where there is no fork.

    Example:
        >>> prepared_context("json").get_start_method() in ("forkserver", "spawn")
        True
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([module])
    return context
