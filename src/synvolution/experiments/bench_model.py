"""A whole training step of a Converter: against the paper's algorithms with torch's GRU, and what the mixer costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from synvolution.experiments.paper_layers import PaperKernelution, TorchRecurrentPosition, paper_algorithm
from synvolution.experiments.timing import NO_GOAL, Goal, Row, compare
from synvolution.models import ConverterConfig, ConverterForSequenceClassification
from synvolution.nn.block import ConverterBlock, NoMixer
from synvolution.nn.kernelution import Kernelution
from synvolution.nn.norm import ScaleNorm
from synvolution.nn.pooling import Pooling
from synvolution.nn.position import RecurrentPosition
from synvolution.ops import _cpu
from synvolution.recipes import RECIPES
from synvolution.training.memory import keep_memory

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


class Recipe(nn.Module):
    """The model of the ListOps recipe, with its dropout, on whole sequences; with the paper's algorithm if given."""

    def __init__(self, algorithm: ModuleType | None = None) -> None:
        super().__init__()
        options = RECIPES["listops"].model
        sizes: dict[str, Any] = {"vocab_size": VOCABULARY, "num_labels": CLASSES}
        config = ConverterConfig(**asdict(options), **sizes)
        self.model = ConverterForSequenceClassification(config).train()
        if algorithm is None:
            return
        names = ("value_dropout", "eigenvalue_dropout", "eigenvector_dropout")
        rates = {name: getattr(options, name) for name in names}
        self.model.converter.embeddings.position = TorchRecurrentPosition(options.hidden_size)
        for block in self.model.converter.blocks:
            block.mixer = PaperKernelution(algorithm, options.hidden_size, **rates)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, N) int64 → (B, classes)."""
        logits: Tensor = self.model(tokens, torch.ones_like(tokens)).logits
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


def without_kernels(step: Callable[[], object]) -> Callable[[], object]:
    """The same step with plain torch in place of our kernels, as the paper's model is written."""

    def plain() -> None:
        with _cpu.switched_off():
            step()

    return plain


def rows(repeats: int, quick: bool) -> Iterator[Row]:
    """All rows of ``synvolution bench model``: batch, length, width of the paper's ListOps and long documents."""
    algorithm = paper_algorithm()
    shapes = [(2, 64, 8)] if quick else [(128, 2000, 32), (4, 16384, 128)]
    yield from _recipe_rows("listops recipe", algorithm, *shapes[0][:2], repeats)
    if not quick:
        keep_memory()  # as `train` does; from here on, for both sides of each comparison
    yield from _recipe_rows("the same, memory kept", algorithm, *shapes[0][:2], repeats)
    for batch, n, dim in shapes:
        size, hidden = str((batch, n, dim)), 4 * dim
        ours = training_step(Classifier(dim, hidden, RecurrentPosition(dim), Kernelution(dim)), batch, n)
        if algorithm is not None:
            parts = TorchRecurrentPosition(dim), PaperKernelution(algorithm, dim)
            paper = without_kernels(training_step(Classifier(dim, hidden, *parts), batch, n))
            yield compare("no dropout: step ÷ paper's", size, ours, paper, Goal(0.2), repeats)
        control = training_step(Classifier(dim, hidden, RecurrentPosition(dim), NoMixer(dim)), batch, n)
        yield compare("step ÷ step without mixer", size, ours, control, NO_GOAL, repeats)


def _recipe_rows(name: str, algorithm: ModuleType | None, batch: int, n: int, repeats: int) -> Iterator[Row]:
    """The step of the ListOps recipe, dropout and all, against the paper's algorithms with torch's GRU."""
    if algorithm is not None:
        ours = training_step(Recipe(), batch, n)
        paper = without_kernels(training_step(Recipe(algorithm), batch, n))
        size = f"({batch}, {n}, {RECIPES['listops'].model.hidden_size})"
        yield compare(f"{name}: step ÷ paper's", size, ours, paper, Goal(0.2), repeats)
