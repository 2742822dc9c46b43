"""Compile the GPU kernels without a GPU and print their registers: ``python tests/ops/compile_kernels.py cuda:80``."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from synvolution.ops import _triton_backward, _triton_kernels

NUMBERS = ("n", "d", "heads", "chunks", "total", "sequences")
CHUNKED = {"C": 64, "BLOCK": 64, "UNROLL": 4}
KERNELS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("prepare", {"SIGN": 1, "C": 64}, ()),
    ("respond", {"C": 64, "LANES": 32, "UNROLL": 4}, ()),
    ("local", {"WRITE": True, **CHUNKED}, ()),
    ("local", {"WRITE": True, **CHUNKED}, ("x",)),
    ("carry", {"WHICH": 3, "SIGN": 1, "STEPS": 8, "BLOCK": 64}, ()),
    ("fix_up", CHUNKED, ()),
    ("apply_backward", CHUNKED, ("x", "g", "grad_v")),
]


def signature(kernel: Any, constants: dict[str, Any], half: tuple[str, ...]) -> dict[str, str]:
    """Types of the arguments: sizes, bfloat16 for some of the tensors, float32 for the others."""
    kinds = {name: "*bf16" if name in half else "*fp32" for name in kernel.arg_names}
    return kinds | dict.fromkeys(set(NUMBERS) & set(kinds), "i32") | dict.fromkeys(constants, "constexpr")


def resources(compiled: Any) -> str:
    """Registers and bytes of stack of a kernel, as the machine code tells."""
    if "amdgcn" in compiled.asm:
        return " ".join(re.findall(r"(?:vgpr_count|vgpr_spill_count):\s+\d+", compiled.asm["amdgcn"]))
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        told = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    return " ".join(re.findall(r"(?:REG|STACK):\d+", told))


def main(target: str) -> None:
    """Print a line for each kernel; raise if one spills."""
    backend, architecture = target.split(":")
    place = GPUTarget("cuda", int(architecture), 32) if backend == "cuda" else GPUTarget("hip", architecture, 64)
    for name, constants, half in KERNELS:
        found: Any = getattr(_triton_kernels, name, None) or getattr(_triton_backward, name)
        kernel = found if hasattr(found, "arg_names") and not hasattr(found, "configs") else found.fn
        source = ASTSource(kernel, signature(kernel, constants, half), constexprs=constants)
        compiled = triton.compile(source, target=place, options={"num_warps": 1, "enable_fp_fusion": True})
        used = resources(compiled)
        # the stack of "prepare" is that of sine and cosine of large angles
        assert name == "prepare" or re.search(r"STACK:0\b|spill_count:\s+0\b", used), f"{name} spills: {used}"
        print(name, constants, used)


if __name__ == "__main__":
    main(sys.argv[1])
