"""The GPU kernels, without a GPU: their values in Triton's interpreter, their compilation for devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import synvolution as sv
from synvolution.info import describe
from synvolution.ops import _backends, _triton

ROOT = Path(__file__).parents[2]
needs_triton = pytest.mark.skipif(not _triton.INSTALLED, reason="triton is not installed: pip install triton (Linux)")


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    full = {**os.environ, **environment}
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=full, capture_output=True, text=True, check=False)


@needs_triton
def test_in_the_interpreter() -> None:
    """All of ``triton_cases.py``, where Triton interprets: it decides that at its import, for a whole process."""
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    done = run("-m", "pytest", *options, "tests/ops/triton_cases.py", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


@needs_triton
def test_chosen_on_cuda_alone() -> None:
    assert _backends.automatic(torch.device("cuda")) == "triton"
    assert str(_triton.triton_version()) in describe()["cuda backend"]
    if not _triton.INTERPRETED:
        v, angles, phase = torch.randn(1, 3, 2, 2), torch.randn(1, 2, 3), torch.randn(1, 3)
        with pytest.raises(ValueError, match="runs on cuda, the tensors are on cpu"):
            sv.synvolve(v, angles, angles, phase, backend="triton")


def test_without_triton() -> None:
    """Where it is missing the scan serves cuda, and asking for it says what to install; kernels are imported late."""
    code = (
        "import importlib.util, sys, torch\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'triton' else found(name, *rest)\n"
        "import synvolution as sv\n"
        "from synvolution.ops import _backends\n"
        "print(_backends.automatic(torch.device('cuda')))\n"
        "a, p = torch.zeros(1, 2, 3), torch.zeros(1, 3)\n"
        "try: sv.synvolve(torch.zeros(1, 3, 2, 2), a, a, p, backend='triton')\n"
        "except ValueError as error: print(error)\n"
        "print('synvolution.ops._triton_kernels' in sys.modules)\n"
    )
    lines = run("-c", code).stdout.splitlines()
    assert lines[0] == "scan"
    assert "pip install triton" in lines[1]
    assert lines[2] == "False"


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90", "hip:gfx942"])
def test_compiles_for(target: str) -> None:
    """For an A100, an H100 and an MI300, down to machine code; no register is spilled to memory."""
    done = run("tests/ops/compile_kernels.py", target)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) == 7, done.stdout
