"""Layers."""

from synvolution.nn.permutation import LearnedPermutation

__all__ = ["LearnedPermutation"]
