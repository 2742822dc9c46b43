"""Layers."""

from synvolution.nn.gru import GRU
from synvolution.nn.permutation import LearnedPermutation

__all__ = ["GRU", "LearnedPermutation"]
