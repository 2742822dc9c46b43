"""Each mixer learns what needs mixing, and the controls fail where they must.

Two of a sequence's tokens are marked. Task "same": do they carry the same bit? An exclusive or of two positions: the
mean of anything computed position by position cannot tell. Task "order": which of the two marks comes first, without
position embedding? A mixer that treats all positions alike cannot tell.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from synvolution.nn import MIXERS, Pooling, ScaleNorm, block_around, build_mixer
from tests.nn.mixers.small import OPTIONS

DIM, HIDDEN, HEADS, BATCH = 16, 32, 2, 64
LEVEL, CHANCE = 0.85, 0.6
#: Know the order of positions by themselves. (Paramixer does not quite: its links go round in a circle.)
ORDERED = ["kernelution", "synvolution", "linformer", "synthesizer", "nystromformer", "fnet", "s4d"]
#: Permute the input, and the output is permuted.
ALIKE = ["none", "vanilla", "linear", "performer", "luna"]


class Classifier(nn.Module):
    """Embedding, one block, mean, linear: whatever the mixer does not do is additive over positions."""

    def __init__(self, name: str, length: int) -> None:
        super().__init__()
        mixer = build_mixer(name, DIM, num_heads=HEADS, max_length=length, **OPTIONS.get(name, {}))
        self.embedding, self.norm = nn.Embedding(4, DIM), ScaleNorm(DIM)
        self.block, self.pooling = block_around(mixer, DIM, HIDDEN), Pooling("mean")
        self.head = nn.Linear(DIM, 2)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        logits: Tensor = self.head(self.pooling(self.block(self.norm(self.embedding(tokens)), mask), mask))
        return logits


def samples(task: str, count: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens (B, N): bits, or 2 + bit where marked; mask; labels (B,). Half to all of the positions are real."""
    tokens = torch.randint(2, (count, length), generator=generator)
    mask = torch.arange(length) < torch.randint(length // 2, length + 1, (count, 1), generator=generator)
    marked = torch.rand(count, length, generator=generator).masked_fill(~mask, -1).topk(2, 1).indices
    if task == "same":
        bits = torch.randint(2, (count, 2), generator=generator)
        return tokens.scatter(1, marked, 2 + bits), mask, (bits[:, 0] == bits[:, 1]).long()
    tokens = tokens.scatter(1, marked, torch.tensor([2, 3]).expand(count, 2))
    return tokens, mask, (marked[:, 0] < marked[:, 1]).long()


def accuracy_after(
    name: str, task: str, *, steps: int, level: float = 1.0, length: int = 16, seed: int = 0
) -> tuple[float, int]:
    """Train until the accuracy on new samples reaches the level, or for so many steps; accuracy and steps taken."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Classifier(name, length)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    accuracy = 0.0
    for step in range(1, steps + 1):
        tokens, mask, labels = samples(task, BATCH, length, generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens, mask), labels).backward()
        optimizer.step()
        if step % 25 == 0:
            model.eval()
            tokens, mask, labels = samples(task, 500, length, generator)
            with torch.no_grad():
                accuracy = (model(tokens, mask).argmax(1) == labels).float().mean().item()
            model.train()
            if accuracy >= level:
                break
    return accuracy, step


@pytest.mark.parametrize("name", [name for name in MIXERS if name != "none"])
def test_mixers_learn_what_needs_mixing(name: str) -> None:
    accuracy, _ = accuracy_after(name, "same", steps=800, level=LEVEL)
    assert accuracy >= LEVEL


def test_the_control_does_not() -> None:
    """Nor could it ever: a sum over positions gets three of four cases right at best."""
    accuracy, _ = accuracy_after("none", "same", steps=300)
    assert accuracy <= 0.75


@pytest.mark.parametrize("name", ORDERED)
def test_ordered_mixers_learn_order(name: str) -> None:
    accuracy, _ = accuracy_after(name, "order", steps=800, level=LEVEL)
    assert accuracy >= LEVEL


@pytest.mark.parametrize("name", ALIKE)
def test_the_others_need_a_position_embedding(name: str) -> None:
    accuracy, _ = accuracy_after(name, "order", steps=100)
    assert accuracy <= CHANCE


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", [name for name in MIXERS if name != "none"])
def test_mixers_learn_from_any_start(name: str, seed: int) -> None:
    accuracy, _ = accuracy_after(name, "same", steps=4000, level=0.97, length=24, seed=seed)
    assert accuracy >= 0.97
