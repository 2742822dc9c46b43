"""Matrices of the classical unitary transforms, orthonormal, with scipy's definitions."""

from __future__ import annotations

import math

import numpy as np


def _check_size(n: int, least: int = 1) -> None:
    if n < least:
        raise ValueError(f"transform of size {n}: at least {least} is needed")


def dft_matrix(n: int) -> np.ndarray:
    """Discrete Fourier transform, e^{−2πi jk/N}/√N.

    Example:
        >>> bool(np.allclose(dft_matrix(2) * 2**0.5, [[1, 1], [1, -1]]))
        True
    """
    _check_size(n)
    k = np.arange(n)
    return np.exp(-2j * np.pi * (np.outer(k, k) % n) / n) / math.sqrt(n)


def hadamard_matrix(n: int) -> np.ndarray:
    """Walsh–Hadamard transform in natural order, entries ±1/√N; N a power of two.

    Example:
        >>> (hadamard_matrix(2) * 2**0.5).round().tolist()
        [[1.0, 1.0], [1.0, -1.0]]
    """
    if n < 1 or n & (n - 1):
        raise ValueError(f"the Walsh-Hadamard transform needs a power of two, {n} was given")
    matrix = np.ones((1, 1))
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix / math.sqrt(n)


def dct_matrix(n: int, type: int = 2) -> np.ndarray:
    """Discrete cosine transform of type 1, 2, 3 or 4, as ``scipy.fft.dct(..., norm="ortho")``.

    Example:
        >>> bool(np.allclose(dct_matrix(5) @ dct_matrix(5, type=3), np.eye(5)))
        True
    """
    _check_size(n, 2 if type == 1 else 1)
    k, j = np.arange(n)[:, None], np.arange(n)[None, :]
    half = math.sqrt(0.5)
    if type == 1:
        edge = np.where((np.arange(n) == 0) | (np.arange(n) == n - 1), half, 1.0)
        return edge[:, None] * edge * np.cos(np.pi * k * j / (n - 1)) * math.sqrt(2 / (n - 1))
    if type == 2:
        return np.where(k == 0, half, 1.0) * np.cos(np.pi * k * (2 * j + 1) / (2 * n)) * math.sqrt(2 / n)
    if type == 3:
        return dct_matrix(n, 2).T
    if type == 4:
        return np.cos(np.pi * (2 * k + 1) * (2 * j + 1) / (4 * n)) * math.sqrt(2 / n)
    raise ValueError(f"cosine transform of type {type}: choose 1, 2, 3 or 4")


def dst_matrix(n: int, type: int = 2) -> np.ndarray:
    """Discrete sine transform of type 1, 2, 3 or 4, as ``scipy.fft.dst(..., norm="ortho")``.

    Example:
        >>> bool(np.allclose(dst_matrix(5, type=1) @ dst_matrix(5, type=1), np.eye(5)))
        True
    """
    _check_size(n)
    k, j = np.arange(n)[:, None], np.arange(n)[None, :]
    if type == 1:
        return np.sin(np.pi * (k + 1) * (j + 1) / (n + 1)) * math.sqrt(2 / (n + 1))
    if type == 2:
        last = np.where(k == n - 1, math.sqrt(0.5), 1.0)
        return last * np.sin(np.pi * (k + 1) * (2 * j + 1) / (2 * n)) * math.sqrt(2 / n)
    if type == 3:
        return dst_matrix(n, 2).T
    if type == 4:
        return np.sin(np.pi * (2 * k + 1) * (2 * j + 1) / (4 * n)) * math.sqrt(2 / n)
    raise ValueError(f"sine transform of type {type}: choose 1, 2, 3 or 4")
