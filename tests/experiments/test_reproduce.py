"""The grid of runs behind the paper's tables: what it holds, how a run of it ends, and the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from datasets import Dataset
from rich.console import Console

from synvolution.cli import main
from synvolution.data.base import Prepared, prepare
from synvolution.experiments import cell as cell_module
from synvolution.experiments.cell import NotHere, run_cell, with_batch, with_steps, with_validations
from synvolution.experiments.cell_process import run_apart
from synvolution.experiments.grid import (
    ABLATIONS,
    CONTROLS,
    GRID_ROWS,
    GRID_TASKS,
    TABLES,
    Budget,
    Cell,
    cells,
    origin_of,
    recipe_of,
)
from synvolution.experiments.outcomes import Outcome, outcome_path, read_outcome, read_outcomes
from synvolution.experiments.pace import seconds_per_step
from synvolution.experiments.published import published
from synvolution.experiments.relatives import MADE
from synvolution.nn.mixers import MIXERS
from synvolution.recipes import RECIPES
from synvolution.training.run import build_model, run

FIRST = Cell("lra", "text-made", "none", 0, "quick")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNVOLUTION_CACHE", str(tmp_path / "cache"))


def quiet() -> Console:
    return Console(quiet=True)


def command(monkeypatch: pytest.MonkeyPatch, *arguments: Any) -> int:
    monkeypatch.setattr("sys.argv", ["synvolution", "reproduce", *map(str, arguments)])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize("budget", ["quick", "cpu", "full"])
def test_every_cell_has_a_recipe(budget: Budget) -> None:
    for cell in cells(TABLES, budget, seeds=(3,)):
        recipe = recipe_of(cell)
        recipe.model.check()
        assert recipe.training.seed == 3
        assert (recipe.task is None) == GRID_TASKS[budget][cell.table][cell.task].own


def test_the_full_grid_has_the_rows_and_columns_of_the_paper() -> None:
    for name in TABLES:
        table = published().accuracy[name]
        assert list(GRID_TASKS["full"][name]) == list(table.tasks)
        assert {row.row for row in table.rows} <= set(GRID_ROWS["full"][name])


def test_the_full_grid_is_the_papers_settings() -> None:
    for name in ("lra", "longdoc", "dna"):
        for cell in cells([name], "full", rows=["kernelution"]):
            recipe, recipe_as_named = recipe_of(cell), RECIPES[cell.task]
            assert (recipe.model, recipe.training) == (recipe_as_named.model, recipe_as_named.training)


def test_an_ablation_changes_one_thing() -> None:
    whole = asdict(recipe_of(Cell("ablations", "listops", "kernelution", 0, "full")).model)
    for row in ABLATIONS:
        other = asdict(recipe_of(Cell("ablations", "listops", row, 0, "full")).model)
        assert sum(other[name] != whole[name] for name in whole) == (row != "kernelution")


def test_a_control_is_its_ablation_without_mixer() -> None:
    nope, control = (recipe_of(Cell("ablations", "listops", row, 0, "full")) for row in ("nope", "nope-none"))
    assert control == replace(nope, model=replace(nope.model, mixer="none"))


def test_all_rows_of_a_cpu_table_have_the_same_sizes() -> None:
    sizes = ("hidden_size", "intermediate_size", "num_layers", "num_heads", "position", "pooling")
    rows = [row for row in GRID_ROWS["cpu"]["lra"] if row in MIXERS]
    models = [recipe_of(Cell("lra", "image", row, 0, "cpu")).model for row in rows]
    assert len({tuple(getattr(model, name) for name in sizes) for model in models}) == 1


@pytest.mark.parametrize("name", MADE)
def test_made_data_can_be_trained_on(name: str, tmp_path: Path) -> None:
    table = next(table for table in ("lra", "longdoc", "dna") if name in GRID_TASKS["quick"][table])
    recipe = recipe_of(Cell(table, name, "kernelution", 0, "quick"))
    folder = tmp_path / "made"
    path = origin_of(Cell(table, name, "kernelution", 0, "quick"), None, folder)
    assert path is not None
    data = prepare(path, None, recipe.data)
    counts = data.facts["classes"]["train"].values()
    assert max(counts) < 1.3 * min(counts)
    assert build_model(recipe, data).config.num_labels == len(counts)
    assert data.pair == (name == "retrieval-made")


def test_a_run_leaves_one_file(tmp_path: Path) -> None:
    outcome = run_cell(FIRST, tmp_path / "results", None, 1.0, quiet())
    assert outcome == read_outcome(outcome_path(tmp_path / "results", "lra", "text-made", "none", 0))
    assert read_outcomes(tmp_path / "results") == [outcome]
    assert outcome.accuracy is not None
    assert outcome.accuracy > 0.8
    assert outcome.cpu_seconds is not None
    assert str(tmp_path) not in str(outcome)
    steps = [point["step"] for point in outcome.history]
    assert steps == sorted(set(steps))
    validated = [point["step"] for point in outcome.history if "validation_accuracy" in point]
    assert validated == [40, 80, 120, 160]


def test_a_run_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_memory(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("not enough memory")

    monkeypatch.setattr(cell_module, "run", out_of_memory)
    outcome = run_cell(FIRST, tmp_path / "results", None, 1.0, quiet())
    assert (outcome.error, outcome.accuracy) == ("not enough memory", None)
    assert read_outcomes(tmp_path / "results") == [outcome]


def test_data_that_is_not_here_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotHere, match=r"yeast needs dna/yeast_orthologs.tsv.xz"):
        run_cell(Cell("dna", "yeast", "none", 0, "cpu"), tmp_path, None, 1.0, quiet())
    assert read_outcomes(tmp_path) == []


def test_minutes_become_steps_and_stay_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of(FIRST)
    data = prepare(str(origin_of(FIRST, None, tmp_path)), None, recipe.data)
    assert 0 < seconds_per_step(recipe, data, enough=0.1) < 10
    monkeypatch.setattr(cell_module, "seconds_per_step", lambda *_: 0.5)
    found = with_validations(with_steps(recipe, data, 2.0, tmp_path / "none"), data)
    assert found.training.max_steps == 240
    rows = len(data.splits["train"])
    assert found.training.validate_every * (rows // recipe.training.batch_size) == 60
    run(with_steps(recipe, data, 0.1, tmp_path / "run"), data, tmp_path / "run", console=quiet())
    monkeypatch.setattr(cell_module, "seconds_per_step", lambda *_: 1.0)
    assert with_steps(recipe, data, 0.1, tmp_path / "run").training.max_steps == 12


def _prepared(length: int, train: int, validation: int) -> Prepared:
    """Data of so many rows of one length, as far as the pace of a run looks at it."""
    splits = {
        name: Dataset.from_dict({"length": [length] * n}) for name, n in (("train", train), ("validation", validation))
    }
    return cast(Prepared, SimpleNamespace(splits=splits))


@pytest.mark.parametrize(("length", "batch"), [(1024, 32), (2048, 32), (2049, 16), (16_384, 4), (200_000, 1)])
def test_long_rows_make_small_batches(length: int, batch: int) -> None:
    recipe = recipe_of(Cell("dna", "bacteria", "none", 0, "cpu"))
    training = with_batch(recipe, _prepared(length, 10, 1)).training
    assert (training.batch_size, training.evaluation_batch_size) == (batch, 32)


@pytest.mark.parametrize(("rows", "times"), [(100, 4), (400, 4), (700, 2), (1600, 1), (5000, 1)])
def test_no_more_rows_are_validated_than_trained_on(rows: int, times: int) -> None:
    recipe = recipe_of(Cell("dna", "bacteria", "none", 0, "cpu"))
    recipe = replace(recipe, training=replace(recipe.training, max_steps=50, batch_size=32))
    data = _prepared(1000, 6400, rows)
    every = with_validations(recipe, data).training.validate_every * (6400 // 32)
    assert 50 // every == times


def test_a_column_can_have_our_settings_in_every_row() -> None:
    found = {cell.row: recipe_of(cell) for cell in cells(["ablations"], "cpu", tasks=["listops-ends"])}
    assert set(found) == {*ABLATIONS, "none", *CONTROLS}
    assert {recipe.model.pooling for recipe in found.values()} == {"ends"}
    assert {recipe.training.learning_rate for recipe in found.values()} == {0.002}
    assert (found["none"].model.mixer, found["nope"].model.position) == ("none", "none")
    assert [cell.row for cell in cells(["lra"], "cpu", tasks=["image-ends"])] == [
        "kernelution",
        "none",
        "vanilla",
        "fnet",
    ]


def _killed(*arguments: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_run_that_is_killed_is_a_failure_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synvolution.experiments.cell_process._child", _killed)
    outcome = run_apart(FIRST, tmp_path, None, 1.0)
    assert isinstance(outcome, Outcome)
    assert outcome.error == "ended by SIGKILL: it may have taken more memory than there is"
    assert read_outcomes(tmp_path) == [outcome]


KILLED = """
import time
from pathlib import Path
from synvolution.experiments import cell_process
from synvolution.experiments.grid import Cell

def at_work(*arguments):
    print("at work", flush=True)
    time.sleep(3600)

cell_process.run_cell = at_work  # also in the new process, which reads this file
if __name__ == "__main__":
    cell_process.run_apart(Cell("lra", "text-made", "none", 0, "quick"), Path(), None, 1.0)
"""


def test_a_killed_command_takes_its_run_with_it(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(KILLED)
    process = subprocess.Popen([sys.executable, str(tmp_path / "script.py")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"at work\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)  # the pipe ends when the last of them has ended


def test_the_command_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    assert command(monkeypatch, "lra", "--tasks", "dna-made", "--out", out) == 2
    assert "unknown task 'dna-made'" in capsys.readouterr().err
    options = ("lra", "--tasks", "text-made", "--mixers", "none", "--out", out)
    assert command(monkeypatch, *options) == 0
    assert "1 runs, 0 of them done before" in capsys.readouterr().out
    before = outcome_path(out, "lra", "text-made", "none", 0).stat().st_mtime_ns
    assert command(monkeypatch, *options, "--seeds", "0") == 0
    assert "1 runs, 1 of them done before" in capsys.readouterr().out
    assert outcome_path(out, "lra", "text-made", "none", 0).stat().st_mtime_ns == before
    assert "text-made" in (out / "tables" / "lra-quick.md").read_text()
    assert "text-made" in (out / "report.html").read_text()
    assert command(monkeypatch, *options, "--budget", "cpu") == 2
    assert "unknown task" in capsys.readouterr().err
    assert command(monkeypatch, "gibbs", "--budget", "cpu", "--out", out) == 2
    assert "holds results of --budget quick, not of --budget cpu --minutes 20" in capsys.readouterr().err


def test_the_gibbs_figure_comes_with_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(monkeypatch, "gibbs", "--out", tmp_path / "results") == 0
    names = {path.name for path in (tmp_path / "results").rglob("*.*")}
    assert {"gibbs.png", "gibbs.svg", "kernels.md", "kernels.tex", "kernels.csv", "report.html"} <= names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("lra", "--mixers", "fnett"), "did you mean 'fnet'?"),
        (("lra", "--minutes", "0", "--budget", "cpu"), "must be more than 0"),
        (("lra", "--workers", "0"), "must be more than 0"),
        (("lra", "--data", "nowhere"), "no such folder"),
        (("lra", "--ray-address", "auto"), "--ray-address is for --engine ray"),
        (("everything",), "everything"),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(monkeypatch, *options) == 2
    printed = capsys.readouterr()
    assert message in printed.err + printed.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_whole_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(monkeypatch, "all", "--out", tmp_path / "results") == 0
    outcomes = read_outcomes(tmp_path / "results")
    assert [outcome.error for outcome in outcomes] == [None] * len(cells(TABLES, "quick"))
    assert (tmp_path / "results" / "complexity.json").exists()


@pytest.mark.slow
def test_runs_on_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("lra", "--tasks", "text-made", "--mixers", "none", "fnet", "--engine", "ray", "--workers", "2")
    assert command(monkeypatch, *options, "--out", tmp_path / "results") == 0
    assert [outcome.row for outcome in read_outcomes(tmp_path / "results") if outcome.accuracy] == ["fnet", "none"]
