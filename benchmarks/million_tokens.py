"""One sequence of a million tokens through a model built for any length: seconds and memory of a forward pass.

python benchmarks/million_tokens.py [--tokens 1000000]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import torch

import synvolution as sv

POSITIONS = ("rpe", "spe", "none")


def measure(position: str, tokens: int) -> str:
    config = sv.ConverterConfig(vocab_size=16, hidden_size=64, intermediate_size=256, position=position)
    model = sv.ConverterForSequenceClassification(config).eval()
    inputs = torch.randint(1, 16, (1, tokens))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    with torch.inference_mode():
        logits = model(inputs).logits
    seconds = time.perf_counter() - start
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    assert bool(torch.isfinite(logits).all())
    return f"| {position} | {seconds:.1f} | {extra:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--position", choices=POSITIONS)
    options = parser.parse_args()
    if options.position:
        print(measure(options.position, options.tokens))
        return
    print("| position | seconds | memory besides model and input, GiB |\n|---|---|---|", flush=True)
    for position in POSITIONS:  # a process each, since the peak of memory is the process's
        command = [sys.executable, __file__, "--tokens", str(options.tokens), "--position", position]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
