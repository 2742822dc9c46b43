"""Layers. They take plain arguments and tensors, and need torch alone."""

from synvolution.nn.block import ConverterBlock, NoMixer, RealBlock, block_around
from synvolution.nn.feedforward import FFN, GFFN
from synvolution.nn.gru import GRU
from synvolution.nn.kernelution import Digraph, Kernelution, Synvolution
from synvolution.nn.mixers import MIXERS, build_mixer
from synvolution.nn.norm import FixNorm, ScaleNorm
from synvolution.nn.permutation import LearnedPermutation
from synvolution.nn.pooling import POOLINGS, Pooling
from synvolution.nn.position import (
    POSITIONS,
    LearnedPosition,
    NoPosition,
    RecurrentPosition,
    SinusoidalPosition,
)
from synvolution.nn.row_order import RowOrder
from synvolution.nn.siren import SIREN

__all__ = [
    "FFN",
    "GFFN",
    "GRU",
    "MIXERS",
    "POOLINGS",
    "POSITIONS",
    "SIREN",
    "ConverterBlock",
    "Digraph",
    "FixNorm",
    "Kernelution",
    "LearnedPermutation",
    "LearnedPosition",
    "NoMixer",
    "NoPosition",
    "Pooling",
    "RealBlock",
    "RecurrentPosition",
    "RowOrder",
    "ScaleNorm",
    "SinusoidalPosition",
    "Synvolution",
    "block_around",
    "build_mixer",
]
