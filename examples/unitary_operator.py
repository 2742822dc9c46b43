"""The unitary operator on its own: apply, invert, materialise, factorise, differentiate. Runs in seconds.

python examples/unitary_operator.py [--picture FILE.png]
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch

import synvolution as sv


def show(what: str, value: float) -> None:
    """One line of the report."""
    print(f"  {what:66} {value:.1e}")


def exactness() -> None:
    """Unitarity at a length where no dense matrix would fit."""
    n = 1_000_000
    op, x = sv.DHHP.random(n), torch.randn(n, 4, dtype=torch.complex64)
    y = op @ x
    print(f"A random DHHP of size {n:,} x {n:,}, applied to 4 columns in float32")
    show(
        "| norm of output / norm of input - 1 |",
        abs((y.to(torch.complex128).norm() / x.to(torch.complex128).norm()).item() - 1),
    )
    show("distance of op.H @ (op @ x) from x, relative", ((op.H @ y - x).norm() / x.norm()).item())


def factorisation() -> None:
    """Known transforms as chains of rotations."""
    print("Classical transforms of size 64 as DHHP, largest error of the matrix in float64")
    x = torch.eye(64, dtype=torch.float64)
    show("discrete Fourier transform", _error(sv.DHHP.dft(64, dtype=x.dtype), torch.fft.fft(x, norm="ortho")))
    u = torch.linalg.qr(torch.randn(64, 64, dtype=torch.complex128)).Q
    show("a random unitary matrix", _error(sv.DHHP.from_unitary(u), u))
    m = torch.randn(64, 64, dtype=torch.complex128)
    show("any matrix, as LHHP (triangle times rotations)", (sv.LHHP.from_matrix(m).dense() - m).abs().max().item())


def _error(op: sv.DHHP, matrix: torch.Tensor) -> float:
    return (op.dense() - matrix).abs().max().item()


def padding() -> None:
    """A padded batch gives what each sequence gives alone."""
    v, phase = torch.randn(2, 100, 2, 8), torch.randn(2, 100)
    lower, upper = torch.randn(2, 99, 3), torch.randn(2, 99, 3)
    mask = torch.arange(100) < torch.tensor([[100], [37]])
    together = sv.synvolve(v, lower, upper, phase, mask)
    alone = sv.synvolve(v[1:, :37], lower[1:, :36], upper[1:, :36], phase[1:, :37])
    print("Synvolution of two sequences of lengths 100 and 37 in one batch")
    show("difference from each sequence alone", (together[1, :37] - alone[0]).abs().max().item())


def picture(path: Path) -> None:
    """Draw |Φ| for growing angles: from local to global mixing, and the Fourier transform as a member."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    n = 64
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.5), layout="constrained")
    for axis, gamma in zip(axes, (0.6, 1.6, 2.8), strict=False):
        angles = 2 * math.pi * torch.rand(2, 1, n - 1, 3)
        angles[..., 2] = gamma + 0.2 * torch.randn(2, 1, n - 1)
        axis.imshow(sv.DHHP(angles[0], angles[1]).dense().abs().clamp_min(1e-3).log10(), cmap="magma", vmin=-3, vmax=0)
        axis.set_title(f"one order, γ ≈ {gamma} rad")
    image = axes[3].imshow(sv.DHHP.dft(n).dense().real, cmap="RdBu", vmin=-1 / 8, vmax=1 / 8)
    axes[3].set_title("32 orders: the DFT (real part)")
    figure.colorbar(axes[0].images[0], ax=list(axes[:3]), label="log₁₀ |Φ|", shrink=0.8)
    figure.colorbar(image, ax=axes[3], shrink=0.8)
    for axis in axes:
        axis.set_xlabel("input position")
    axes[0].set_ylabel("output position")
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, help="also draw the operator into this PNG (needs matplotlib)")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    exactness()
    factorisation()
    padding()
    if arguments.picture:
        picture(arguments.picture)


if __name__ == "__main__":
    main()
