"""The benchmarks run, report what they measured, and judge it rightly; no test asserts a time."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest
import torch

from synvolution.experiments import bench_ops, peak_memory
from synvolution.experiments.bench import SUITES, bench
from synvolution.experiments.paper_layers import PaperKernelution, paper_algorithm
from synvolution.experiments.timing import Goal, compare, medians, quantity
from synvolution.nn.kernelution import Kernelution
from synvolution.ops import _cpu


@pytest.mark.parametrize("what", SUITES)
def test_quick_suite(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "bench.json"
    bench(what, repeats=1, quick=True, json=target)  # type: ignore[arg-type]
    found = json.loads(target.read_text(encoding="utf-8"))
    assert found["machine"]["torch"] == torch.__version__
    assert found["rows"]
    for row in found["rows"]:  # a busy machine may even make the exponent of time negative
        assert math.isfinite(row["value"]), row
        assert row["met"] is None, row
        assert all(row[side] is None or row[side] > 0 for side in ("ours_ms", "other_ms")), row
    assert "medians of 1" in capsys.readouterr().out


def test_paper_algorithm_is_found_in_a_checkout() -> None:
    module = paper_algorithm()
    assert module is not None
    grads = bench_ops.paper_step(module, (1, 9, 2))()
    assert len(grads) == 5  # type: ignore[arg-type]


def test_paper_layer_has_the_parameters_of_ours() -> None:
    """So that the comparison is of algorithms alone."""
    module = paper_algorithm()
    assert module is not None
    paper, ours = PaperKernelution(module, 8), Kernelution(8)
    paper.load_state_dict(ours.state_dict())
    x = torch.randn(2, 20, 8)
    assert paper(x).shape == ours(x).shape
    assert not torch.allclose(paper(x), ours(x))  # it loses rows


def test_goals() -> None:
    assert Goal(1.5).met(1.5)
    assert not Goal(1.5).met(1.6)
    assert Goal(30, at_least=True).met(31)
    assert not Goal(30, at_least=True).met(29)
    assert str(Goal(30, at_least=True)) == "≥ 30"
    assert quantity("x", "", 2.0, "", Goal(1.0)).met is False
    assert quantity("x", "", 2.0, "").met is None


def test_ratio_points_the_right_way() -> None:
    def quick() -> None:
        time.sleep(0.001)

    def slow() -> None:
        time.sleep(0.05)

    assert compare("", "", quick, slow, Goal(1.0), repeats=3).value < 1
    assert compare("", "", quick, slow, Goal(1.0, at_least=True), repeats=3).value > 1


def test_medians_ignore_one_bad_run() -> None:
    calls = iter([0.0, 0.0, 0.2, 0.0])
    (found,) = medians(3, lambda: time.sleep(next(calls)))
    assert found < 150


def test_peak_memory_counts_what_is_allocated() -> None:
    """Output, gradient and working space: more than one input, and with the kernels far less than the scan needs."""
    found = peak_memory.measure_in_child(1, 65_536, 64)
    assert 1.5 < found["tensors"] < (8 if _cpu.kernels else 100)
    with pytest.raises(RuntimeError, match="failed"):
        peak_memory.measure_in_child(1, 0, 64)


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 1 run"):
        bench(repeats=0)
    with pytest.raises(ValueError, match="does not exist"):
        bench(json=tmp_path / "no" / "where.json")
