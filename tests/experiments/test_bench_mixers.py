"""Measuring the mixers: limits hold, what runs out is reported, exponents are those of the numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synvolution import cli
from synvolution.experiments import bench_mixers
from synvolution.experiments.bench import bench
from synvolution.experiments.bench_mixers import (
    LAWS,
    ROWS,
    STATED,
    Growth,
    MixerOptions,
    faster_than,
    growths,
    lines_of,
    markdown,
    measurements,
    plot,
    read_json,
    sentence_of,
    settings_of,
    slope,
    write_json,
)
from synvolution.experiments.mixer_step import (
    OUT_OF_MEMORY,
    OUT_OF_TIME,
    Measurement,
    Settings,
    _why,
    measure,
    measure_in_child,
    run,
)

TINY = Settings(dim=8, hidden=16, repeats=1)
FOUND = [
    Measurement("fnet", 100, "ok", 1.0, 10 * 2**20),
    Measurement("fnet", 400, "ok", 4.0, 40 * 2**20),
    Measurement("vanilla", 100, "ok", 2.0, 20 * 2**20),
    Measurement("vanilla", 400, "ok", 32.0, 40 * 2**20),
    Measurement("synthesizer", 100, "ok", 3.0, 2**20),
    Measurement("synthesizer", 400, OUT_OF_MEMORY),
]


def test_a_step_in_its_own_process() -> None:
    found = measure_in_child("fnet", 64, TINY)
    assert found.status == "ok"
    assert found.ms is not None
    assert found.ms > 0
    assert found.peak_bytes is not None
    assert 1 <= found.peak_bytes < 2**30


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory here")
def test_out_of_memory_is_reported_and_longer_ones_are_spared() -> None:
    """A matrix of 4096² weights takes 64 MiB, and there are several; the second length would take terabytes."""
    settings = replace(TINY, memory=0.1)
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


def test_lines_json_and_plot(tmp_path: Path) -> None:
    times, memory = lines_of(FOUND, "time"), lines_of(FOUND, "memory")
    assert times[1] == ["vanilla", "2.0", "32.0", "2.00", "2.00 (N²)"]
    assert times[2] == ["synthesizer", "3.0", OUT_OF_MEMORY, "", "2.00 (N²)"]
    assert memory[0] == ["fnet", "10.0", "40.0", "1.00", "1.00 (N)"]
    path = tmp_path / "found.json"
    write_json(path, FOUND, Settings())
    assert read_json(path) == FOUND
    assert json.loads(path.read_text())["settings"]["dim"] == 128
    plot(tmp_path / "found.png", FOUND)
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")
    printed = subprocess.run(
        [sys.executable, "-m", "synvolution.experiments.bench_mixers", str(path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed == markdown(FOUND) + "\n"
    rows = [line for line in printed.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert {line.count("|") for line in rows} == {10}


def test_stated_laws() -> None:
    """Every row has one, and those of the paper's table of complexities are its own."""
    assert set(STATED) == set(ROWS)
    assert {law for both in STATED.values() for law in both} <= set(LAWS)
    assert STATED["vanilla"] == STATED["synthesizer"] == ("N²", "N²")
    assert STATED["linear"] == STATED["cosformer"] == ("N", "N")
    assert STATED["paramixer"] == ("N log² N", "N log² N")
    assert STATED["synvolution"] == ("N log N", "N")
    exponents = [slope([(n, law(n)) for n in bench_mixers.LENGTHS]) for law in LAWS.values()]
    assert exponents == pytest.approx([1.0, 1.12, 1.24, 1.5, 2.0], abs=0.01)


def test_who_is_faster_is_said() -> None:
    kernelution = Measurement("kernelution", 400, "ok", 8.0, 1)
    assert sentence_of([*FOUND, kernelution]) == "Faster than kernelution at N = 400: fnet (2.00×)"
    assert sentence_of([kernelution]) == "Faster than kernelution at N = 400: nobody"
    assert sentence_of(FOUND) == "kernelution was not measured at N = 400"


def test_slow_steps_are_timed_once_and_quick_ones_several_times() -> None:
    assert len(run("none", 16, replace(TINY, repeats=3), limit=None)[0]) == 3
    assert len(run("none", 16, replace(TINY, repeats=3, enough=0.0), limit=None)[0]) == 1


def test_the_gru_alone() -> None:
    assert measure("gru", 16, TINY).status == "ok"


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="lengths are"):
        next(measurements(["fnet"], ()))
    with pytest.raises(ValueError, match="unknown mixer 'lstm'"):
        next(measurements(["lstm"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mixers": ("preformer",)}, "unknown mixer 'preformer': did you mean 'reformer' or 'performer'"),
        ({"mixers": ("xyz",)}, "unknown mixer 'xyz': Mixers: all, kernelution"),
        ({"lengths": (0, 4)}, "--lengths 0 4"),
        ({"memory": 0.0}, "--memory 0.0: expected more than 0"),
        ({"seconds": float("nan")}, "--seconds nan"),
        ({"batch": 0}, "--batch 0"),
        ({"plot": Path("found.txt")}, "--plot found.txt: expected a name that ends in .png"),
        ({"mixers": ("gru",), "position": "none"}, "the row 'gru' is the recurrent position embedding alone"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bench("model", options=MixerOptions(**{"mixers": ("all",), **options}))


def test_mixers_belong_to_the_model(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bench ops --mixers: mixers are compared by synvolution bench model"):
        bench("ops", options=MixerOptions(mixers=("all",)))
    with pytest.raises(ValueError, match="--lengths, --plot without --mixers"):
        bench("model", options=MixerOptions(lengths=(3,), plot=tmp_path / "found.png"))
    with pytest.raises(ValueError, match=r"--plot .*does not exist"):
        bench("model", options=MixerOptions(mixers=("all",), plot=tmp_path / "no" / "found.png"))


def test_without_position_embedding_there_is_no_gru_row() -> None:
    names, lengths, settings = settings_of(MixerOptions(mixers=("all",), position="none"), 3, quick=False)
    assert "gru" not in names
    assert (lengths, settings.position, settings.repeats) == ((1024, 4096, 16384), "none", 3)
    assert "gru" in settings_of(MixerOptions(mixers=("all",)), 3, quick=True)[0]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Table, JSON and picture of real measurements, each in its process."""
    words = "bench model --mixers kernelution gru --quick --lengths 16 40 --json"
    monkeypatch.setattr(sys, "argv", ["synvolution", *words.split(), str(tmp_path / "found.json")])
    cli.main()
    out = capsys.readouterr().out
    assert "4 of 4" in out
    assert "exponents of N" in out
    assert "1.00 (N)" in out
    found = read_json(tmp_path / "found.json")
    assert [(m.mixer, m.length, m.status) for m in found] == [
        (name, length, "ok") for length in (16, 40) for name in ("kernelution", "gru")
    ]
    assert (tmp_path / "found.png").exists()


def test_unknown_mixers_end_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["synvolution", "bench", "model", "--mixers", "fnett"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert "did you mean 'fnet'" in capsys.readouterr().err


def test_an_interrupted_run_keeps_what_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written after each measurement, and shown at the end all the same."""
    path, known = tmp_path / "found.json", iter(FOUND[:1])

    def interrupted(mixer: str, length: int, settings: Settings) -> Measurement:
        for measurement in known:
            return measurement
        assert read_json(path) == FOUND[:1]
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_mixers, "measure_in_child", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bench("model", json=path, options=MixerOptions(mixers=("all",), plot=tmp_path / "own.svg"))
    assert read_json(path) == FOUND[:1]
    assert (tmp_path / "own.svg").exists()
    assert "fnet" in capsys.readouterr().out


def test_a_failure_is_told_in_full(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package's extra stands in brackets, which must not be taken for markup."""
    line = (
        "failed: ImportError: the mixer 'linformer' needs the package linformer: pip install 'synvolution[baselines]'"
    )
    monkeypatch.setattr(bench_mixers, "measure_in_child", lambda mixer, n, settings: Measurement(mixer, n, line))
    bench("model", options=MixerOptions(mixers=("linformer",), lengths=(8,)))
    assert "synvolution[baselines]" in " ".join(capsys.readouterr().out.split())
    assert lines_of([Measurement("linformer", 8, line)], "time") == [["linformer", "failed", "", "N"]]
