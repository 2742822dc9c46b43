"""Converter: Transformers in directed-graph-network form, with an exactly unitary mixing operator."""

from importlib.metadata import version

from synvolution.nn.gru import GRU
from synvolution.nn.kernelution import Kernelution, Synvolution
from synvolution.nn.permutation import LearnedPermutation
from synvolution.ops.dhhp import DHHP
from synvolution.ops.lhhp import LHHP
from synvolution.ops.synvolve import synvolve
from synvolution.spectral.kernel_polynomial import KernelPolynomial

__version__ = version("synvolution")

__all__ = [
    "DHHP",
    "GRU",
    "LHHP",
    "KernelPolynomial",
    "Kernelution",
    "LearnedPermutation",
    "Synvolution",
    "__version__",
    "synvolve",
]
