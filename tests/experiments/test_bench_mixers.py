"""Measuring the mixers: limits hold, what runs out is reported, exponents are those of the numbers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from synvolution.experiments.bench_mixers import (
    OUT_OF_MEMORY,
    OUT_OF_TIME,
    Growth,
    Measurement,
    Settings,
    _why,
    faster_than,
    growths,
    measure_in_child,
    measurements,
    plot,
    quick,
    read_json,
    table_of,
    write_json,
)

FOUND = [
    Measurement("fnet", 100, "ok", 1.0, 10 * 2**20),
    Measurement("fnet", 400, "ok", 4.0, 40 * 2**20),
    Measurement("vanilla", 100, "ok", 2.0, 20 * 2**20),
    Measurement("vanilla", 400, "ok", 32.0, 40 * 2**20),
    Measurement("synthesizer", 100, "ok", 3.0, 2**20),
    Measurement("synthesizer", 400, OUT_OF_MEMORY),
]


def test_a_step_in_its_own_process() -> None:
    found = measure_in_child("fnet", 64, quick(Settings()))
    assert found.status == "ok"
    assert found.ms is not None
    assert found.ms > 0
    assert found.peak_bytes is not None
    assert 1 <= found.peak_bytes < 2**30


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory here")
def test_out_of_memory_is_reported_and_longer_ones_are_spared() -> None:
    """A matrix of 4096² weights takes 64 MiB, and there are several; the second length would take terabytes."""
    settings = Settings(dim=8, hidden=16, repeats=1, memory=0.1)
    found = list(measurements(["synthesizer"], (10**6, 4096), settings))
    assert found == [Measurement("synthesizer", n, OUT_OF_MEMORY) for n in (4096, 10**6)]


def test_out_of_time_is_reported() -> None:
    settings = Settings(seconds=0.2)
    assert measure_in_child("none", 64, settings) == Measurement("none", 64, OUT_OF_TIME)


def test_other_failures_show_their_error() -> None:
    assert _why(1, "Traceback\nValueError: 3 heads\n") == "failed: ValueError: 3 heads"
    assert _why(3, "") == "failed: exit code 3"
    assert _why(-9, "") == OUT_OF_MEMORY
    assert _why(-6, "terminate called after throwing an instance of 'std::bad_alloc'") == OUT_OF_MEMORY


def test_growth() -> None:
    fnet, vanilla, synthesizer = growths(FOUND)
    assert (fnet.time, fnet.memory) == (pytest.approx(1), pytest.approx(1))
    assert (vanilla.time, vanilla.memory) == (pytest.approx(2), pytest.approx(0.5))
    assert synthesizer == Growth("synthesizer", None, None)


def test_faster_than() -> None:
    assert faster_than("vanilla", 400, FOUND) == {"fnet": 8.0}
    assert faster_than("fnet", 400, FOUND) == {}
    assert faster_than("synthesizer", 400, FOUND) == {}


def test_table_json_and_plot(tmp_path: Path) -> None:
    rows = table_of(FOUND)
    assert rows.row_count == 3
    cells = [list(column.cells) for column in rows.columns]
    assert [column[2] for column in cells] == ["synthesizer", "3.0", OUT_OF_MEMORY, "", "1.0", OUT_OF_MEMORY, ""]
    assert cells[3][:2] == ["N^1.00", "N^2.00"]
    path = tmp_path / "found.json"
    write_json(path, FOUND, Settings())
    assert read_json(path) == FOUND
    assert json.loads(path.read_text())["settings"]["dim"] == 128
    plot(tmp_path / "found.png", FOUND)
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="unknown mixer 'lstm': choose among kernelution"):
        next(measurements(["lstm"]))
    with pytest.raises(ValueError, match="lengths are"):
        next(measurements(["fnet"], ()))
