"""Published numbers as printed, and tables that say what was run, what not, and what cannot be compared."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synvolution.data.base import TASKS
from synvolution.experiments.outcomes import Outcome, write_outcome
from synvolution.experiments.overview_tables import attention_table, kernel_table
from synvolution.experiments.paper_tables import accuracy_table, all_tables, write_tables
from synvolution.experiments.published import published
from synvolution.experiments.results_folder import read_results
from synvolution.experiments.tables import Cell, Column, Row, Table, latex_text, markdown_text
from synvolution.nn import MIXERS
from synvolution.spectral import DAMPINGS
from tests.experiments.made_results import HOSTILE, results_of, run_of, small, write_costs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, Table]:
    return {table.name: table for table in all_tables(read_results(folder))}


def cell(table: Table, row: str, column: str) -> Cell:
    place = [entry.label for entry in table.columns].index(column)
    return next(entry.cells[place] for entry in table.rows if entry.cells[0].value == row)


# what the paper printed


def test_printed_averages_are_means_but_for_the_two_that_are_marked() -> None:
    lra, marked = published().accuracy["lra"], []
    for row in (*lra.rows, *lra.elsewhere):
        mean = statistics.mean(row.values.values())
        if row.average_remark:
            marked.append(row.row)
            assert f"{mean:.2f}" in row.average_remark
            assert abs(mean - (row.average or 0)) > 0.1
        else:
            assert row.average == pytest.approx(mean, abs=0.0101), row.name
    assert marked == ["sinkhorn", "paramixer"]


@pytest.mark.parametrize(
    ("table", "task", "second"),
    [
        ("lra", "listops", {"paramixer"}),
        ("lra", "text", {"paramixer"}),
        ("lra", "retrieval", {"nystromformer", "luna"}),
        ("lra", "image", {"luna"}),
        ("lra", "pathfinder", {"paramixer"}),
        ("longdoc", "longdoc16k", {"paramixer"}),
        ("longdoc", "longdoc32k", {"synthesizer"}),
        ("dna", "ensembl-bs", {"paramixer"}),
        ("dna", "ensembl-mr", {"nystromformer"}),
    ],
)
def test_best_and_second_best_are_those_the_paper_marks(table: str, task: str, second: set[str]) -> None:
    values = {row.row: row.values[task] for row in published().accuracy[table].rows}
    assert max(values, key=lambda row: values[row]) == "kernelution"
    others = {row: value for row, value in values.items() if row != "kernelution"}
    assert {row for row, value in others.items() if value == max(others.values())} == second


def test_published_names_are_ours() -> None:
    found = published()
    assert {name: len(table.rows) for name, table in found.accuracy.items()} == {
        "lra": 16,
        "longdoc": 9,
        "dna": 9,
        "ablations": 6,
    }
    for name, table in found.accuracy.items():
        assert table.tasks.keys() <= TASKS.keys()
        assert all(row.values.keys() == table.tasks.keys() for row in (*table.rows, *table.elsewhere))
        if name != "ablations":
            assert {row.row for row in table.rows} <= MIXERS.keys()
    assert [row.row for row in found.accuracy["ablations"].rows][1:] == ["nope", "spe", "ape", "synvolution", "no-kpl"]
    assert found.accuracy["ablations"].rows[0].values == found.accuracy["lra"].rows[-1].values
    assert [kernel.damping for kernel in found.kernels] == list(DAMPINGS)
    assert {mixer for row in found.attention for mixer in row.mixers} <= MIXERS.keys()


# what stands in the cells


def test_one_run_has_its_interval_and_several_their_spread(tables: dict[str, Table]) -> None:
    lra = tables["lra-cpu"]
    assert cell(lra, "Converter", "ListOps") == Cell("50.00", "47.81–52.19", "60.38")
    assert cell(lra, "Vanilla Trans.", "ListOps") == Cell("37.00", "± 1.73, 3 seeds", "36.37")
    assert cell(lra, "no mixer (control)", "ListOps") == Cell("41.00", "38.86–43.17", "not published")


def test_marks_of_what_is_not_there(tables: dict[str, Table]) -> None:
    lra = tables["lra-cpu"]
    assert cell(lra, "Luna-256", "Text") == Cell("–", published="65.78")
    assert cell(lra, "no mixer (control)", "Text") == Cell("–")
    failed = cell(lra, "FNet", "ListOps")
    assert (failed.value, failed.published) == ("failed", "35.33")
    assert lra.footnotes[failed.marks[0] - 1] == "fnet on listops, seed 0 failed: RuntimeError: out of memory"
    assert cell(lra, "S4", "Image") == Cell("–", published="88.65")


def test_average_only_where_all_tasks_were_run(tables: dict[str, Table]) -> None:
    lra = tables["lra-cpu"]
    assert cell(lra, "Converter", "Avg.") == Cell("60.00", published="75.94")
    assert cell(lra, "Vanilla Trans.", "Avg.") == Cell("–", published="54.39")
    paramixer = cell(lra, "Paramixer (Chord)", "Avg.")
    assert paramixer.published == "58.91"
    assert "64.23" in lra.footnotes[paramixer.published_marks[0] - 1]


def test_rows_stand_in_the_papers_order(tables: dict[str, Table]) -> None:
    names = [row.cells[0].value for row in tables["lra-cpu"].rows]
    printed = [row.name.removesuffix(" (ours)") for row in published().accuracy["lra"].rows]
    assert names[: len(printed)] == printed
    assert names[len(printed)] == "no mixer (control)"
    assert names[-4:] == ["S4", "S5", "Mega", "ChordMixer"]


def test_a_stand_in_has_nothing_published_beside_it(tables: dict[str, Table]) -> None:
    assert cell(tables["lra-cpu"], "Converter", "listops-quick") == Cell("61.00", "58.84–63.11")
    assert any("listops-quick" in text and "no published number" in text for text in tables["lra-cpu"].note)
    kinds = {column.label: column.kind for column in tables["lra-cpu"].columns}
    assert kinds["listops-quick"] == "number"
    assert kinds["ListOps"] == "compared"


@pytest.mark.parametrize(
    ("recipe", "column"),
    [
        ({"task": "text", "data": {"samples": 5000}}, "text (samples 5000)"),
        ({"task": "text", "data": {"max_length": 512, "seed": 3}}, "text (max length 512)"),
        ({"task": "listops-quick", "data": {}}, "text (data listops-quick)"),
    ],
)
def test_a_part_of_a_task_is_not_the_task(recipe: dict[str, Any], column: str) -> None:
    run = replace(run_of("text", "fnet", 0.7), results=results_of(0.7, recipe=recipe))
    whole = replace(run, row="luna", results=results_of(0.7, recipe={"task": "text", "data": {"max_length": 4096}}))
    table = accuracy_table("lra", "cpu", [run, whole])
    assert cell(table, "FNet", "Text").value == "–"
    assert cell(table, "FNet", column) == Cell("70.00", "67.95–71.97")
    assert cell(table, "Luna-256", "Text").value == "70.00"
    relative = replace(run, task="listops-quick", results=results_of(0.7, recipe=recipe))  # has its own name already
    assert [column.label for column in accuracy_table("lra", "cpu", [relative]).columns] == ["Model", "listops-quick"]


def test_budgets_are_never_mixed(tables: dict[str, Table]) -> None:
    quick = tables["lra-quick"]
    assert [column.label for column in quick.columns] == ["Model", "listops-quick"]
    assert [row.cells for row in quick.rows] == [(Cell("Converter"), Cell("44.00", "41.84–46.18"))]
    assert "quick" in quick.title
    assert all("44.00" not in cell.value for row in tables["lra-cpu"].rows for cell in row.cells)


def test_a_seed_that_failed_is_told_beside_those_that_did_not() -> None:
    runs = [run_of("text", "fnet", 0.6), run_of("text", "fnet", None, seed=1, error=None)]
    table = accuracy_table("lra", "cpu", runs)
    found = cell(table, "FNet", "Text")
    assert (found.value, found.detail) == ("60.00", "57.84–62.13")
    assert table.footnotes[found.marks[0] - 1] == "fnet on text, seed 1 failed: no reason was recorded"


def test_runs_tell_everything_about_each(tables: dict[str, Table]) -> None:
    rows = list(csv.DictReader(io.StringIO(tables["runs"].to_csv())))
    assert len(rows) == 19
    run = next(row for row in rows if (row["task"], row["row"], row["seed"]) == ("listops", "vanilla", "2"))
    assert (run["validation"], run["test"]) == ("40.00", "39.00")
    assert (run["steps"], run["epochs"], run["selected"], run["parameters"]) == ("1,000", "4.0", "900", "33,624")
    assert (run["commit"], run["hardware"]) == ("d9e6df7", "AMD EPYC, 2 threads, cpu")
    assert run["command"] == "synvolution train listops --model.mixer vanilla --training.seed 2"
    assert [row["test"] for row in rows].count("failed") == 2


def test_overviews(tmp_path: Path) -> None:
    write_costs(tmp_path, ["vanilla", "kernelution", "fnet"])
    table = attention_table(read_results(tmp_path).complexity)
    assert cell(table, "Scaled Dot-Product Attention", "Time, measured").value == "vanilla N^1.90"
    assert cell(table, "Synvolution", "Memory, measured").value == "kernelution N^1.00"
    assert cell(table, "Chord Attention", "Time, measured").value == "–"
    assert table.rows[-1].section == "measured, not in the paper's overview"
    kernels = kernel_table()
    assert cell(kernels, "Vekić", "Overshoot").value == "9.2 %"
    assert cell(kernels, "Lorentz", "Here").value == "ξ = 4"


# how they are written


def balanced(text: str) -> bool:
    depth = 0
    for mark in re.findall(r"(?<!\\)[{}]", text.replace("\\\\", "")):
        depth += 1 if mark == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def test_latex_is_escaped_and_balanced(tables: dict[str, Table]) -> None:
    for table in tables.values():
        text = table.to_latex()
        assert balanced(text), table.name
        body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
        lines = [line for line in body.splitlines() if line.endswith(r"\\") and r"\multicolumn" not in line]
        assert len(lines) == len(table.rows) + 1
        for line in lines:
            assert len(re.findall(r"(?<!\\)&", line)) == len(table.columns) - 1, line
        assert r"\input{" not in text
        assert not re.search(
            r"(?<!\\)[#_](?!\d*})", re.sub(r"\$[^$]*\$|\\label\{.*?\}", "", text.replace(r"\$", ""))
        ), table.name
    assert not balanced("a}{")


def test_every_hostile_character_of_latex() -> None:
    expected = r"\textbackslash{}\&\%\$\#\_\{\}\textasciitilde{}\textasciicircum{}\textless{}\textbar{}"
    assert latex_text("\\&%$#_{}~^<|") == expected


def test_csv_comes_back(tables: dict[str, Table]) -> None:
    for table in tables.values():
        lines = list(csv.reader(io.StringIO(table.to_csv())))
        assert len(lines) == len(table.rows) + 1
        assert len({len(line) for line in lines}) == 1
        assert [line[0] for line in lines[1:]] == [row.cells[0].value for row in table.rows]
    rows = list(csv.DictReader(io.StringIO(tables["lra-cpu"].to_csv())))
    assert {row["Model"] for row in rows} >= set(HOSTILE)
    converter = next(row for row in rows if row["Model"] == "Converter")
    assert [converter[f"Text {part}"] for part in ("published", "ours", "spread")] == ["86.44", "55.00", "52.81–57.17"]


def test_markdown_keeps_its_columns_and_shows_no_markup(tables: dict[str, Table]) -> None:
    for table in tables.values():
        text = table.to_markdown()
        for line in (line for line in text.splitlines() if line.startswith("|")):
            assert len(re.findall(r"(?<!\\)\|", line)) == len(table.columns) + 1, line
        assert not re.findall(r"<(?!/?sup>)", text)
    assert markdown_text("a\n|<b>`*") == "a \\|&lt;b&gt;\\`\\*"


def test_html_shows_text_as_text(tables: dict[str, Table]) -> None:
    page = tables["lra-cpu"].to_html()
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;document.title=&#x27;owned&#x27;&lt;/script&gt;" in page


def test_tables_that_do_not_fit_are_refused() -> None:
    columns = (Column("a", "text"), Column("b"))
    with pytest.raises(ValueError, match="t: 1 cells for 2 columns"):
        Table("t", "", columns, (Row((Cell("x"),)),))
    with pytest.raises(ValueError, match="a mark without its footnote"):
        Table("t", "", columns, (Row((Cell("x"), Cell("y", marks=(1,)))),))


def test_files(folder: Path, tmp_path: Path) -> None:
    written = write_tables(folder, tmp_path / "a")
    names = ["lra-quick", "lra-cpu", "ablations-cpu", "attention", "kernels", "runs"]
    assert [path.name for path in written] == [f"{name}.{kind}" for name in names for kind in ("md", "tex", "csv")]
    assert sorted(written) == sorted((tmp_path / "a/tables").iterdir())
    again = write_tables(folder, tmp_path / "b")
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]


# what is refused


def damage(change: Callable[[dict[str, Any]], Any]) -> str:
    content = json.loads(json.dumps(run_of("text", "fnet", 0.5).__dict__))
    return json.dumps(change(content))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Expecting property name"),
        ("[1]", "must be a mapping"),
        (damage(lambda run: {**run, "table": "../x"}), "table '../x' is none of lra"),
        (damage(lambda run: {**run, "budget": "../x"}), "budget '../x' is no name"),
        (damage(lambda run: {**run, "seed": "one"}), "seed 'one' is no whole number"),
        (damage(lambda run: {**run, "task": 5}), "task is no text"),
        (damage(lambda run: {**run, "history": [3]}), "history is no list of dicts"),
        (damage(lambda run: {**run, "cpu_seconds": "long"}), "cpu_seconds is 'long'"),
        (damage(lambda run: {**run, "results": {"scores": {}}}), "results lack 'test'"),
        (damage(lambda run: {**run, "results": [1]}), "results lack"),
        (damage(lambda run: {**run, "results": results_of(0.5, parameters="x")}), "parameters is 'x'"),
        (damage(lambda run: {**run, "results": {"scores": {"test": {"accuracy": 3, "interval": [0, 1]}}}}), "shares"),
    ],
)
def test_a_damaged_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "runs/lra/text/fnet-0.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(str(path))) as refused:
        read_results(tmp_path)
    assert message in str(refused.value)


def test_folders_without_results_and_runs_told_twice(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no results: neither runs/\*\*/\*.json nor complexity.json"):
        read_results(tmp_path)
    (tmp_path / "complexity.json").write_text('{"measurements": [{}]}')
    with pytest.raises(ValueError, match=r"complexity.json holds no costs of mixers"):
        read_results(tmp_path)
    (tmp_path / "complexity.json").unlink()
    path = write_outcome(tmp_path, Outcome(table="lra", task="text", row="fnet", seed=0, budget="cpu", command=""))
    path.with_name("copy.json").write_bytes(path.read_bytes())
    with pytest.raises(ValueError, match=r"fnet-0.json holds the same run as .*copy.json"):
        read_results(tmp_path)
