"""Training over processes: killed and resumed, and shared by two."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

PROGRAM = """
import sys
from dataclasses import replace
from pathlib import Path
import torch
from rich.console import Console
from synvolution.data.base import prepare
from synvolution.training.run import run
from tests.training.conftest import small

recipe = small(**eval(sys.argv[3]))
torch.set_num_threads(1)
data = prepare("listops-quick", options=recipe.data, cache=Path(sys.argv[2]))
run(recipe, data, Path(sys.argv[1]), console=Console(), resume="--resume" in sys.argv)
"""
ROOT = Path(__file__).parent.parent.parent
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def arguments(out: Path, cache: Path, options: dict[str, Any], *rest: str) -> list[str]:
    return ["-c", PROGRAM, str(out), str(cache), repr(options), *rest]


def start(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(*command: str) -> str:
    process = start(*command)
    text = process.communicate()[0]
    assert process.returncode == 0, text
    return text


def kills_and_resumes(tmp_path: Path, cache: Path, kills: int, epochs: int) -> None:
    """Kill at random moments after the first checkpoint, resume, and compare with an undisturbed run."""
    options = {"epochs": epochs, "checkpoint_minutes": 0.002, "validate_every": 0.7}
    finish(*arguments(tmp_path / "whole", cache, options))
    chance, killed = random.Random(0), 0
    resume: tuple[str, ...] = ()
    while killed < kills:
        process = start(*arguments(tmp_path / "run", cache, options, *resume))
        while not list((tmp_path / "run").glob("checkpoint-*")) and process.poll() is None:
            time.sleep(0.05)
        time.sleep(chance.uniform(0, 0.6) if not resume else chance.uniform(3, 8))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed, resume = killed + 1, ("--resume",)
    text = finish(*arguments(tmp_path / "run", cache, options, "--resume"))
    assert "resuming from" in text
    whole, run = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "run"))
    assert all(torch.equal(whole[name], run[name]) for name in whole)
    scores = [json.loads((tmp_path / name / "results.json").read_text())["scores"] for name in ("whole", "run")]
    assert scores[0] == scores[1]


def test_killed_once_and_resumed_to_the_same_bits(tmp_path: Path, cache: Path) -> None:
    kills_and_resumes(tmp_path, cache, kills=1, epochs=4)


@pytest.mark.slow
def test_killed_five_times_and_resumed_to_the_same_bits(tmp_path: Path, cache: Path) -> None:
    kills_and_resumes(tmp_path, cache, kills=5, epochs=40)


def test_two_processes_with_half_the_batch_each_are_one(tmp_path: Path, cache: Path) -> None:
    dropouts = "('embedding', 'value', 'feedforward', 'eigenvalue', 'eigenvector', 'classifier')"
    without = f"recipe = replace(recipe, model=replace(recipe.model, **{{f'{{n}}_dropout': 0.0 for n in {dropouts}}}))"
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace("torch.set_num_threads(1)", without))
    options = repr({"max_steps": 20, "log_every": 1})
    finish(str(script), str(tmp_path / "one"), str(cache), options)
    launch = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
    finish(*launch, str(script), str(tmp_path / "two"), str(cache), options)
    losses = {
        name: [
            entry["loss"]
            for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()
            if "loss" in (entry := json.loads(line))
        ]
        for name in ("one", "two")
    }
    assert len(losses["one"]) == len(losses["two"]) == 20
    assert losses["one"] == pytest.approx(losses["two"], abs=1e-4)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name in one:  # every parameter moved alike, so every gradient was synchronised
        assert torch.allclose(one[name], two[name], atol=2e-3), name
