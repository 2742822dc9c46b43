"""What is computed: chains of rotations, the operators built from them, and their factorisation."""

from synvolution.ops.dhhp import DHHP
from synvolution.ops.givens import adjoint_angles, lower_chain, rotation_coefficients, upper_chain
from synvolution.ops.lhhp import LHHP
from synvolution.ops.permutation import bit_reversal, block_transpose, gumbel_sinkhorn, hard_permutation
from synvolution.ops.synvolve import synvolve

__all__ = [
    "DHHP",
    "LHHP",
    "adjoint_angles",
    "bit_reversal",
    "block_transpose",
    "gumbel_sinkhorn",
    "hard_permutation",
    "lower_chain",
    "rotation_coefficients",
    "synvolve",
    "upper_chain",
]
