"""Converter: Transformers in directed-graph-network form, with an exactly unitary mixing operator."""

from importlib.metadata import version
from typing import Any

from synvolution.nn.gru import GRU
from synvolution.nn.kernelution import Kernelution, Synvolution
from synvolution.nn.permutation import LearnedPermutation
from synvolution.ops.dhhp import DHHP
from synvolution.ops.lhhp import LHHP
from synvolution.ops.synvolve import synvolve
from synvolution.spectral.kernel_polynomial import KernelPolynomial

try:  # registers the models with transformers' Auto classes
    from synvolution.models import (
        ConverterConfig,
        ConverterForPairClassification,
        ConverterForSequenceClassification,
        ConverterModel,
    )
except ModuleNotFoundError as error:  # operators and layers need torch alone
    if error.name is None or error.name.startswith("synvolution"):
        raise

__version__ = version("synvolution")

__all__ = [
    "DHHP",
    "GRU",
    "LHHP",
    "ConverterConfig",
    "ConverterForPairClassification",
    "ConverterForSequenceClassification",
    "ConverterModel",
    "KernelPolynomial",
    "Kernelution",
    "LearnedPermutation",
    "Synvolution",
    "__version__",
    "synvolve",
]


def __getattr__(name: str) -> Any:
    """Say what is missing where the models are asked for without transformers."""
    if name in __all__:
        raise ImportError(f"synvolution.{name} needs transformers: pip install 'synvolution[train]'")
    raise AttributeError(f"module 'synvolution' has no attribute {name!r}")
