"""The benchmarks run, report what they measured, and judge it rightly; no test asserts a time."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest
import torch

from synvolution.cli import main
from synvolution.experiments import bench_ops, peak_memory, roofline
from synvolution.experiments.bench import SUITES, bench
from synvolution.experiments.paper_layers import PaperKernelution, paper_algorithm
from synvolution.experiments.timing import Goal, compare, medians, milliseconds, quantity
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


@pytest.mark.parametrize("device", ["cuda:99", "mps:9", "meta", "abacus"])
def test_a_device_that_is_not_there(
    device: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["synvolution", "bench", "ops", "--quick", "--device", device])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert f"--device {device}" in capsys.readouterr().err


def test_cuda_is_timed_with_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a device: the order of calls, and that the events' time is what counts."""
    calls: list[str] = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            calls.append("record")

        def elapsed_time(self, end: object) -> float:
            return 42.0

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: calls.append("synchronize"))
    monkeypatch.setattr(torch, "get_default_device", lambda: torch.device("cuda"))
    assert milliseconds(lambda: calls.append("call")) == 42
    assert calls == ["synchronize", "record", "call", "record", "synchronize"]


def test_roofline_stands_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")
    assert roofline.table() in text, "print it again: python -m synvolution.experiments.roofline"


def test_roofline_grows_with_the_work() -> None:
    for work in (roofline.forward, roofline.backward):
        one, two = work(1, 4097, 64), work(2, 4097, 64)
        assert (two.bytes, two.flops, two.trips) == (2 * one.bytes, 2 * one.flops, one.trips)
        assert work(1, 8193, 64).trips == 2 * one.trips
        assert one.bytes >= 2 * 4097 * 2 * 64 * 4, "less than reading and writing once"


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 1 run"):
        bench(repeats=0)
    with pytest.raises(ValueError, match="does not exist"):
        bench(json=tmp_path / "no" / "where.json")
