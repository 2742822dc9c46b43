"""What synvolve should take on a GPU: bytes and flops of the Triton kernels, and the time a device needs for them.

``python -m synvolution.experiments.roofline`` prints the table of docs/performance.md for the paper's nine recipes.
Nothing here is measured: `synvolution bench ops --device cuda` measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from synvolution.data import TASKS
from synvolution.ops._triton import BLOCKS, ROWS, STEPS
from synvolution.recipes import PUBLISHED, RECIPES

#: A trip to memory and back that the next step waits for, in seconds: an assumption, not a data sheet's number.
TRIP = 1e-6


class Device(NamedTuple):
    """Peak bytes and float32 operations per second, of the data sheet (dense, no tensor cores)."""

    name: str
    bandwidth: float
    flops: float


DEVICES = (
    Device("A100 40 GB", 1.555e12, 19.5e12),
    Device("A100 80 GB", 2.0e12, 19.5e12),
    Device("H100 SXM", 3.35e12, 67e12),
)


@dataclass(frozen=True)
class Work:
    """What one direction of the operator moves between memory and chip, computes, and waits for in turn."""

    bytes: float
    flops: float
    trips: int

    def seconds(self, device: Device) -> float:
        """Memory or arithmetic, whichever takes longer, and the walk over chunks, which neither hides.

        Example:
            >>> Work(2e12, 1e12, 0).seconds(Device("", 1e12, 10e12))
            2.0
        """
        return max(self.bytes / device.bandwidth, self.flops / device.flops) + self.trips * TRIP


def forward(batch: int, n: int, d: int) -> Work:
    """The kernels prepare, respond, local, carry and fix_up on float32 values (B, N, 2, D), one head.

    Signals: v read, slots written, read again, out written. Per row 28 bytes of angles, coefficients (40) written and
    read twice, replies (32) written and read. A chunk has 4 carries of D complex numbers: written by local, by the four
    walks read 4 + 6 times and written 4 times, read by fix_up. Per complex number 4 real rotations (12 flops), 5 phases
    (6) and 4 products that are added (8).

    Example:
        >>> work = forward(1, 65, 32)  # one chunk: 4 signals, 212 bytes a row, 22 carries
        >>> work.bytes == 4 * 65 * 256 + 65 * 212 + 22 * 256
        True
    """
    chunks = -(-(n - 1) // ROWS)
    traffic = 4 * n * 8 * d + n * (28 + 3 * 40 + 2 * 32) + 22 * chunks * 8 * d
    return Work(batch * traffic, batch * n * d * (4 * 12 + 5 * 6 + 4 * 8), 4 * -(-chunks // STEPS))


def backward(batch: int, n: int, d: int) -> Work:
    """The kernels of the backward: local and the walks for output and gradient, then both together with the sums.

    Signals: local reads and writes one for output and gradient each, apply_backward reads two and writes two. Each tile
    of features writes 12 sums per rotation and one per row, which are read once to be added up.

    Example:
        >>> backward(1, 65, 32).bytes == 8 * 65 * 256 + 65 * (28 + 5 * 40 + 32 + 2 * 52) + 44 * 256
        True
    """
    chunks = -(-(n - 1) // ROWS)
    tiles = -(-d // (BLOCKS[0] if d <= BLOCKS[0] else BLOCKS[1]))
    traffic = 8 * n * 8 * d + n * (28 + 5 * 40 + 32 + 2 * 52 * tiles) + 44 * chunks * 8 * d
    sums = 4 * (3 * 3 + 7 + 2 + 3) + 1
    flops = 2 * (4 * 12 + 5 * 6) + 2 * (4 * 12 + 4 * 6) + 6 + sums
    return Work(batch * traffic, batch * n * d * flops, 8 * -(-chunks // STEPS))


def shape_of(name: str) -> tuple[int, int, int]:
    """(B, N, D) of a recipe at its longest; pairs are two sequences.

    Example:
        >>> shape_of("longdoc16k"), shape_of("retrieval")
        ((4, 16384, 128), (512, 4000, 64))
    """
    recipe = RECIPES[name]
    assert recipe.task is not None
    data = TASKS[recipe.task].defaults
    length = data.max_length or (data.image_size or 0) ** 2
    return recipe.training.batch_size * (2 if recipe.pair else 1), length, recipe.model.hidden_size


def table() -> str:
    """The nine recipes in Markdown: megabytes, gigaflops, and milliseconds forward + backward on each device."""
    heads = ["recipe", "(B, N, D)", "MB", "GFlop", *(f"{device.name}, ms" for device in DEVICES)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in PUBLISHED:
        shape = shape_of(name)
        ways = forward(*shape), backward(*shape)
        sizes = (
            " + ".join(f"{getattr(w, what) / unit:.0f}" for w in ways)
            for what, unit in (("bytes", 1e6), ("flops", 1e9))
        )
        times = (" + ".join(f"{1e3 * w.seconds(device):.2f}" for w in ways) for device in DEVICES)
        lines.append(f"| {' | '.join([name, str(shape), *sizes, *times])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
