"""The official batches of CIFAR-10, which are Python pickles, read without running code.

A pickle can call any function. These hold a dictionary of bytes, lists of numbers and one numpy array: the few names
they ask for are answered by stand-ins that keep what they are given and do nothing; every other name is an error.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The only names a batch may ask for. numpy moved its core; old files say numpy.core.
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


class _Kept:
    """Stands for anything of numpy: keeps its arguments and its state."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments, self.state = arguments, ()

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    """How newer Pythons write bytes in old pickles."""
    return text.encode("latin1")


class _Restricted(pickle.Unpickler):
    """Knows the few names above and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Our stand-in for an allowed name."""
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch needs")
        return _latin1 if name == "encode" else _Kept


def read_batch(content: bytes, place: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (n, 3072) and labels (n,) of one batch."""
    try:
        batch = _Restricted(io.BytesIO(content), encoding="bytes").load()
        batch = {key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()}
        _, shape, kind, by_columns, raw = batch["data"].state
        if kind.arguments[0] not in ("u1", b"u1") or by_columns:
            raise ValueError(f"an array of {kind.arguments[0]!r}: expected bytes (u1) by rows")
        images = np.frombuffer(raw, np.uint8).reshape(shape)
        labels = np.array(batch["labels"], np.int64)
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise ValueError(f"{place}: no batch of CIFAR-10, or damaged ({error})") from error
    if images.ndim != 2 or images.shape[1] != 3072:
        raise ValueError(f"{place}: images of shape {images.shape[1:]}: expected 3072 bytes for each")
    return images, labels
