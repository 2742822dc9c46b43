"""The commands as a user types them: train, evaluate, predict on one's own data, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from synvolution import cli
from synvolution.recipes import baseline_recipe
from synvolution.training.commands import parse_recipe

TINY = ["--model.hidden-size", "8", "--model.intermediate-size", "16", "--training.epochs", "12"]
TINY += ["--training.learning-rate", "0.02", "--training.patience", "0"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNVOLUTION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["synvolution", *arguments])
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0) if not isinstance(end.code, str) else 1
    return 0


def write_csv(path: Path, rows: int = 120) -> None:
    """Texts of letters; the label tells which of x and y occurs."""
    chance = random.Random(0)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for _ in range(rows):
            label = chance.choice(["with x", "with y"])
            text = "".join(chance.choice("abc") for _ in range(chance.randint(3, 12)))
            place = chance.randint(0, len(text))
            writer.writerow([text[:place] + label[-1] + text[place:], label])


def write_fasta(folder: Path) -> None:
    chance = random.Random(0)
    folder.mkdir()
    for name, letters in (("one.fa", "acgt"), ("two.fa", "aact")):
        records = (f">{name}{k}\n" + "".join(chance.choices(letters, k=60)) + "\n" for k in range(60))
        (folder / name).write_text("".join(records))


@pytest.mark.parametrize("kind", ["csv", "fasta"])
def test_train_evaluate_predict(
    kind: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = "mine.csv" if kind == "csv" else "species"
    write_csv(here / data) if kind == "csv" else write_fasta(here / data)
    assert command(monkeypatch, "train", "--data", data, *TINY) == 0
    out = capsys.readouterr().out
    model = f"outputs/{Path(data).stem}"
    assert "test accuracy" in out
    assert model in out
    assert command(monkeypatch, "evaluate", model) == 0
    out = capsys.readouterr().out
    results = json.loads((here / model / "results.json").read_text())["scores"]["test"]
    found = json.loads((here / model / "evaluation" / "evaluation.json").read_text())
    assert found["accuracy"] == results["accuracy"] > 0.6
    assert found["confusion"] == results["confusion"]
    assert (here / model / "evaluation" / "confusion.png").stat().st_size > 5000
    assert "95 % interval" in out
    assert "tokens/s" in out
    new = data if kind == "csv" else "species/one.fa"
    assert command(monkeypatch, "predict", model, new) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == (120 if kind == "csv" else 60)
    classes = ("with x", "with y") if kind == "csv" else ("one", "two")
    for row in rows:
        assert row["label"] in classes
        assert sum(float(row[f"p({name})"]) for name in classes) == pytest.approx(1, abs=1e-5)
    if kind == "fasta":
        assert [row["id"] for row in rows[:2]] == ["one.fa0", "one.fa1"]
    # the same rows as lines of JSON, and one by one: batches change nothing
    assert command(monkeypatch, "predict", model, new, "--out", "p.jsonl", "--batch-size", "1") == 0
    lines = [json.loads(line) for line in (here / "p.jsonl").read_text().splitlines()]
    assert [line["label"] for line in lines] == [row["label"] for row in rows]
    for line, row in zip(lines, rows, strict=True):
        assert line["probability"] == pytest.approx(float(row["probability"]), abs=1e-5)
    # labelled data the model has not seen before is read with the model's own tokenizer
    other = "other.csv" if kind == "csv" else "others"
    write_csv(here / other, 40) if kind == "csv" else write_fasta(here / other)
    if kind == "csv":
        assert command(monkeypatch, "evaluate", model, "--data", other, "--out", "elsewhere") == 0
        assert json.loads((here / "elsewhere" / "evaluation.json").read_text())["rows"] == 40


def test_predict_reads_standard_input(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(here / "mine.csv")
    assert command(monkeypatch, "train", "--data", "mine.csv", *TINY[:-4], "--training.max-steps", "2") == 0
    done = subprocess.run(
        [sys.executable, "-m", "synvolution", "predict", "outputs/mine", "-"],
        input="abcx\ncay\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == ["id", "0", "1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "listpos"], "did you mean 'listops'"),
        (["train"], "nothing to train on"),
        (["train", "--data", "missing.csv"], "missing.csv"),
        (["train", "longdoc16k"], "longdoc16k needs its data: put the folders"),
        (["train", "listops-quick", "--training.batch-size", "0"], "batch_size is 0"),
        (["train", "listops-quick", "--model.mixer", "kernalution"], "mixer is 'kernalution'"),
        (["train", "listops-quick", "--data.samples", "60", "--model.num-heads", "5"], "5 heads do not divide"),
        (["train", "listops-quick", "--training.epohs", "3"], "--training.epochs"),
        (["train", "listops-quick", "--training.epochs", "many"], "many"),
        (["evaluate", "nowhere"], "holds no model"),
        (["predict", "nowhere", "-"], "holds no model"),
        (["predict"], "required"),
    ],
)
def test_bad_input_is_refused_with_one_message(
    arguments: list[str],
    message: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command(monkeypatch, *arguments) == 2
    printed = capsys.readouterr()
    text = " ".join((printed.out + printed.err).split())
    assert message in text
    assert "Traceback" not in text
    assert not (here / "outputs").exists()


def test_existing_folder_and_foreign_classes_are_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(here / "mine.csv")
    train = ["train", "--data", "mine.csv", *TINY, "--training.max-steps", "2"]
    assert command(monkeypatch, *train) == 0
    assert command(monkeypatch, *train) == 2
    assert "already holds a run" in capsys.readouterr().err
    (here / "foreign.csv").write_text("text,label\nabx,with z\n")
    assert command(monkeypatch, "evaluate", "outputs/mine", "--data", "foreign.csv") == 2
    assert "classes 'with z' are not the model's" in capsys.readouterr().err
    (here / "unlabelled.csv").write_text("text\nabx\n")
    assert command(monkeypatch, "evaluate", "outputs/mine", "--data", "unlabelled.csv") == 2
    assert "no label" in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--baseline", "fnet"], ["--baseline=fnet"]])
def test_baseline_picks_its_settings(given: list[str]) -> None:
    name, recipe, arguments = parse_recipe(["longdoc16k", *given], "train")
    assert (name, recipe.model.mixer, arguments.baseline) == ("longdoc16k", "fnet", "fnet")
    assert arguments.model == recipe.model == baseline_recipe("longdoc16k", "fnet").model


def test_missing_package_is_one_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "linformer", None)
    options = ["--data.samples", "60", "--model.mixer", "linformer", "--training.max-steps", "1"]
    assert command(monkeypatch, "train", "listops-quick", *options) == 2
    assert capsys.readouterr().err.strip().endswith("pip install 'synvolution[baselines]'")
    assert not (here / "outputs").exists()


def test_help_shows_defaults_of_the_recipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(monkeypatch, "train", "pathfinder", "--help") == 0
    text: Any = " ".join(capsys.readouterr().out.split())
    assert "--training.learning-rate FLOAT" in text
    assert "(default: 0.0002)" in text
    assert "--data {None}|STR" in text
    assert "--data.difficulty {easy,middle,hard,all}" in text
