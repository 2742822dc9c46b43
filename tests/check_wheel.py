"""Checks an installed wheel: the compiled kernels are in it, run, and equal the definition. Without torch: numpy alone.

With ``--torch`` also the package itself: its backend, and the operator against the loop.
"""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np


def load_kernels() -> Any:
    """The extension module by its file: importing the package would need torch."""
    folder = Path(sysconfig.get_path("platlib")) / "synvolution"
    (path,) = [*folder.glob("_kernels*.so"), *folder.glob("_kernels*.pyd")]
    spec = importlib.util.spec_from_file_location("_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lower_chain(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """The chain G_{N−2} … G_0 as a loop; x (N, D) complex, angles (N−1, 3)."""
    x = x.copy()
    for j, (alpha, beta, gamma) in enumerate(angles):
        a = np.exp(-0.5j * (alpha + beta)) * np.cos(gamma / 2)
        b = -np.exp(0.5j * (alpha - beta)) * np.sin(gamma / 2)
        x[j : j + 2] = np.array([[a, b], [-np.conj(b), np.conj(a)]]) @ x[j : j + 2]
    return x


def check_kernels(kernels: Any) -> None:
    """Every instruction set that this machine has, against the loop."""
    chance = np.random.default_rng(0)
    x = np.ascontiguousarray(chance.standard_normal((1, 33, 2, 7)))
    angles = np.ascontiguousarray(chance.standard_normal((1, 32, 3)))
    expected = lower_chain(x[0, :, 0] + 1j * x[0, :, 1], angles[0])
    for name in kernels.supported_isas():
        kernels.set_isa(name)
        y = np.full_like(x, np.nan)
        kernels.chain_forward_float64(1, 33, 7, 1, False, x.ctypes.data, angles.ctypes.data, y.ctypes.data)
        difference = np.abs(y[0, :, 0] + 1j * y[0, :, 1] - expected).max()
        print(f"{name}: off by {difference:.1e}, threads: {kernels.has_openmp()}")
        assert difference < 1e-12


def check_package() -> None:
    """The package uses the kernels, and they equal its definition."""
    import torch

    import synvolution as sv
    from synvolution.info import describe

    facts = describe()
    print(*(f"{name:12} {value}" for name, value in facts.items()), sep="\n")
    assert "compiled kernels" in facts["backend"]
    assert "tests" not in str(Path(sv.__file__).parent)
    v, phase = torch.randn(2, 50, 2, 8), torch.randn(2, 50)
    lower, upper = torch.randn(2, 49, 3), torch.randn(2, 49, 3)
    found, expected = (sv.synvolve(v, lower, upper, phase, backend=name) for name in ("cpp", "loop"))
    assert (found - expected).abs().max() < 1e-5


if __name__ == "__main__":
    check_kernels(load_kernels())
    if "--torch" in sys.argv:
        check_package()
    print("the wheel works")
