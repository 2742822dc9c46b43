"""One mixer's training steps, in a process of its own: ``python -m … ORDER`` (JSON) prints JSON."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from synvolution.experiments.peak_memory import peak_bytes, resident_bytes

if TYPE_CHECKING:
    from synvolution.experiments.bench_mixers import Settings

VOCABULARY, CLASSES = 64, 2  # two classes are transformers' default


def run(mixer: str, length: int, settings: Settings, limit: float | None) -> tuple[list[float], int]:
    """Milliseconds of each timed step, and bytes that a step takes at its worst moment beyond what was held before.

    Args:
        mixer: its name.
        length: N.
        settings: what is trained.
        limit: GiB that the steps may take; None for no limit.
    """
    from synvolution.models import ConverterConfig, ConverterForSequenceClassification

    torch.manual_seed(0)
    config = ConverterConfig(
        vocab_size=VOCABULARY,
        hidden_size=settings.dim,
        intermediate_size=settings.hidden,
        num_heads=settings.num_heads,
        num_layers=settings.num_layers,
        position=settings.position,
        mixer=mixer,
        max_position_embeddings=length,
    )
    model = ConverterForSequenceClassification(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(tokens: torch.Tensor, labels: torch.Tensor) -> None:
        optimizer.zero_grad()
        model(input_ids=tokens, labels=labels).loss.backward()
        optimizer.step()

    labels = torch.randint(CLASSES, (settings.batch,))
    step(torch.randint(1, VOCABULARY, (settings.batch, min(length, 16))), labels)  # threads, moments, code: all there
    tokens = torch.randint(1, VOCABULARY, (settings.batch, length))
    if limit is not None:
        limit_memory(int(limit * 2**30))
    forget_peak()
    before = resident_bytes()
    step(tokens, labels)
    peak, times = max(1, peak_bytes() - before), []
    for _ in range(settings.repeats):
        start = time.perf_counter()
        step(tokens, labels)
        times.append(1e3 * (time.perf_counter() - start))
    return times, peak


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
    from synvolution.experiments.bench_mixers import Settings

    wanted = json.loads(order)
    settings = Settings(**wanted["settings"])
    times, peak = run(wanted["mixer"], wanted["length"], settings, settings.memory)
    print(json.dumps({"ms": times, "peak_bytes": peak}))


if __name__ == "__main__":
    main(sys.argv[1])
