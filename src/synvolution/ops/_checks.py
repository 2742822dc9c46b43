"""Checks of arguments. Each says what was given, what is allowed, and how to mend it."""

from __future__ import annotations

import torch
from torch import Tensor


def check_real(**tensors: Tensor | None) -> None:
    """All given tensors are float32 or float64, of one dtype, on one device."""
    first: tuple[str, Tensor] | None = None
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}: expected a torch.Tensor")
        if tensor.dtype not in (torch.float32, torch.float64):
            hint = "; split it into real and imaginary planes (..., N, 2, D)" if tensor.is_complex() else ""
            raise TypeError(f"{name} is {tensor.dtype}: expected torch.float32 or torch.float64{hint}")
        if first is None:
            first = (name, tensor)
        elif tensor.dtype != first[1].dtype:
            raise TypeError(f"{name} is {tensor.dtype} but {first[0]} is {first[1].dtype}: convert one with .to(dtype)")
        elif tensor.device != first[1].device:
            raise ValueError(
                f"{name} is on {tensor.device} but {first[0]} is on {first[1].device}: move one with .to(device)"
            )


def check_beside(name: str, tensor: Tensor, like: Tensor) -> None:
    """tensor is one, on the device of like."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} is a {type(tensor).__name__}: expected a torch.Tensor")
    if tensor.device != like.device:
        raise ValueError(f"{name} is on {tensor.device}, the other tensors on {like.device}: move it with .to(device)")


def check_planar(name: str, x: Tensor) -> None:
    """x is (..., N, 2, D) with N ≥ 1."""
    if x.ndim < 3 or x.shape[-2] != 2:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}: expected (..., N, 2, D), real plane and imaginary plane of each row"
        )
    if x.shape[-3] < 1:
        raise ValueError(f"{name} has shape {tuple(x.shape)}: N = 0 positions, at least 1 is needed")


def check_angles(name: str, angles: Tensor, n: int | None = None) -> None:
    """angles is (..., N−1, 3)."""
    if angles.ndim < 2 or angles.shape[-1] != 3:
        raise ValueError(f"{name} has shape {tuple(angles.shape)}: expected (..., N-1, 3), α, β, γ of each rotation")
    if n is not None and angles.shape[-2] != n - 1:
        raise ValueError(f"length {angles.shape[-2]} of {name} does not fit {n} positions: expected {n - 1}")


def check_shape(name: str, tensor: Tensor, expected: tuple[int, ...], letters: str) -> None:
    """tensor has exactly the expected shape."""
    if tuple(tensor.shape) != expected:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}: expected {expected} for {letters}")


def check_index(name: str, index: Tensor, n: int) -> None:
    """Each last row of index (..., N) holds 0 … N−1 once."""
    if index.dtype != torch.long:
        raise TypeError(f"{name} is {index.dtype}: expected torch.int64 row numbers")
    if index.shape[-1] != n:
        raise ValueError(f"{name} has shape {tuple(index.shape)}: its last size must be the number of positions {n}")
    if not torch.compiler.is_compiling() and not bool((index.sort(-1).values == torch.arange(n).to(index)).all()):
        raise ValueError(f"{name} is not a permutation: each of 0 … {n - 1} must occur exactly once in a row")
