"""A permutation that is learned."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from synvolution.ops.permutation import gumbel_sinkhorn, hard_permutation


class LearnedPermutation(nn.Module):
    """Permutations P^(1) … P^(L) of a DHHP, learned by Gumbel–Sinkhorn (Mena et al., 2018).

    In training mode soft matrices, differentiable and random; in evaluation mode the best hard permutation, as row
    numbers, so that the operator is exactly unitary again. Both fit the ``permutation`` argument of
    :class:`synvolution.DHHP` and :func:`synvolution.synvolve`.

    Args:
        n: number of positions N.
        orders: number of orders L.
        temperature: of the softness; smaller is closer to a permutation.
        iterations: of the Sinkhorn normalisation.
        noise: scale of the Gumbel noise.

    Example:
        >>> permutation = LearnedPermutation(4)
        >>> permutation().shape, permutation.eval()().shape
        (torch.Size([1, 4, 4]), torch.Size([1, 4]))
    """

    def __init__(
        self, n: int, orders: int = 1, *, temperature: float = 1.0, iterations: int = 20, noise: float = 1.0
    ) -> None:
        super().__init__()
        if n < 1 or orders < 1:
            raise ValueError(f"n = {n}, orders = {orders}: both must be at least 1")
        self.temperature, self.iterations, self.noise = temperature, iterations, noise
        self.logits = nn.Parameter(torch.zeros(orders, n, n))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Small normal logits: no permutation is preferred, none is exactly tied."""
        nn.init.normal_(self.logits, std=0.01)

    def forward(self) -> Tensor:
        """(L, N, N) matrices in training mode, (L, N) int64 row numbers in evaluation mode."""
        if self.training:
            return gumbel_sinkhorn(self.logits, self.temperature, self.iterations, self.noise)
        return hard_permutation(self.logits)

    def extra_repr(self) -> str:
        """The settings, for printing."""
        orders, n, _ = self.logits.shape
        return f"n={n}, orders={orders}, temperature={self.temperature}, iterations={self.iterations}"
