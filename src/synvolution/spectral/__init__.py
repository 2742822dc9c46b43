"""Functions of eigenvalues: polynomial bases, damping kernels, interpolation, the learned kernel polynomial."""

from synvolution.spectral.bases import BASES
from synvolution.spectral.damping import DAMPINGS
from synvolution.spectral.interpolation import (
    analytic_bound,
    chebyshev_coefficients,
    chebyshev_nodes,
    chebyshev_sum,
    differentiable_bound,
)
from synvolution.spectral.kernel_polynomial import KernelPolynomial

__all__ = [
    "BASES",
    "DAMPINGS",
    "KernelPolynomial",
    "analytic_bound",
    "chebyshev_coefficients",
    "chebyshev_nodes",
    "chebyshev_sum",
    "differentiable_bound",
]
