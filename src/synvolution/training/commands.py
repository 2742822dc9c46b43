"""``synvolution train | evaluate | predict``: the commands, from their arguments to their last line."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import sys
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from synvolution.data.base import DataOptions, Prepared, prepare
from synvolution.data.records import stream_records
from synvolution.models.options import ModelOptions
from synvolution.recipes import RECIPES, Recipe, baseline_recipe, find_recipe
from synvolution.training.callbacks import console as make_console
from synvolution.training.checkpoints import write_whole
from synvolution.training.evaluate import Evaluation, draw_confusion, evaluate_model
from synvolution.training.inference import load_model, load_onnx_model
from synvolution.training.options import TrainingOptions
from synvolution.training.predict import WRITERS, predictions
from synvolution.training.run import run


@dataclass(frozen=True, kw_only=True)
class TrainArguments:
    """Train a Converter: select on validation, test once, save model, results, card and curves.

    With --data FILE_OR_FOLDER it trains on your own data: csv, tsv, jsonl, parquet, a folder or FASTA file per class.
    Several processes: torchrun --nproc-per-node 2 -m synvolution train … or accelerate launch -m synvolution train …
    """

    origin: Annotated[str | None, tyro.conf.arg(name="data")] = None
    """Your own data, a file, folder or hub name; for a task, where its files lie."""
    out: Path | None = None
    """Folder of the run; by default outputs/ and the name of the recipe or data."""
    resume: bool = False
    """Go on from the newest whole checkpoint in the folder."""
    baseline: str | None = None
    """A baseline's name: its settings in the paper (long documents, Ensembl), else the recipe's with that mixer."""
    options: Annotated[DataOptions, tyro.conf.arg(name="data")] = field(default_factory=DataOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)


def parse_recipe(argv: list[str], command: str, kind: Any = TrainArguments) -> tuple[str, Recipe, Any]:
    """The recipe named first in the arguments, and the arguments with its settings as defaults."""
    named = bool(argv) and not argv[0].startswith("-")
    name = argv[0] if named else "own"
    split = [part for entry in argv for part in entry.split("=", 1)]  # --baseline=NAME as well as --baseline NAME
    baseline = next((value for flag, value in pairwise(split) if flag == "--baseline"), None)
    recipe = find_recipe(name) if baseline is None else baseline_recipe(name, baseline)
    defaults = kind(options=recipe.data, model=recipe.model, training=recipe.training)
    program = f"synvolution {command} {name if named else '[RECIPE]'}"
    about = f"Recipes: {', '.join(RECIPES)}, or a .json file. Shown are the defaults of {name!r}."
    rest = argv[1:] if named else argv
    about = f"{inspect.getdoc(kind)}\n\n{about}"
    arguments = tyro.cli(kind, args=rest, default=defaults, prog=program, description=about)
    return name, recipe, arguments


def train(argv: list[str]) -> None:
    """``synvolution train``."""
    console = make_console()
    name, recipe, arguments = parse_recipe(argv, "train")
    recipe = replace(recipe, data=arguments.options, model=arguments.model, training=arguments.training)
    recipe.model.check()
    recipe.training.batch_per_process(1)
    prepared = prepare_for(recipe, arguments.origin, console)
    name = folder_name(arguments.origin) if recipe.task is None else folder_name(name)
    out = arguments.out or Path("outputs") / "-".join(filter(None, (name, arguments.baseline)))
    results = run(recipe, prepared, out, origin=arguments.origin, resume=arguments.resume, console=console)
    if results:
        show_results(results, out, console)


def prepare_for(recipe: Recipe, origin: str | None, console: Console) -> Prepared:
    """The data of a recipe, from the cache or made now."""
    if recipe.task is None and origin is None:
        raise ValueError("nothing to train on: name a recipe (synvolution train listops-quick) or give --data FILE")
    with console.status("preparing the data …") as status:

        def progress(what: str, rows: int) -> None:
            status.update(f"preparing the data: {what}, {rows:,} rows")

        if recipe.task is None:
            assert origin is not None
            return prepare(origin, None, recipe.data, progress=progress)
        return prepare(recipe.task, None if origin is None else Path(origin), recipe.data, progress=progress)


def show_results(results: dict[str, Any], out: Path, console: Console) -> None:
    """The last lines of a run: accuracies, and where everything lies."""
    table = Table(title=f"{results['data']['name']}: selected on validation, step {results['selection']['step']}")
    for name in ("split", "rows", "accuracy", "95 % interval", "balanced", "macro F1"):
        table.add_column(name, justify="left" if name == "split" else "right")
    for split, found in results["scores"].items():
        low, high = found["interval"]
        shares = f"{found['accuracy']:.2%}", f"{low:.2%} – {high:.2%}", f"{found['balanced_accuracy']:.2%}"
        table.add_row(split, f"{found['rows']:,}", *shares, f"{found['macro_f1']:.2%}")
    console.print(table)
    if "test" in results["scores"]:
        console.print(f"test accuracy: {results['scores']['test']['accuracy']:.2%}", highlight=False)
    console.print(f"model, results and curves: {out}", highlight=False)


def evaluate(
    model: tyro.conf.Positional[Path],
    data: str | None = None,
    split: Literal["train", "validation", "test", "all"] = "test",
    source: Path | None = None,
    seed: int | None = None,
    samples: int | None = None,
    batch_size: int = 32,
    out: Path | None = None,
) -> None:
    """Measure a saved model: accuracy with its interval, scores of each class, confusion matrix, throughput.

    Args:
        model: Folder that train wrote.
        data: A task's name, or a file or folder whose labelled rows are all used; by default what it was trained on.
        split: Which rows of a task or of its own data.
        source: Where the files of a task lie.
        seed: Of generated data or random splits; by default that of training. Another one generates unseen samples.
        samples: How many samples to generate or to take.
        batch_size: Rows at a time.
        out: Folder for evaluation.json and confusion.png; by default evaluation/ in the model's folder.
    """
    console = make_console()
    loaded = load_model(model)
    out = out or model / "evaluation"
    with console.status("evaluating …") as status:
        found = evaluate_model(
            loaded,
            data,
            split,
            source=source,
            seed=seed,
            samples=samples,
            batch_size=batch_size,
            progress=lambda rows: status.update(f"evaluating: {rows:,} rows"),
        )
    show_evaluation(found, console)
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "evaluation.json", json.dumps(found.to_dict(), indent=1, ensure_ascii=False) + "\n")
    draw_confusion(found.scores, out / "confusion.png")
    console.print(f"written: {out}/evaluation.json, {out}/confusion.png", highlight=False)


def show_evaluation(found: Evaluation, console: Console) -> None:
    """Scores of each class, the confusion matrix if it is small, and the totals."""
    scores = found.scores
    table = Table(title=escape(f"{found.what}: {scores.rows:,} rows"))
    for name in ("class", "precision", "recall", "F1", "rows"):
        table.add_column(name, justify="left" if name == "class" else "right")
    for entry in scores.classes:
        shares = (f"{value:.2%}" for value in (entry.precision, entry.recall, entry.f1))
        table.add_row(escape(entry.name), *shares, f"{entry.rows:,}")
    console.print(table)
    if len(scores.classes) <= 12:
        matrix = Table(title="confusion: rows true, columns predicted")
        for name in ("", *(entry.name for entry in scores.classes)):
            matrix.add_column(escape(name), justify="right")
        for entry, counts in zip(scores.classes, scores.confusion, strict=True):
            matrix.add_row(escape(entry.name), *(f"{count:,}" for count in counts))
        console.print(matrix)
    low, high = scores.interval
    console.print(
        f"accuracy {scores.accuracy:.2%} (95 % interval {low:.2%} – {high:.2%}), "
        f"balanced {scores.balanced_accuracy:.2%}, macro F1 {scores.macro_f1:.2%}\n"
        f"{scores.rows / found.seconds:,.1f} rows/s, {found.tokens / found.seconds:,.0f} tokens/s",
        highlight=False,
    )


def predict(
    model: tyro.conf.Positional[Path],
    data: tyro.conf.Positional[str],
    out: Path | None = None,
    format: Literal["csv", "jsonl"] | None = None,
    kind: str | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    batch_size: int = 32,
    skip_bad_rows: bool = False,
    backend: Literal["torch", "onnx"] = "torch",
) -> None:
    """Classify new data: labels and probabilities, in the order of the input, streamed.

    Args:
        model: Folder that train wrote; with --backend onnx, that export wrote.
        data: File, folder, or - for standard input: csv, tsv, jsonl, parquet, FASTA, images, text (a sequence a line).
        out: File to write; by default standard output.
        format: csv or jsonl; by default told by the name of the output, else csv.
        kind: What standard input holds (csv, tsv, jsonl, fa, txt); by default told by its first line.
        text_column: Column of the sequence; by default guessed.
        pair_column: Column of the second sequence, for models of pairs.
        batch_size: Rows at a time.
        skip_bad_rows: Leave out rows that cannot be read, with a message, instead of stopping.
        backend: torch, or onnx for an exported model in onnxruntime, without building the torch model.
    """
    loaded = load_onnx_model(model) if backend == "onnx" else load_model(model)
    options = DataOptions(
        text_column=text_column, pair_column=pair_column, bad_rows="skip" if skip_bad_rows else "error"
    )
    suffix = "" if out is None else out.suffix.removeprefix(".")
    chosen = format or ("jsonl" if suffix in ("jsonl", "json") else "csv")
    records = stream_records(data, options, kind)
    console = Console(stderr=True)
    done = 0
    with contextlib.ExitStack() as stack:
        file = sys.stdout if out is None else stack.enter_context(open(out, "w", encoding="utf-8", newline=""))
        write = WRITERS[chosen](file, loaded.classes)
        progress = stack.enter_context(_counter(console))
        task = progress.add_task("rows")
        for found in predictions(loaded, records, batch_size):
            write(found)
            file.flush()
            done += len(found)
            progress.update(task, completed=done)
    if out is not None:
        make_console().print(f"{done:,} predictions: {out}", highlight=False)


def export(
    model: tyro.conf.Positional[Path],
    format: Literal["onnx", "torch-export", "safetensors"] = "onnx",
    out: Path | None = None,
) -> None:
    """Write a saved model for other runtimes, run it there, and compare its logits: batch and length stay free.

    Args:
        model: Folder that train wrote.
        format: onnx (standard operators), torch-export (model.pt2, any CPU with torch and synvolution), or safetensors.
        out: Folder to write, which must not exist; by default one named like the format in the model's folder.
    """
    from synvolution.training.export import export_model

    console = make_console()
    with console.status(f"exporting to {format} …"):
        facts = export_model(model, format, out)
    shown = ", ".join(f"{check['batch']}×{check['lengths'][0]}" for check in facts["checks"])
    sizes = ", ".join(f"{name} {size:,}" for name, size in facts["files"].items() if name.startswith("model."))
    console.print(
        f"largest difference of logits: {facts['largest_difference']:.1e} (bound {facts['bound']:.0e} × the largest "
        f"logit where that is above 1: {max(check['logit'] for check in facts['checks']):.2g}; "
        f"batch×length {shown})\nwritten: {out or model / format} ({sizes} bytes)",
        highlight=False,
    )


def _counter(console: Console) -> Progress:
    """A count of rows and their speed; how many there will be is not known."""
    columns = TextColumn("{task.completed:,} rows"), TextColumn("{task.speed:,.0f}/s"), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def folder_name(origin: str | None) -> str:
    """A name for a folder, from a path or a hub name.

    Example:
        >>> folder_name("data/my reviews.csv")
        'my-reviews'
    """
    stem = Path(origin or "own").name.split(".")[0]
    return re.sub(r"[^\w-]+", "-", stem).strip("-") or "own"
