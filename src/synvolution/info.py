"""What is installed here and what it runs on."""

from __future__ import annotations

import platform
from importlib.metadata import version

import torch

from synvolution.ops import _backends, _cpu, _triton


def describe() -> dict[str, str]:
    """Version, backend, instruction set, threads, torch and devices, as shown by ``synvolution info``.

    Example:
        >>> list(describe())
        ['synvolution', 'backend', 'cuda backend', 'instructions', 'threads', 'torch', 'python', 'processor', 'devices']
    """
    backend = _backends.automatic(torch.device("cpu"))
    built = _cpu.kernels is not None
    return {
        "synvolution": version("synvolution"),
        "backend": f"{backend} (compiled kernels)" if built else f"{backend} (no compiled kernels: slower)",
        "cuda backend": _cuda_backend(),
        "instructions": f"{_cpu.kernels.isa()} of {', '.join(_cpu.kernels.supported_isas())}" if built else "torch's",
        "threads": f"{torch.get_num_threads()}{'' if not built or _cpu.kernels.has_openmp() else ' (kernels: 1)'}",
        "torch": str(torch.__version__),
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "processor": processor(),
        "devices": ", ".join(_devices()),
    }


def _cuda_backend() -> str:
    """What computes the operator on a CUDA or ROCm device, if there is one."""
    name = _backends.automatic(torch.device("cuda"))
    found, oldest = _triton.triton_version(), ".".join(map(str, _triton.OLDEST))
    how = f"Triton {found}" if name == "triton" else f"no Triton {oldest} or newer: slower"
    return f"{name} ({how})" + ("" if torch.cuda.is_available() else ", no such device here")


def processor() -> str:
    """Name of the CPU, as far as the system tells."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _devices() -> list[str]:
    """The processors that torch can use here."""
    found = ["cpu"]
    if torch.cuda.is_available():
        found += [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found
