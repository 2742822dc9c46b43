"""The example of the layer in one's own module: it runs, learns, and needs torch alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("transformers", "datasets", "matplotlib", "rich", "tyro", "scipy")


def test_example_learns_and_needs_torch_alone() -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({HEAVY!r})); "
    run = "import runpy; runpy.run_path('examples/own_module.py', run_name='__main__')"
    command, environment = [sys.executable, "-c", blocked + run], {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert lines[-1].endswith("right 100%")
