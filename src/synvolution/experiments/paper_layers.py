"""The layer and the position embedding as the paper computes them, for comparison: its algorithm, torch's GRU."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

import synvolution
from synvolution.nn.kernelution import Kernelution


def paper_algorithm() -> ModuleType | None:
    """The paper's algorithms as printed, from ``benchmarks/`` of a checkout; None in an installed package."""
    path = Path(synvolution.__file__).parents[2] / "benchmarks" / "paper_algorithm.py"
    spec = importlib.util.spec_from_file_location("paper_algorithm", path)
    if not path.exists() or spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class PaperKernelution(Kernelution):
    """Kernelution with one head, its operator computed by the algorithm as printed; without a mask."""

    def __init__(self, algorithm: ModuleType, dim: int, **options: Any) -> None:
        super().__init__(dim, **options)
        self.algorithm = algorithm

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, N, D) → planar (B, N, 2, D)."""
        values = self.value_dropout(self.value(x)).unflatten(-1, (2, self.dim))
        _, phase, lower, upper = self._generate(x, None)
        signal = torch.complex(values[..., 0, :], values[..., 1, :])
        angles = lower[:, 0, 0], upper[:, 0, 0]
        out = self.algorithm.paper_synvolve(signal, *angles, phase[:, 0], torch.zeros_like(phase[:, 0]))
        return torch.stack((out.real, out.imag), -2)


class TorchRecurrentPosition(nn.Module):
    """x + GRU(x) with torch's own GRU."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gru = nn.GRU(dim, dim, num_layers=2, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, N, D) → (B, N, D)."""
        states: Tensor = self.gru(x)[0]
        return x + states
