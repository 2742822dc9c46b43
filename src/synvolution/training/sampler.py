"""The order of rows: by length within pools, so that batches hold little padding; decided by seed and epoch alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Sampler


class LengthGroupedSampler(Sampler[int]):
    """Row numbers in which every run of ``batch_size`` has similar lengths, in an order that seed and epoch decide.

    Rows are shuffled, cut into pools of 50 batches, sorted by length within a pool and cut into batches; then the
    batches are shuffled. An order is the same after a restart, and for any number of processes that share a batch. Rows
    that do not fill a batch are left out, other ones in each epoch, unless there are fewer rows than a batch holds.

    With ``in_order`` the pools are cut from the rows as they come, and batches are shuffled within their pool alone:
    what comes early in the data is trained on early.

    Args:
        lengths: of the rows.
        batch_size: rows of a whole step, over all processes.
        seed: of the order.
        in_order: whether the pools keep the order of the rows.

    Example:
        >>> sampler = LengthGroupedSampler([5, 1, 4, 2, 3, 6], 2, seed=0)
        >>> first = list(sampler)
        >>> sorted(first), first == list(sampler)
        ([0, 1, 2, 3, 4, 5], True)
        >>> sampler.set_epoch(1)
        >>> first == list(sampler)
        False
    """

    #: Batches that are sorted together: more is less padding, fewer is closer to a random order.
    pool = 50

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int = 0, in_order: bool = False) -> None:
        self.lengths = np.asarray(lengths)
        self.batch_size, self.seed, self.epoch, self.in_order = batch_size, seed, 0, in_order

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of this epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        rows = len(self.lengths)
        return rows // self.batch_size * self.batch_size or rows

    def __iter__(self) -> Iterator[int]:
        generator = np.random.default_rng((self.seed, self.epoch))
        every = len(self.lengths)
        rows = (np.arange(every) if self.in_order else generator.permutation(every))[: len(self)]
        size = self.pool * self.batch_size
        pools = (rows[start : start + size] for start in range(0, len(rows), size))
        ordered = np.concatenate([pool[np.argsort(self.lengths[pool], kind="stable")] for pool in pools])
        batches = [ordered[start : start + self.batch_size] for start in range(0, len(ordered), self.batch_size)]
        order = self._within_pools(generator, len(batches)) if self.in_order else generator.permutation(len(batches))
        yield from np.concatenate([batches[number] for number in order]).tolist()

    def _within_pools(self, generator: np.random.Generator, batches: int) -> NDArray[np.int64]:
        starts = range(0, batches, self.pool)
        return np.concatenate([start + generator.permutation(min(self.pool, batches - start)) for start in starts])


class LengthSortedSampler(Sampler[int]):
    """Row numbers from the longest to the shortest: least padding, and memory runs out at once if it does.

    Example:
        >>> list(LengthSortedSampler([5, 1, 4]))
        [0, 2, 1]
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self.order = np.argsort(-np.asarray(lengths), kind="stable").tolist()

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[int]:
        return iter(self.order)
