"""Dependencies point downwards only (the layout in CONTRIBUTING)."""

from __future__ import annotations

import ast
from pathlib import Path

import synvolution

ROOT = Path(synvolution.__file__).parent

#: What each part of the package may import of the others.
ALLOWED: dict[str, set[str]] = {
    "ops": set(),
    "spectral": set(),
    "nn": {"ops", "spectral"},
    "models": {"nn", "ops", "spectral"},
    "data": set(),
    "recipes": {"models", "data", "training"},
    "training": {"models", "nn", "ops", "spectral", "data", "recipes", "info"},
    "experiments": {"training", "models", "nn", "ops", "spectral", "data", "recipes", "info"},
    "info": {"ops"},
    "cli": {"experiments", "training", "models", "nn", "ops", "spectral", "data", "recipes", "info"},
    "__main__": {"cli"},
}


def imports_of(path: Path) -> set[str]:
    """Parts of our package that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            names += [f"{node.module}.{alias.name}" for alias in node.names if node.module == "synvolution"]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("synvolution.")}
    return found


def test_dependencies_point_downwards() -> None:
    wrong = []
    for path in ROOT.rglob("*.py"):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        assert part in ALLOWED, f"{path}: a new part of the package needs its line in ALLOWED"
        wrong += [f"{path.name} imports {name}" for name in imports_of(path) - ALLOWED[part] - {part, "__version__"}]
    assert not wrong


def test_the_rule_can_fail(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text(
        "import synvolution.nn.permutation\nfrom synvolution import cli\nfrom synvolution.ops import DHHP\n"
    )
    assert imports_of(sample) == {"nn", "cli", "ops"}
