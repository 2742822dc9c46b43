"""Doctests import every file: those that need Triton are left out where it is not installed."""

from __future__ import annotations

from synvolution.ops import _triton

collect_ignore_glob = [] if _triton.INSTALLED else ["src/synvolution/ops/_triton_*.py", "tests/ops/compile_kernels.py"]
