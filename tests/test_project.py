"""The project's own promises: README, examples, command line, metadata."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import synvolution as sv

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)


def test_public_names() -> None:
    for name in sv.__all__:
        assert getattr(sv, name) is not None


def test_readme_snippets_run() -> None:
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)


def test_readme_links_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)", README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_ci_runs_the_readmes_test_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "<!-- test command -->" in script
    assert README.count("<!-- test command -->") == 1


def test_example_runs(tmp_path: Path) -> None:
    done = run("examples/unitary_operator.py", "--picture", str(tmp_path / "operator.png"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "operator.png").stat().st_size > 10_000
    for value in re.findall(r"(\d\.\de[+-]\d\d)$", done.stdout, re.MULTILINE):
        assert float(value) < 1e-5


def test_info() -> None:
    done = run("-m", "synvolution", "info")
    assert done.returncode == 0, done.stderr
    for word in ("synvolution", "backend", "threads", "torch", "devices"):
        assert re.search(rf"^{word} +\S", done.stdout, re.MULTILINE)


def test_unknown_command_is_refused() -> None:
    done = run("-m", "synvolution", "fly")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_command_line_without_its_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from synvolution import cli

    monkeypatch.setitem(sys.modules, "tyro", None)
    monkeypatch.setattr(sys, "argv", ["synvolution", "info"])
    cli.main()
    assert "torch" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["synvolution", "train"])
    with pytest.raises(SystemExit, match=r"pip install 'synvolution\[train\]'"):
        cli.main()
