"""Gradient descent finds the discrete Fourier transform as a DHHP, from pairs (x, F x) alone. Needs torch; seconds.

python examples/learn_dft.py [--n 8] [--seed 0]

The matrix F is used to report the error, never to learn. On the unitary matrices themselves this loss has no local
minimum but F; with ⌊N/2⌋ orders the angles reach all of them, and no restart was needed: at N = 8 each of the seeds
0 … 49 ended below 1e-6. With fewer orders some block F[:i, i:] has too many singular values (docs/math.md,
Universality), which bounds the error from below. For larger N the smallest of these values is tiny, and the last digits
come slowly: after 2000 iterations (three seeds each) the error was below 1e-4 up to N = 10, below 6e-4 at N = 12 and
about 1e-3 at N = 16.
"""

from __future__ import annotations

import argparse
import math

import torch
from torch import Tensor

import synvolution as sv


def learn(x: Tensor, y: Tensor, orders: int, *, rounds: int = 100, report: Tensor | None = None) -> sv.DHHP:
    """The DHHP of L orders with Φ x ≈ y for pairs x, y (N, M) complex128, by L-BFGS in rounds of 20 iterations.

    With ``report`` (N, N), the error ‖Φ − report‖ is printed on the way.
    """
    start = sv.DHHP.random(len(x), orders, dtype=torch.float64)
    angles = [t.requires_grad_() for t in (start.lower, start.upper, start.diagonal) if t is not None]
    op = sv.DHHP(*angles)
    optimizer = torch.optim.LBFGS(
        angles, history_size=50, line_search_fn="strong_wolfe", tolerance_grad=1e-12, tolerance_change=1e-16
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = (op @ x - y).abs().square().mean()
        value.backward()
        return value

    before, step = math.inf, 0
    while step < rounds and (now := loss().item()) > 1e-14 and now < before:  # until it fits, or no step helps
        if report is not None and step % 2 == 0:
            print(f"  iteration {20 * step:4}  loss {now:.1e}  ‖Φ − F‖ {distance(op, report):.1e}")
        optimizer.step(loss)
        before, step = now, step + 1
    return op


def distance(op: sv.DHHP, matrix: Tensor) -> float:
    """‖Φ − matrix‖, Frobenius."""
    with torch.no_grad():
        return torch.linalg.matrix_norm(op.dense() - matrix).item()


def bound(matrix: Tensor, orders: int) -> float:
    """No DHHP of L orders is nearer than this: its blocks [:i, i:] and [i:, :i] have rank at most L (Eckart, Young)."""
    blocks = [(matrix[:i, i:], matrix[i:, :i]) for i in range(1, len(matrix))]
    left = [sum(torch.linalg.svdvals(b)[orders:].square().sum().item() for b in pair) for pair in blocks]
    return math.sqrt(max(left, default=0.0))


def main() -> None:
    """Learn, compare with the exact construction, and show what fewer orders reach."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=8, help="size N of the transform, at least 2 (default: 8)")
    parser.add_argument("--seed", type=int, default=0, help="of the pairs and the first angles (default: 0)")
    arguments = parser.parse_args()
    n, enough = arguments.n, arguments.n // 2
    if n < 2:
        parser.error(f"--n {n}: at least 2 is needed")
    torch.manual_seed(arguments.seed)
    fourier = torch.fft.fft(torch.eye(n, dtype=torch.complex128), norm="ortho")
    x = torch.randn(n, 4 * n, dtype=torch.complex128)
    y = torch.fft.fft(x, dim=0, norm="ortho")
    print(f"The Fourier transform of size {n} from {4 * n} random pairs, as a DHHP of {enough} orders")
    learned, exact = learn(x, y, enough, report=fourier), sv.DHHP.dft(n, dtype=torch.float64)
    print(f"learned:  ‖Φ − F‖ {distance(learned, fourier):.1e}")
    print(f"exact:    ‖Φ − F‖ {distance(exact, fourier):.1e}  sv.DHHP.dft({n}), by factorisation")
    if enough > 1:
        print("Fewer orders, and the least error that their ranks allow")
    for orders in range(1, enough):
        few = learn(x, y, orders)
        print(f"  orders {orders}  ‖Φ − F‖ {distance(few, fourier):.4f}  least {bound(fourier, orders):.4f}")


if __name__ == "__main__":
    main()
