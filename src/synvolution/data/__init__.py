"""The benchmark tasks and people's own data, prepared on disk."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synvolution.data.base import (
        TASKS,
        Collator,
        DataOptions,
        Prepared,
        Task,
        cache_folder,
        prepare,
        stream_records,
    )
    from synvolution.data.pixels import PixelProcessor

__all__ = [
    "TASKS",
    "Collator",
    "DataOptions",
    "PixelProcessor",
    "Prepared",
    "Task",
    "cache_folder",
    "prepare",
    "stream_records",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for: the processes that generate samples need none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(
        import_module("synvolution.data.pixels" if name == "PixelProcessor" else "synvolution.data.base"), name
    )
