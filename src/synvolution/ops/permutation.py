"""Permutations between the orders of a DHHP: fixed row numbers, and learned by Gumbel–Sinkhorn."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def block_transpose(n: int, m: int) -> Tensor:
    """Row numbers of the paper's Algorithm 2: read N rows as an (N/m, m) block, transpose it, read it out.

    Args:
        n: number of rows.
        m: width of the block; must divide n.

    Returns:
        (N,) int64.

    Example:
        >>> block_transpose(6, 3).tolist()
        [0, 3, 1, 4, 2, 5]
    """
    if n < 1 or m < 1 or n % m:
        raise ValueError(f"block width {m} does not divide {n} rows")
    return torch.arange(n).reshape(n // m, m).T.reshape(n)


def bit_reversal(n: int) -> Tensor:
    """Row numbers with their binary digits reversed, as in the fast Fourier transform.

    Args:
        n: number of rows, a power of two.

    Returns:
        (N,) int64.

    Example:
        >>> bit_reversal(8).tolist()
        [0, 4, 2, 6, 1, 5, 3, 7]
    """
    if n < 1 or n & (n - 1):
        raise ValueError(f"bit reversal needs a power of two, {n} was given")
    index = torch.zeros(1, dtype=torch.long)
    while len(index) < n:
        index = torch.cat((2 * index, 2 * index + 1))
    return index


def gumbel_sinkhorn(
    logits: Tensor,
    temperature: float = 1.0,
    iterations: int = 20,
    noise: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Soft permutation: Sinkhorn normalisation of exp((logits + Gumbel noise) / temperature) (Mena et al., 2018).

    Args:
        logits: (..., N, N).
        temperature: smaller is closer to a permutation.
        iterations: row and column normalisations, in the logarithm.
        noise: scale of the Gumbel noise; 0 gives the deterministic Sinkhorn matrix.

    Returns:
        (..., N, N), nearly doubly stochastic: columns sum to one exactly, rows up to convergence.

    Example:
        >>> p = gumbel_sinkhorn(torch.zeros(3, 3), noise=0.0)
        >>> torch.allclose(p, torch.full((3, 3), 1 / 3))
        True
    """
    if logits.ndim < 2 or logits.shape[-1] != logits.shape[-2]:
        raise ValueError(f"logits have shape {tuple(logits.shape)}: expected (..., N, N)")
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature}: it must be positive")
    exponential = torch.empty_like(logits, requires_grad=False).exponential_(generator=generator)
    gumbel = -exponential.clamp_min(torch.finfo(logits.dtype).tiny).log()
    log_p = (logits + noise * gumbel) / temperature
    for _ in range(iterations):
        log_p = log_p - log_p.logsumexp(-1, keepdim=True)
        log_p = log_p - log_p.logsumexp(-2, keepdim=True)
    return log_p.exp()


def hard_permutation(logits: Tensor) -> Tensor:
    """Permutation of largest total score, Σ_i logits[i, index[i]]: the limit of :func:`gumbel_sinkhorn` without noise.

    Args:
        logits: (..., N, N).

    Returns:
        (..., N) int64 row numbers, so that P = eye(N)[index].

    Example:
        >>> hard_permutation(torch.tensor([[0.0, 2.0], [1.0, 0.0]])).tolist()
        [1, 0]
    """
    if logits.ndim < 2 or logits.shape[-1] != logits.shape[-2]:
        raise ValueError(f"logits have shape {tuple(logits.shape)}: expected (..., N, N)")
    scores = logits.detach().to("cpu", torch.float64)
    if not bool(torch.isfinite(scores).all()):
        raise ValueError("logits hold NaN or infinite values: no best permutation exists")
    flat = scores.reshape(-1, *scores.shape[-2:]).numpy()
    rows = [_assignment(-matrix) for matrix in flat]
    stacked = np.stack(rows) if rows else np.empty((0, logits.shape[-1]), dtype=np.int64)
    return torch.from_numpy(stacked).reshape(logits.shape[:-1]).to(logits.device)


def _assignment(cost: np.ndarray) -> np.ndarray:
    """Column of each row in the cheapest assignment, by shortest augmenting paths in O(N³).

    The core needs torch and numpy alone, hence not scipy's ``linear_sum_assignment``, which the tests compare with.
    """
    n = len(cost)
    row_price, column_price = np.zeros(n + 1), np.zeros(n + 1)
    owner = np.zeros(n + 1, dtype=np.int64)  # row that owns a column; row and column 0 are a sentinel
    for row in range(1, n + 1):
        owner[0] = row
        column = 0
        slack, previous = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.int64)
        visited = np.zeros(n + 1, dtype=bool)
        while owner[column]:
            visited[column] = True
            current = owner[column]
            free = np.flatnonzero(~visited)
            reduced = cost[current - 1, free - 1] - row_price[current] - column_price[free]
            shorter = reduced < slack[free]
            slack[free[shorter]], previous[free[shorter]] = reduced[shorter], column
            step = slack[free].min()
            row_price[owner[visited]] += step
            column_price[visited] -= step
            slack[free] -= step
            column = free[slack[free].argmin()]
        while column:
            owner[column] = owner[previous[column]]
            column = previous[column]
    columns = np.empty(n, dtype=np.int64)
    columns[owner[1:] - 1] = np.arange(n)
    return columns
