"""The example that counts right answers by operator: every sample once, under its own operator."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from synvolution.data import listops
from synvolution.data.listops import ListOpsRule, generate
from synvolution.data.vocabulary import LISTOPS_TOKENS

ROOT = Path(__file__).parent.parent.parent
SCRIPT = str(ROOT / "examples" / "listops_by_operator.py")


def test_answers_are_counted_under_their_operator() -> None:
    def always_nine(ids: torch.Tensor) -> Any:
        return SimpleNamespace(logits=torch.arange(10.0)[None])

    rule = ListOpsRule(10, 40)
    found = runpy.run_path(SCRIPT)["right_by_operator"](always_nine, rule, 400, 7)
    expected: dict[str, list[int]] = {}
    for ids, value in generate(rule, 400, seed=7):
        expected.setdefault(LISTOPS_TOKENS[ids[0] - 1], []).append(int(value == 9))
    assert found == expected
    assert sum(found["[MAX"]) > sum(found["[MIN"])


def test_the_script_reads_our_model(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen = []

    def noting(rule: ListOpsRule, samples: int, seed: int) -> Any:
        seen.append(rule)
        return generate(rule, samples, seed)

    monkeypatch.setattr(listops, "generate", noting)
    options = ["--samples", "20", "--shortest", "4", "--longest", "15", "--depth", "2", "--arguments", "7"]
    monkeypatch.setattr(sys, "argv", ["listops_by_operator.py", str(ROOT / "models" / "listops"), *options])
    runpy.run_path(SCRIPT, run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("all      20 samples")
    assert seen == [ListOpsRule(3, 16, max_depth=2, max_arguments=7)]
