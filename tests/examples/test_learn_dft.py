"""The example that learns the Fourier transform: it gets there, from pairs alone, and needs torch alone."""

from __future__ import annotations

import math
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import synvolution as sv
from tests.oracles import assert_near

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("transformers", "datasets", "matplotlib", "rich", "tyro", "scipy")


def run(*options: str) -> subprocess.CompletedProcess[str]:
    blocked = (
        f"import sys; sys.modules.update(dict.fromkeys({HEAVY!r})); sys.argv[:] = ['learn_dft.py', *{options!r}]; "
    )
    command = "import runpy; runpy.run_path('examples/learn_dft.py', run_name='__main__')"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", blocked + command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / "learn_dft.py"))


def test_example_learns_and_needs_torch_alone() -> None:
    done = run()
    assert done.returncode == 0, done.stderr
    found = {what: float(value) for what, value in re.findall(r"^(\w+): +‖Φ − F‖ (\S+)", done.stdout, re.MULTILINE)}
    assert found["learned"] < 1e-5
    assert found["exact"] < 1e-12
    fewer = re.findall(r"orders (\d)  ‖Φ − F‖ (\S+)  least (\S+)", done.stdout)
    assert [int(orders) for orders, _, _ in fewer] == [1, 2, 3]
    assert all(float(least) < float(reached) < 4 * float(least) for _, reached, least in fewer)


@pytest.mark.parametrize(("n", "seed"), [(2, 0), (5, 1), (6, 2), (8, 3)])
def test_what_it_learns_is_right_on_new_data(example: dict[str, Any], n: int, seed: int) -> None:
    torch.manual_seed(seed)
    x = torch.randn(n, 4 * n, dtype=torch.complex128)
    op = example["learn"](x, torch.fft.fft(x, dim=0, norm="ortho"), n // 2)
    new = torch.randn(n, 7, dtype=torch.complex128)
    with torch.no_grad():
        assert_near(op @ new, torch.fft.fft(new, dim=0, norm="ortho"), 1e-5)


def test_bound_is_that_of_rank(example: dict[str, Any]) -> None:
    """Zero from the matrix's own order on, and never above the distance to a matrix of that order."""
    op = sv.DHHP.random(8, 2, dtype=torch.float64)
    assert example["bound"](op.dense(), 2) < 1e-12
    assert example["bound"](op.dense(), 1) > 1e-3
    target = sv.DHHP.dft(8, dtype=torch.float64).dense()
    assert example["bound"](target, 2) <= example["distance"](op, target)
    swap = torch.eye(4, dtype=torch.complex128).flip(0)  # both blocks have the singular values 1, 1
    assert math.isclose(example["bound"](swap, 1), math.sqrt(2))


def test_too_small_a_size_is_refused() -> None:
    done = run("--n", "1")
    assert done.returncode == 2
    assert "--n 1: at least 2 is needed" in done.stderr
