"""Seeds every test and offers random operands."""

from __future__ import annotations

import pytest
import torch


def pytest_configure(config: pytest.Config) -> None:
    """Checks at full size or on real data: ``pytest -m slow``."""
    config.addinivalue_line("markers", "slow: takes minutes or needs real data; run with pytest -m slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless -m asks for them."""
    if not config.getoption("-m"):
        chosen = [item for item in items if "slow" not in item.keywords]
        config.hook.pytest_deselected(items=[item for item in items if "slow" in item.keywords])
        items[:] = chosen


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
