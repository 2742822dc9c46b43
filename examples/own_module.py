"""Kernelution in a module of one's own, in place of nn.MultiheadAttention. Needs torch alone; runs in seconds.

python examples/own_module.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import synvolution as sv


class Encoder(nn.Module):
    """A pre-norm encoder layer; where attention was, positions are mixed by a learned unitary matrix."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mixer = sv.Kernelution(dim, num_heads=4, reach="spread")  # was nn.MultiheadAttention(dim, 4)
        self.out = nn.Linear(2 * dim, dim)  # planar complex (B, N, 2, D) → real (B, N, D)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, N, D) → (B, N, D); mask (B, N) is True where a position is real: the opposite of key_padding_mask."""
        return x + self.out(self.mixer(self.norm(x), mask).flatten(-2))


def main() -> None:
    """Learn to tell at the last position what stood at the first one, on fresh sequences at every step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(2, 32), Encoder(32), Encoder(32), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)
    for step in range(81):
        tokens = torch.randint(0, 2, (64, 16))
        logits = model(tokens)[:, -1, 0]
        loss = nn.functional.binary_cross_entropy_with_logits(logits, tokens[:, 0].float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            right = ((logits > 0) == tokens[:, 0]).float().mean()
            print(f"step {step:2}  loss {loss:.3f}  right {right:.0%}")


if __name__ == "__main__":
    main()
