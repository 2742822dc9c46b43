"""A drop-in for `torch.nn.GRU` that is fast on the CPU and knows padding."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from synvolution.ops._gru_library import gru_library
from synvolution.ops.gru import gru

#: Types that are computed in float32.
HALVES = (torch.float16, torch.bfloat16)


class GRU(torch.nn.Module):
    """Gated recurrent unit over a sequence: `torch.nn.GRU` with a mask and with fast CPU kernels.

    Same arguments (unidirectional, without projection), parameter names, initialisation and `state_dict`. It is not a
    subclass of `torch.nn.GRU`: `torch.compile` refuses those.

    Example:
        >>> layer = GRU(16, 32, num_layers=2, batch_first=True)
        >>> output, h_n = layer(torch.randn(4, 100, 16))
        >>> output.shape, h_n.shape
        (torch.Size([4, 100, 32]), torch.Size([2, 4, 32]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if bidirectional:
            raise ValueError("bidirectional=True: this GRU has one direction; use torch.nn.GRU")
        if proj_size != 0:
            raise ValueError(f"proj_size={proj_size}: a GRU has no output projection; leave it 0")
        if input_size < 1 or hidden_size < 1 or num_layers < 1:
            sizes = f"input_size={input_size}, hidden_size={hidden_size}, num_layers={num_layers}"
            raise ValueError(f"{sizes}: expected at least 1 of each")
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout={dropout}: expected a probability, from 0 to 1")
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else hidden_size
            for name, shape in self._parameter_shapes(layer, inputs).items():
                self.register_parameter(name, torch.nn.Parameter(torch.empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def _parameter_shapes(self, layer: int, inputs: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of a layer's parameters, in the order of `torch.nn.GRU`"""
        gates = 3 * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            f"weight_ih_l{layer}": (gates, inputs),
            f"weight_hh_l{layer}": (gates, self.hidden_size),
        }
        return shapes | {f"bias_{side}_l{layer}": (gates,) for side in ("ih", "hh") if self.bias}

    def reset_parameters(self) -> None:
        """All uniform in +-1/sqrt(H), as in `torch.nn.GRU`."""
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -(self.hidden_size**-0.5), self.hidden_size**-0.5)

    def flatten_parameters(self) -> None:
        """Nothing to do; here for code that calls it on any recurrent layer."""

    def extra_repr(self) -> str:
        """The settings, for printing."""
        text = f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"
        return f"{text}, bias={self.bias}, batch_first={self.batch_first}, dropout={self.dropout}"

    def forward(self, input: Tensor, hx: Tensor | None = None, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run all layers.

        Args:
            input: (B, N, D) if `batch_first`, else (N, B, D); or (N, D), one sequence.
            hx: initial state (num_layers, B, H), or (num_layers, H) for one sequence; None: zero.
            mask: (B, N) bool, True at real steps, or (N) for one sequence; None: all are. The state passes a padded
                step unchanged, its output is zero, and what stands there in `input` does not matter.

        Returns:
            output (B, N, H), (N, B, H) or (N, H), and h_n, shaped like `hx`: the state after each row's last real step.
        """
        if isinstance(input, PackedSequence):
            raise TypeError("PackedSequence: pass the padded tensor and mask=(B, N), True at real steps, instead")
        single = input.dim() == 2
        if single:
            axis = 0 if self.batch_first else 1
            input, mask = input.unsqueeze(axis), None if mask is None else mask.unsqueeze(0)
            hx = None if hx is None else hx.unsqueeze(1)
        output, h_n = self._layers(input, hx, mask)
        return (output.squeeze(axis), h_n.squeeze(1)) if single else (output, h_n)

    def _layers(self, x: Tensor, hx: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """(B, N, D) or (N, B, D) -> output, h_n (num_layers, B, H)"""
        if x.dim() != 3 or x.shape[2] != self.input_size:
            raise ValueError(f"input of shape {tuple(x.shape)}: expected two or three axes, the last {self.input_size}")
        own = next(self.parameters()).dtype
        dtype = torch.float32 if own in HALVES else own
        if x.dtype in HALVES:  # of such a module, or as autocast makes them; the recurrence wants more digits
            x = x.to(dtype)
        batch = x.shape[0 if self.batch_first else 1]
        if hx is None:
            hx = x.new_zeros(self.num_layers, batch, self.hidden_size)
        elif hx.shape != (self.num_layers, batch, self.hidden_size):
            expected = (self.num_layers, batch, self.hidden_size)
            raise ValueError(f"hx of shape {tuple(hx.shape)}: expected (layers, B, H) = {expected}")
        elif hx.dtype in HALVES:
            hx = hx.to(dtype)
        if x.is_cuda:
            output, h_n = self._library(x, hx, mask, dtype)
            return (output.to(own), h_n.to(own)) if own in HALVES else (output, h_n)
        states = []
        for layer in range(self.num_layers):
            if layer > 0 and self.dropout > 0:
                x = F.dropout(x, self.dropout, self.training)
            x, state = gru(x, hx[layer], *self._weights(layer, dtype), mask, batch_first=self.batch_first)
            states.append(state)
        h_n = torch.stack(states)
        return (x.to(own), h_n.to(own)) if own in HALVES else (x, h_n)

    def _library(self, x: Tensor, hx: Tensor, mask: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """torch's own layers, on CUDA devices cuDNN's; in full precision under autocast as well"""
        sequence = x if self.batch_first else x.transpose(0, 1)
        if mask is not None and (mask.shape != sequence.shape[:2] or mask.dtype != torch.bool):
            raise ValueError(f"mask of shape {tuple(mask.shape)}: expected bool {tuple(sequence.shape[:2])} for (B, N)")
        weights = [[w for w in self._weights(k, dtype) if w is not None] for k in range(self.num_layers)]
        with torch.autocast(x.device.type, enabled=False):
            output, h_n = gru_library(sequence, hx, weights, mask, dropout=self.dropout, training=self.training)
        return output if self.batch_first else output.transpose(0, 1), h_n

    def _weights(self, layer: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """w_ih, w_hh, b_ih and b_hh of a layer"""
        w_ih, w_hh = (getattr(self, f"weight_{side}_l{layer}").to(dtype) for side in ("ih", "hh"))
        if not self.bias:
            return w_ih, w_hh, None, None
        b_ih, b_hh = (getattr(self, f"bias_{side}_l{layer}").to(dtype) for side in ("ih", "hh"))
        return w_ih, w_hh, b_ih, b_hh
