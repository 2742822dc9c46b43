"""Dropout whose random numbers are a function of a seed and of the position: ``synvolution::dropout``.

Nothing is kept for the backward but the seed, drawn from torch's generator: `torch.manual_seed` decides, and code that
restores torch's random state, as activation checkpointing does, gets the same numbers. Threads do not matter.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from synvolution.ops import _cpu
from synvolution.ops._autograd import call, register_gradient, register_loop_vmap

#: Threefry-4x32 (Salmon et al., 2011) with 13 rounds.
ROUNDS, ROTATIONS = 13, ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
#: Elements come in blocks of four words of sixteen counters.
WORDS, LANES = 4, 16


def dropout(x: Tensor, rate: float) -> Tensor:
    """Elements of x, each zero with probability ``rate``, the others divided by 1 − rate.

    On other devices, and without compiled kernels, it is torch's own, with other random numbers.

    Example:
        >>> x = torch.ones(4, 1000)
        >>> dropout(x, 0.0) is x, sorted(dropout(x, 0.5).unique().tolist())
        (True, [0.0, 2.0])
    """
    if not rate:
        return x
    if not _cpu.fusible(x):
        return F.dropout(x, rate)
    return call(torch.ops.synvolution.dropout, plain_dropout, x, draw_seed(rate), rate)


def draw_seed(rate: float) -> Tensor | None:
    """A seed from torch's generator, int64 of shape (); None where nothing is dropped."""
    return torch.randint(2**63 - 1, ()) if rate else None


def plain_dropout(x: Tensor, seed: Tensor | None, rate: float) -> Tensor:
    """The definition, in torch."""
    if seed is None:
        return x
    words = random_words(seed, x.numel())
    signed = torch.where(words >= 2**31, words - 2**32, words)
    kept = signed >= int(rate * 2**32) - 2**31
    factor = 1 / (1 - rate) if rate < 1 else 0.0
    return x * (kept.to(x.dtype) * factor).reshape(x.shape)


def random_words(seed: Tensor, count: int) -> Tensor:
    """So many numbers in 0 … 2³² − 1, int64: element 16 w + l of block b is word w of counter 16 b + l."""
    counters = torch.arange(-(-count // (WORDS * LANES)) * LANES)
    words = threefry((counters, counters >> 32, 0 * counters, 0 * counters), (seed, seed >> 32, 0 * seed, 0 * seed))
    return torch.stack([word.reshape(-1, LANES) for word in words], 1).flatten()[:count]


def threefry(counter: tuple[Tensor, ...], key: tuple[Tensor, ...]) -> list[Tensor]:
    """Threefry-4x32: four words of a counter, enciphered with four words of a key, all held in int64."""
    low = 2**32 - 1
    keys = [k & low for k in key]
    keys.append(keys[0] ^ keys[1] ^ keys[2] ^ keys[3] ^ 0x1BD11BDA)
    x = [(c + k) & low for c, k in zip(counter, keys, strict=False)]
    for turn in range(ROUNDS):
        for into, other, by in zip((0, 2), (3, 1) if turn % 2 else (1, 3), ROTATIONS[turn % 8], strict=True):
            x[into] = (x[into] + x[other]) & low
            x[other] = ((x[other] << by | x[other] >> (32 - by)) & low) ^ x[into]
        if turn % 4 == 3:
            injection = turn // 4 + 1
            x = [(word + keys[(injection + i) % 5]) & low for i, word in enumerate(x)]
            x[3] = (x[3] + injection) & low
    return x


def seeded(seed: Tensor | None, rate: float) -> tuple[int, float]:
    """Seed and rate as the kernels want them: rate 0 for no dropout."""
    _cpu.demand(0 <= rate <= 1, f"rate is {rate}: expected a probability")
    return (0, 0.0) if seed is None else (int(seed.item()), rate)


@torch.library.custom_op("synvolution::dropout", mutates_args=(), device_types="cpu")
def dropout_op(x: Tensor, seed: Tensor, rate: float) -> Tensor:
    """x of any shape, its elements numbered as they lie in a contiguous tensor."""
    (dense,) = _cpu.dense(x, x)
    assert dense is not None
    out = _cpu.empty(x.shape, x.dtype)
    elements = (x.numel(), torch.get_num_threads(), *seeded(seed, rate))
    _cpu.kernel("dropout", x.dtype)(elements, dense.data_ptr(), out.data_ptr())
    return out


@dropout_op.register_fake
def _(x: Tensor, seed: Tensor, rate: float) -> Tensor:
    return x.new_empty(x.shape)


def _backward(grad: Tensor, x: Tensor, seed: Tensor, rate: float) -> tuple[Any, ...]:
    return torch.ops.synvolution.dropout(grad, seed, rate), None


register_gradient(dropout_op, _backward, plain_dropout)
register_loop_vmap(dropout_op)
