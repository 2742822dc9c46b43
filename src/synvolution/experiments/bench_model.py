"""A whole training step of a Converter: against the paper's algorithms with torch's GRU, and what the mixer costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from synvolution.experiments.paper_layers import PaperKernelution, TorchRecurrentPosition, paper_algorithm
from synvolution.experiments.timing import NO_GOAL, Goal, Row, compare
from synvolution.nn.block import ConverterBlock, NoMixer
from synvolution.nn.kernelution import Kernelution
from synvolution.nn.norm import ScaleNorm
from synvolution.nn.pooling import Pooling
from synvolution.nn.position import RecurrentPosition

VOCABULARY, CLASSES = 16, 10


class Classifier(nn.Module):
    """Embedding, position, norm, one block, mean, linear: the paper's model, with its parts given."""

    def __init__(self, dim: int, hidden: int, position: nn.Module, mixer: nn.Module) -> None:
        super().__init__()
        self.embedding, self.position, self.norm = nn.Embedding(VOCABULARY, dim), position, ScaleNorm(dim)
        self.block, self.pooling = ConverterBlock(dim, hidden, mixer), Pooling("mean")
        self.head = nn.Linear(dim, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, N) int64 → (B, classes)."""
        mask = torch.ones_like(tokens, dtype=torch.bool)
        x = self.block(self.norm(self.position(self.embedding(tokens))))
        logits: Tensor = self.head(self.pooling(x, mask))
        return logits


def training_step(model: nn.Module, batch: int, n: int) -> Callable[[], object]:
    """Loss, gradients and a step of AdamW on random tokens."""
    tokens, labels = torch.randint(VOCABULARY, (batch, n)), torch.randint(CLASSES, (batch,))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens), labels).backward()
        optimizer.step()

    return step


def rows(repeats: int, quick: bool) -> Iterator[Row]:
    """All rows of ``synvolution bench model``: batch, length, width of the paper's ListOps and long documents."""
    algorithm = paper_algorithm()
    shapes = [(2, 64, 8)] if quick else [(128, 2000, 32), (4, 16384, 128)]
    for batch, n, dim in shapes:
        size, hidden = str((batch, n, dim)), 4 * dim
        ours = training_step(Classifier(dim, hidden, RecurrentPosition(dim), Kernelution(dim)), batch, n)
        if algorithm is not None:
            parts = TorchRecurrentPosition(dim), PaperKernelution(algorithm, dim)
            paper = training_step(Classifier(dim, hidden, *parts), batch, n)
            yield compare("step ÷ paper's algorithms, torch's GRU", size, ours, paper, Goal(0.2), repeats)
        control = training_step(Classifier(dim, hidden, RecurrentPosition(dim), NoMixer(dim)), batch, n)
        yield compare("step ÷ step without mixer", size, ours, control, NO_GOAL, repeats)
