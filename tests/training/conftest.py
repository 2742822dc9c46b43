"""Tiny data and recipes for training tests; one thread, and a cache of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from synvolution.data.base import DataOptions, Prepared, prepare
from synvolution.models.options import ModelOptions
from synvolution.recipes import RECIPES, Recipe
from synvolution.training.options import TrainingOptions


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def prepared(cache: Path) -> Prepared:
    return prepare("listops-quick", options=DataOptions(samples=240), cache=cache)


def small(**training: Any) -> Recipe:
    """A recipe of seconds: 200 rows, a tiny model."""
    model = ModelOptions(hidden_size=8, intermediate_size=16, num_heads=2, reach="spread", pooling="ends")
    options = {"epochs": 2, "batch_size": 16, "learning_rate": 0.01, "log_every": 2, "patience": 0, **training}
    data = DataOptions(samples=240)
    return replace(RECIPES["listops-quick"], model=model, data=data, training=TrainingOptions(**options))
