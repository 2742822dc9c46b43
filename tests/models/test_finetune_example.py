"""The example with Hugging Face's Trainer: it learns, saves, and its pipeline answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_example_learns_saves_and_answers(tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "examples/finetune_csv.py", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = re.search(r"held-out accuracy: ([\d.]+)", done.stdout)
    assert found is not None
    assert float(found[1]) > 0.9
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {p.name for p in tmp_path.iterdir()}
    assert re.search(r"not bad → .*'positive'", done.stdout)
    again = [*command, "--model", str(tmp_path), "--epochs", "1", str(tmp_path / "reviews.csv")]
    done = subprocess.run(again, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = re.search(r"held-out accuracy: ([\d.]+)", done.stdout)
    assert found is not None
    assert float(found[1]) > 0.9  # one epoch: it went on from what was learned
