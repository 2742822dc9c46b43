"""The generator of eigenvalues and angles."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from synvolution.nn.dropout import Dropout
from synvolution.nn.norm import ScaleNorm, wide
from synvolution.ops.norm import scale_norm


class SIREN(nn.Module):
    """Two linear layers, each under a sine: sin(W_2 dropout(ScaleNorm(sin(W_1 x + b_1))) + b_2) (eq. eigenvalue_gap).

    Initial weights are uniform with the variance that gives each sine an argument of unit variance, for inputs whose
    features have unit variance, as ScaleNorm leaves them (the principle of Sitzmann et al., 2020); the first layer's is
    multiplied by ``frequency``.

    Args:
        dim: input features D.
        out: output features.
        hidden: features between the layers; None for D.
        dropout: rate between the layers.
        frequency: factor of the first layer's initial weights.

    Shape:
        (..., D) → (..., out) in [−1, 1]. Under autocast the linear layers run in half precision, sines and norm in
        float32, and the result is float32.

    Example:
        >>> SIREN(8, 3)(torch.randn(2, 5, 8)).shape
        torch.Size([2, 5, 3])
    """

    def __init__(
        self, dim: int, out: int, *, hidden: int | None = None, dropout: float = 0.0, frequency: float = 1.0
    ) -> None:
        super().__init__()
        if dim < 1 or out < 1 or (hidden is not None and hidden < 1):
            raise ValueError(f"dim = {dim}, hidden = {hidden}, out = {out}: all must be at least 1")
        if not frequency > 0:
            raise ValueError(f"frequency is {frequency}: it must be positive")
        self.frequency = frequency
        self.first = nn.Linear(dim, hidden or dim)
        self.norm = ScaleNorm(hidden or dim)
        self.dropout = Dropout(dropout)
        self.second = nn.Linear(hidden or dim, out)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights uniform in ±√(3/inputs), the first layer's times ``frequency``; biases uniform in ±1/√inputs."""
        for layer, factor in ((self.first, self.frequency), (self.second, 1.0)):
            bound = factor * math.sqrt(3 / layer.in_features)
            nn.init.uniform_(layer.weight, -bound, bound)
            nn.init.uniform_(layer.bias, -(layer.in_features**-0.5), layer.in_features**-0.5)
        self.norm.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Features in [−1, 1]."""
        return torch.sin(self.arguments(x))

    def arguments(self, x: Tensor) -> Tensor:
        """What the last sine is taken of."""
        first = wide(self.first(x))
        hidden = scale_norm(first, self.norm.scale, sine=True, rate=self.dropout.rate)
        return wide(self.second(hidden.to(x.dtype)))
