"""What is installed here and what it runs on."""

from __future__ import annotations

import platform
from importlib.metadata import version

import torch

from synvolution.ops import _backends


def describe() -> dict[str, str]:
    """Versions, backend, threads and devices, as shown by ``synvolution info``.

    Example:
        >>> sorted(describe())
        ['backend', 'devices', 'python', 'synvolution', 'threads', 'torch']
    """
    return {
        "synvolution": version("synvolution"),
        "backend": _backends.automatic(torch.device("cpu")),
        "threads": str(torch.get_num_threads()),
        "torch": str(torch.__version__),
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "devices": ", ".join(_devices()),
    }


def _devices() -> list[str]:
    """The processors that torch can use here."""
    found = ["cpu"]
    if torch.cuda.is_available():
        found += [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found
