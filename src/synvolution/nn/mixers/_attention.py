"""What the baselines share: padding, heads, blocks, and the frame of projections around an attention rule."""

from __future__ import annotations

import importlib
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synvolution.nn.dropout import Dropout
from synvolution.ops._checks import check_shape


class Attention(nn.Module):
    """Queries, keys and values in heads, a rule that mixes them, and the output projection.

    The rule sees every sequence alone: real positions are moved to the front (so that padding on either side, or holes,
    make no difference), padded ones are zero and marked. A sequence without any real position counts as one zero row.

    Args:
        dim: number of features D.
        rule: a module (q, k, v (B, H, N, D/H), real (B, N) bool) → (B, H, N, D/H). ``real`` is True at the front.
            A rule with ``plain_if_full = True`` is given None instead if there is no mask.
        num_heads: H.
        max_length: longest sequence, if the rule cannot do longer ones.
        dropout: rate on the values.
        bias: whether the four projections have one.
        shared: whether keys are the queries, as in Reformer.

    Shape:
        x (B, N, D), mask (B, N) bool, True where a position is real → (B, N, D), zero at padded positions.

    Example:
        >>> class Mean(nn.Module):
        ...     def forward(self, q, k, v, real):
        ...         return (v * real[:, None, :, None]).sum(2, keepdim=True).expand_as(v)
        >>> Attention(8, Mean(), num_heads=2)(torch.randn(3, 10, 8)).shape
        torch.Size([3, 10, 8])
    """

    def __init__(
        self,
        dim: int,
        rule: nn.Module,
        *,
        num_heads: int,
        max_length: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        shared: bool = False,
    ) -> None:
        super().__init__()
        head_features(dim, num_heads)
        self.dim, self.num_heads, self.max_length = dim, num_heads, max_length
        self.query = nn.Linear(dim, dim, bias=bias)
        self.key = None if shared else nn.Linear(dim, dim, bias=bias)
        self.value = nn.Linear(dim, dim, bias=bias)
        self.value_dropout = Dropout(dropout)
        self.rule = rule
        self.out = nn.Linear(dim, dim, bias=bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the positions of each sequence."""
        check_input(x, mask, self.dim, self.max_length)
        packed, real, order = pack(x, mask)
        q = split_heads(self.query(packed), self.num_heads)
        k = q if self.key is None else split_heads(self.key(packed), self.num_heads)
        v = split_heads(self.value_dropout(self.value(packed)), self.num_heads)
        plain = mask is None and getattr(self.rule, "plain_if_full", False)
        mixed: Tensor = self.rule(q, k, v, None if plain else real)
        return unpack(self.out(merge_heads(mixed)), real, order).to(x.dtype)

    def extra_repr(self) -> str:
        """The settings, for printing."""
        return f"{self.dim}, num_heads={self.num_heads}"


def check_input(x: Tensor, mask: Tensor | None, dim: int, max_length: int | None = None) -> None:
    """Raise if x is not (B, N, D) with 1 ≤ N ≤ max_length, or mask not (B, N) bool.

    Example:
        >>> check_input(torch.zeros(2, 9, 4), None, 4, max_length=8)
        Traceback (most recent call last):
        ValueError: 9 positions are more than max_length = 8: build the mixer with a larger one, or cut the sequences
    """
    if x.ndim != 3 or x.shape[-1] != dim or x.shape[1] < 1:
        raise ValueError(f"x has shape {tuple(x.shape)}: expected (B, N, D) with N ≥ 1 and D = {dim}")
    if max_length is not None and x.shape[1] > max_length:
        raise ValueError(
            f"{x.shape[1]} positions are more than max_length = {max_length}: "
            "build the mixer with a larger one, or cut the sequences"
        )
    if mask is not None:
        if mask.dtype != torch.bool:
            raise TypeError(f"mask is {mask.dtype}: expected torch.bool, True where a position is real")
        check_shape("mask", mask, tuple(x.shape[:2]), "(B, N)")


def head_features(dim: int, num_heads: int) -> int:
    """D/H, or an error.

    Example:
        >>> head_features(8, 2)
        4
    """
    if dim < 1 or num_heads < 1 or dim % num_heads:
        raise ValueError(f"{num_heads} heads do not divide {dim} features: choose num_heads that divides dim")
    return dim // num_heads


def at_least_one(**options: int) -> None:
    """Raise if an option, given by its name, is below 1.

    Example:
        >>> at_least_one(bucket_size=0)
        Traceback (most recent call last):
        ValueError: bucket_size is 0: expected at least 1
    """
    for name, value in options.items():
        if value < 1:
            raise ValueError(f"{name} is {value}: expected at least 1")


def needed_length(mixer: str, max_length: int | None) -> int:
    """The longest sequence, or an error: for mixers with parameters per position.

    Example:
        >>> needed_length("linformer", None)
        Traceback (most recent call last):
        ValueError: the mixer 'linformer' has parameters per position: give max_length, the longest sequence
    """
    if max_length is None:
        raise ValueError(f"the mixer {mixer!r} has parameters per position: give max_length, the longest sequence")
    at_least_one(max_length=max_length)
    return max_length


def needed_package(mixer: str, package: str, module: str) -> Any:
    """Import a module of an optional package, or say in one line what to install.

    Example:
        >>> needed_package("longformer", "no-such-package", "no_such_package")
        Traceback (most recent call last):
        ImportError: the mixer 'longformer' needs the package no-such-package: pip install 'synvolution[baselines]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"the mixer {mixer!r} needs the package {package}: pip install 'synvolution[baselines]'"
        ) from error


def pack(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Move the real positions of each sequence to the front, in their order, and put zeros behind.

    Returns:
        x (B, N, D) packed, real (B, N) bool, order (B, N): which position went where; None if there is no mask.

    Example:
        >>> packed, real, order = pack(torch.tensor([[[1.0], [2.0], [3.0]]]), torch.tensor([[False, True, True]]))
        >>> packed.flatten().tolist(), real.tolist()
        ([2.0, 3.0, 0.0], [[True, True, False]])
    """
    if mask is None:
        return x, torch.ones(x.shape[:2], dtype=torch.bool, device=x.device), None
    order = (~mask).to(torch.uint8).argsort(dim=1, stable=True)
    clean = torch.where(mask[..., None], x, 0.0)  # not a product: NaN in padding must vanish
    real = torch.arange(x.shape[1], device=x.device) < mask.sum(1, keepdim=True).clamp_min(1)
    return clean.gather(1, order[..., None].expand_as(x)), real, order


def unpack(y: Tensor, real: Tensor, order: Tensor | None) -> Tensor:
    """Undo :func:`pack` for a result y (B, N, D): every row back in its place, zero at padded positions.

    Example:
        >>> x, mask = torch.tensor([[[1.0], [2.0], [3.0]]]), torch.tensor([[False, True, True]])
        >>> unpack(*pack(x, mask)).flatten().tolist()
        [0.0, 2.0, 3.0]
    """
    if order is None:
        return y
    kept = torch.where(real[..., None], y, 0.0)
    return torch.zeros_like(y).scatter(1, order[..., None].expand_as(y), kept)


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(B, N, D) → (B, H, N, D/H).

    Example:
        >>> split_heads(torch.zeros(2, 5, 6), 3).shape
        torch.Size([2, 3, 5, 2])
    """
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, N, D/H) → (B, N, D).

    Example:
        >>> merge_heads(torch.zeros(2, 3, 5, 2)).shape
        torch.Size([2, 5, 6])
    """
    return x.transpose(1, 2).flatten(-2)


def blocks(x: Tensor, size: int, dim: int) -> Tensor:
    """Cut dimension ``dim`` into blocks: (…, N, …) → (…, ⌈N/size⌉, size, …), zeros (False) in the last one.

    Example:
        >>> blocks(torch.ones(2, 7, 3), 4, dim=1).shape
        torch.Size([2, 2, 4, 3])
    """
    dim = dim % x.ndim
    missing = -x.shape[dim] % size
    padding = (0, 0) * (x.ndim - 1 - dim) + (0, missing)
    return (F.pad(x, padding) if missing else x).unflatten(dim, (-1, size))


def masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the last dimension among the allowed entries; a row without any is uniform, never NaN.

    Example:
        >>> masked_softmax(torch.zeros(1, 3), torch.tensor([[True, True, False]])).tolist()
        [[0.5, 0.5, 0.0]]
    """
    return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(-1)
