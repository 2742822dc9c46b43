"""The GRU layer as a loop over steps: the definition, and what runs where there are no kernels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def gru_reference(
    x: Tensor,
    h0: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    batch_first: bool = True,
) -> tuple[Tensor, Tensor]:
    """One GRU layer, step by step, in plain torch; arguments and results as in `synvolution.ops.gru.gru`."""
    if not batch_first:
        x = x.transpose(0, 1)  # (B, N, D)
    if mask is not None:
        # Not only the result: a NaN in the padding must not reach the gradients either.
        x = x.masked_fill(~mask[..., None], 0)
    projected = F.linear(x, w_ih, b_ih)  # (B, N, 3H)
    h, outputs = h0, []
    for step in range(x.shape[1]):
        reset_x, update_x, new_x = projected[:, step].chunk(3, -1)
        reset_h, update_h, new_h = F.linear(h, w_hh, b_hh).chunk(3, -1)
        reset, update = torch.sigmoid(reset_x + reset_h), torch.sigmoid(update_x + update_h)
        new = torch.tanh(new_x + reset * new_h)
        following = new + update * (h - new)
        if mask is None:
            h = following
            outputs.append(h)
        else:
            real = mask[:, step, None]
            h = torch.where(real, following, h)
            outputs.append(h.masked_fill(~real, 0))
    return torch.stack(outputs, 1 if batch_first else 0), h
