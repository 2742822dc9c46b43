"""Peak memory of synvolve, forward and backward, in a process of its own: ``python -m … B N D`` prints JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import torch

from synvolution.experiments.operands import synvolve_operands
from synvolution.ops.synvolve import synvolve


def _status(name: str) -> int | None:
    """A line of Linux's account of this process, in bytes; None on other systems."""
    path = Path("/proc/self/status")
    if not path.exists():
        return None
    return next(int(line.split()[1]) * 1024 for line in path.read_text().splitlines() if line.startswith(name + ":"))


def peak_bytes() -> int:
    """The most that this process has held."""
    # getrusage's number includes what the parent held when it started this process; Linux's own account does not
    most = _status("VmHWM")
    if most is not None:
        return most
    import resource  # not on Windows, where nothing here is called

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def resident_bytes() -> int:
    """What the process holds now; where the system does not tell, the most it has held."""
    return _status("VmRSS") or peak_bytes()


def measure(batch: int, n: int, d: int) -> dict[str, float]:
    """Bytes beyond inputs, parameters and incoming gradient, at the worst moment of forward and backward.

    Returns:
        ``tensors``: in units of the input's size; ``bytes_per_token``.
    """
    warm = synvolve_operands(1, 8, 4)
    torch.autograd.grad(synvolve(*warm).sum(), warm)
    inputs = synvolve_operands(batch, n, d)
    grad = torch.ones_like(inputs[0])
    before = resident_bytes()
    out = synvolve(*inputs)
    torch.autograd.grad(out, inputs, grad)
    extra = peak_bytes() - before
    return {"tensors": extra / inputs[0].nbytes, "bytes_per_token": extra / (batch * n)}


def measure_in_child(batch: int, n: int, d: int) -> dict[str, float]:
    """:func:`measure` in a fresh process, so that nothing else is in the peak."""
    command = [sys.executable, "-m", "synvolution.experiments.peak_memory", str(batch), str(n), str(d)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"measuring the memory of {(batch, n, d)} failed: {done.stderr.strip()[-500:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(measure(*(int(word) for word in sys.argv[1:4]))))
