"""GRU layers by torch's own library call, which is cuDNN on CUDA devices (MIOpen on ROCm), with a mask for padding.

The library knows no mask. Real steps are brought to the front of each row, where what comes after them cannot change
them; whatever is computed there is set to zero, and the rows are brought back. That serves padding on either side and
holes alike, without a loop over steps and without asking the device for lengths. The call works on any device.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def gru_library(
    x: Tensor,
    hx: Tensor,
    weights: Sequence[Sequence[Tensor]],
    mask: Tensor | None = None,
    *,
    dropout: float = 0.0,
    training: bool = False,
) -> tuple[Tensor, Tensor]:
    """All layers of a GRU.

    Args:
        x: (B, N, D).
        hx: initial states (layers, B, H).
        weights: of each layer w_ih (3H, D), w_hh (3H, H), and the biases (3H) if there are any.
        mask: (B, N) bool, True at real steps; None: all are.
        dropout: rate between layers, while ``training``.

    Returns:
        output (B, N, H), zero at padded steps, and the states after each row's last real step (layers, B, H).

    Example:
        >>> weights = [(torch.randn(12, 3), torch.randn(12, 4))]
        >>> mask = torch.tensor([[False, True, True], [True, False, False]])
        >>> output, h_n = gru_library(torch.randn(2, 3, 3), torch.zeros(1, 2, 4), weights, mask)
        >>> torch.equal(output[0, 2], h_n[0, 0]), bool(output[1, 1:].any())
        (True, False)
    """
    if mask is None:
        flat = [w for layer in weights for w in layer]
        return _call(x, hx, flat, len(weights), dropout, training)
    order = torch.argsort(~mask, dim=1, stable=True)  # real steps first, as they come
    back = torch.argsort(order, dim=1)
    lengths = mask.sum(1, keepdim=True)
    steps = torch.arange(mask.shape[1], device=mask.device)
    real = steps < lengths  # (B, N)
    # not only the result: a NaN in the padding must not reach the gradients either
    x = _rows(x.masked_fill(~mask[..., None], 0), order)
    states = []
    for layer, (start, own) in enumerate(zip(hx, weights, strict=True)):
        if layer > 0 and dropout > 0:
            x = F.dropout(x, dropout, training)
        x = _call(x, start[None].contiguous(), list(own), 1, 0.0, training)[0].masked_fill(~real[..., None], 0)
        last = _rows(x, (lengths - 1).clamp_min(0))[:, 0]
        states.append(torch.where(lengths > 0, last, start))
    return _rows(x, back), torch.stack(states)


def _call(x: Tensor, hx: Tensor, weights: list[Tensor], layers: int, dropout: float, training: bool) -> tuple:
    biases = len(weights) == 4 * layers
    return torch._VF.gru(x, hx, weights, biases, layers, dropout, training, False, True)


def _rows(x: Tensor, index: Tensor) -> Tensor:
    """x (B, N, D) at steps (B, M) → (B, M, D)."""
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))
