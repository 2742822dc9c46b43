"""What a run says of itself: ``results.json`` for programs, a model card for people."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import synvolution
from synvolution.data.base import Prepared
from synvolution.info import describe
from synvolution.recipes import Recipe
from synvolution.training.checkpoints import write_whole
from synvolution.training.metrics import Scores
from synvolution.training.trainer import ConverterTrainer

RESULTS, CARD = "results.json", "README.md"
PACKAGES = ("torch", "transformers", "accelerate", "datasets", "tokenizers", "numpy")


def write_results(
    out: Path,
    recipe: Recipe,
    prepared: Prepared,
    trainer: ConverterTrainer,
    scores: dict[str, Scores],
    best_step: int | None,
    seconds: float,
    origin: str | None,
    code: str | None,
) -> dict[str, Any]:
    """Write both files; the content of ``results.json``. ``code`` is the commit that the run was started from."""
    model = trainer.accelerator.unwrap_model(trainer.model, keep_torch_compile=False)
    history = trainer.state.log_history
    speeds = [entry["tokens_per_second"] for entry in history if "tokens_per_second" in entry]
    results: dict[str, Any] = {
        "data": {
            "name": prepared.name,
            "class_names": prepared.classes,
            "pair": prepared.pair,
            "origin": origin,
            **prepared.facts,
        },
        "recipe": json.loads(recipe.to_json()),
        "selection": {
            "rule": f"best {recipe.training.select} on validation (of equal ones the lower loss); test once, with that",
            "step": best_step,
            "steps": trainer.state.global_step,
            "epochs": trainer.state.epoch,
        },
        "scores": {name: found.to_dict() for name, found in scores.items()},
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "seed": recipe.training.seed,
        "seconds": round(seconds, 1),
        "tokens_per_second": round(sorted(speeds)[len(speeds) // 2]) if speeds else None,
        "processes": trainer.args.world_size,
        "machine": describe(),
        "versions": {name: version(name) for name in PACKAGES},
        "commit": code,
    }
    write_whole(out / RESULTS, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    write_whole(out / CARD, card(results))
    return results


def commit() -> str | None:
    """The commit of the checkout this package runs from, with "+" if it was changed; None for an installed one."""
    folder = Path(synvolution.__file__).parent
    ask = ["git", "-C", str(folder), "describe", "--always", "--abbrev=7", "--dirty=+", "--exclude=*"]
    try:
        tracked = ["git", "-C", str(folder), "ls-files", "--error-unmatch", "__init__.py"]
        if subprocess.run(tracked, capture_output=True, check=False).returncode:
            return None
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def card(results: dict[str, Any]) -> str:
    """The model card, in Markdown with the header that the Hugging Face hub reads."""
    name = _plain(results["data"]["name"])
    lines = ["---", "library_name: synvolution", "tags:", "- converter", "pipeline_tag: text-classification", "---", ""]
    lines += [f"# Converter, {name}", "", "| split | rows | accuracy | 95 % interval | balanced accuracy | macro F1 |"]
    lines += ["|---|---|---|---|---|---|"]
    for split, found in results["scores"].items():
        low, high = found["interval"]
        lines.append(
            f"| {split} | {found['rows']:,} | {found['accuracy']:.2%} | {low:.2%} – {high:.2%} "
            f"| {found['balanced_accuracy']:.2%} | {found['macro_f1']:.2%} |"
        )
    machine, selection, data = results["machine"], results["selection"], results["data"]
    facts = {
        "Data": f"{name}; {_plain(data.get('source', ''))}; classes {_plain(', '.join(data['class_names'][:20]))}",
        "Split": _plain(data.get("split", "")),
        "Selection": f"{selection['rule']} (step {selection['step']} of {selection['steps']})",
        "Parameters": f"{results['parameters']:,}",
        "Seed": results["seed"],
        "Time": f"{results['seconds'] / 60:.1f} minutes, {results['processes']} process(es)",
        "Hardware": f"{machine['processor']}, {machine['threads']} threads, {machine['devices']}",
        "Versions": ", ".join(f"{name} {number}" for name, number in results["versions"].items()),
        "Commit": results["commit"] or "an installed package",
    }
    lines += ["", *(f"- {key}: {value}" for key, value in facts.items() if value != ""), ""]
    use = [
        "import synvolution",
        "from transformers import pipeline",
        "",
        'classify = pipeline("text-classification", "FOLDER")',
    ]
    lines += ["```python", *use, "```", "", f"Everything else: `{RESULTS}`, `metrics.csv`, `curves.png`.", ""]
    return "\n".join(lines)


def _plain(text: Any) -> str:
    """Text from data, without what Markdown or HTML would act on."""
    marks = {"<": "&lt;", ">": "&gt;", "|": "\\|", "\n": " ", "`": "'", "[": "\\[", "]": "\\]"}
    return "".join(marks.get(character, character) for character in str(text))
