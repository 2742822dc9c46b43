"""Dropout by :func:`synvolution.ops.dropout.dropout`."""

from __future__ import annotations

from torch import Tensor, nn

from synvolution.ops.dropout import dropout


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`, on the CPU with random numbers that any thread can make and the backward makes again.

    Shape:
        any → the same.

    Example:
        >>> Dropout(0.5).rate, Dropout(0.5).eval().rate
        (0.5, 0.0)
    """

    @property
    def rate(self) -> float:
        """The rate at this moment: 0 in evaluation."""
        return self.p if self.training else 0.0

    def forward(self, input: Tensor) -> Tensor:
        """Drop elements in training."""
        return dropout(input, self.rate)
