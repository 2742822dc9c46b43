"""Training steps of one mixer's model at one length, measured here or in a process of its own under limits.

``python -m … ORDER`` (JSON) is that process: it prints JSON.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from synvolution.experiments.peak_memory import peak_bytes, resident_bytes

VOCABULARY, CLASSES = 64, 2  # two classes are transformers' default
OK, OUT_OF_MEMORY, OUT_OF_TIME = "ok", "out of memory", "out of time"
#: The row of the model without blocks: embedding, recurrent position embedding, pooling, head.
GRU = "gru"


@dataclass(frozen=True)
class Settings:
    """What is trained, and the limits of one measurement."""

    batch: int = 1
    dim: int = 128
    hidden: int = 512
    num_heads: int = 2
    num_layers: int = 1
    position: str = "rpe"
    """Position embedding of the model; "none" leaves the recurrent layer, the same for all, out of the time."""
    repeats: int = 7
    """Timed steps at most, after one that warms up and tells the memory; the median counts."""
    enough: float = 4.0
    """Seconds of timed steps after which none is begun; a first step that takes so long is the only one."""
    memory: float = 8.0
    """GiB that a step may take beyond what the process holds when it begins (on systems that can limit it)."""
    seconds: float = 90.0
    """For a whole measurement, start of the process included."""


@dataclass(frozen=True)
class Measurement:
    """A training step of one mixer at one length: numbers if the status is "ok"."""

    mixer: str
    length: int
    status: str
    ms: float | None = None
    peak_bytes: int | None = None
    """Beyond the model and its tokens, at the worst moment of a step."""


def measure(mixer: str, length: int, settings: Settings) -> Measurement:
    """Train some steps in this process, without limits.

    Example:
        >>> measure("fnet", 32, Settings(dim=8, hidden=16, repeats=1)).status
        'ok'
    """
    ms, peak = run(mixer, length, settings, limit=None)
    return Measurement(mixer, length, OK, statistics.median(ms), peak)


def measure_in_child(mixer: str, length: int, settings: Settings) -> Measurement:
    """:func:`measure` in a fresh process under the limits of ``settings``."""
    order = json.dumps({"mixer": mixer, "length": length, "settings": asdict(settings)})
    command = [sys.executable, "-m", "synvolution.experiments.mixer_step", order]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=settings.seconds)
    except subprocess.TimeoutExpired:
        return Measurement(mixer, length, OUT_OF_TIME)
    if done.returncode == 0:
        found = json.loads(done.stdout.splitlines()[-1])
        return Measurement(mixer, length, OK, statistics.median(found["ms"]), found["peak_bytes"])
    return Measurement(mixer, length, _why(done.returncode, done.stderr))


def _why(returncode: int, stderr: str) -> str:
    """What ended a child: memory (an error, an abort, or the system's killer), or the last line of its error."""
    signs = ("can't allocate memory", "MemoryError", "bad_alloc", "not enough memory", "Cannot allocate memory")
    if returncode == -9 or any(sign in stderr for sign in signs):
        return OUT_OF_MEMORY
    return f"failed: {(stderr.strip().splitlines() or [f'exit code {returncode}'])[-1]}"


def run(mixer: str, length: int, settings: Settings, limit: float | None) -> tuple[list[float], int]:
    """Milliseconds of each timed step, and bytes that a step takes at its worst moment beyond what was held before.

    Args:
        mixer: its name, or "gru" for the model without blocks.
        length: N.
        settings: what is trained.
        limit: GiB that the steps may take; None for no limit.
    """
    step = Step(mixer, length, settings)
    step(min(length, 16))  # threads, moments, code: all there
    if limit is not None:
        limit_memory(int(limit * 2**30))
    forget_peak()
    before = resident_bytes()
    first = step(length)
    peak, times = max(1, peak_bytes() - before), [first]
    if first < 1e3 * settings.enough:
        times = [step(length)]
        while len(times) < settings.repeats and sum(times) < 1e3 * settings.enough:
            times.append(step(length))
    return times, peak


class Step:
    """Loss, gradients and a step of AdamW of one mixer's model on random tokens.

    Example:
        >>> Step("fnet", 32, Settings(dim=8, hidden=16))(32) > 0
        True
    """

    def __init__(self, mixer: str, length: int, settings: Settings) -> None:
        from synvolution.models import ConverterConfig, ConverterForSequenceClassification

        torch.manual_seed(0)
        config = ConverterConfig(
            vocab_size=VOCABULARY,
            hidden_size=settings.dim,
            intermediate_size=settings.hidden,
            num_heads=settings.num_heads,
            num_layers=0 if mixer == GRU else settings.num_layers,
            position=settings.position,
            mixer="none" if mixer == GRU else mixer,
            max_position_embeddings=length,
        )
        self.model = ConverterForSequenceClassification(config).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.labels = torch.randint(CLASSES, (settings.batch,))
        self.tokens = torch.randint(1, VOCABULARY, (settings.batch, length))

    def __call__(self, length: int) -> float:
        """One step on the first positions; the milliseconds it took."""
        start = time.perf_counter()
        self.optimizer.zero_grad()
        self.model(input_ids=self.tokens[:, :length], labels=self.labels).loss.backward()
        self.optimizer.step()
        return 1e3 * (time.perf_counter() - start)


def limit_memory(more: int) -> None:
    """Let this process take so many bytes beyond what it has; nothing happens where the system offers no such limit."""
    status = Path("/proc/self/status")
    if not status.exists():
        return
    import resource  # not on Windows

    lines = status.read_text(encoding="utf-8").splitlines()
    now = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmSize:"))
    resource.setrlimit(resource.RLIMIT_AS, (now + more, resource.getrlimit(resource.RLIMIT_AS)[1]))


def forget_peak() -> None:
    """Start the account of the most held anew, where Linux allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def main(order: str) -> None:
    """Run one order and print the result."""
    wanted = json.loads(order)
    settings = Settings(**wanted["settings"])
    times, peak = run(wanted["mixer"], wanted["length"], settings, settings.memory)
    print(json.dumps({"ms": times, "peak_bytes": peak}))


if __name__ == "__main__":
    main(sys.argv[1])
