"""A trained model for other runtimes: written, run there, and compared with itself before it gets its name.

The graphs take the inputs that the collator makes, any batch and any length, and give logits. Dropout is off.
"""

from __future__ import annotations

import importlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from synvolution.models.configuration import ConverterConfig
from synvolution.ops import _cpu
from synvolution.training.export_check import BOUND, Runner, compare, sample_inputs
from synvolution.training.inference import Array, LoadedModel, load_model

Format = Literal["onnx", "torch-export", "safetensors"]

#: What is written beside the model: what it is, what was checked, with which versions.
FACTS = "export.json"
#: What the format "onnx" needs, of the extra [export].
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
#: Batch and lengths of the trace, of no meaning: numbers that no size of a model is likely to have.
TRACED = (5, 37, 41)

#: Mixers that a graph for any length cannot hold, and why.
NOT_IN_GRAPHS = {
    "bigbird": "its blocks have a size that is computed from the length",
    "longformer": "its windows are cut by a number that the trace cannot know",
    "reformer": "it hashes into a number of buckets that is computed from the length",
    "s4d": "its Fourier transform has a size that is computed from the length",
    "sinkhorn": "it sorts a number of blocks that is computed from the length",
}


class _Logits(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model


class TokenLogits(_Logits):
    """The model as a function of tokens."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, N) each → (B, classes)."""
        logits: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        return logits


class ValueLogits(_Logits):
    """The model as a function of numbers."""

    def forward(self, input_values: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, N) or (B, N, C), (B, N) → (B, classes)."""
        logits: Tensor = self.model(input_values=input_values, attention_mask=attention_mask).logits
        return logits


class PairLogits(_Logits):
    """The model as a function of two sequences of tokens."""

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, input_ids_pair: Tensor, attention_mask_pair: Tensor
    ) -> Tensor:
        """(B, N), (B, N), (B, M), (B, M) → (B, classes)."""
        inputs = {"input_ids_pair": input_ids_pair, "attention_mask_pair": attention_mask_pair}
        logits: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask, **inputs).logits
        return logits


def export_model(folder: Path, format: Format = "onnx", out: Path | None = None) -> dict[str, Any]:
    """Write a trained model in another format, run it there, and compare.

    Args:
        folder: that ``train`` wrote.
        format: "onnx", "torch-export" (.pt2) or "safetensors".
        out: folder to write, which must not exist; None for one named like the format in the model's folder.

    Returns:
        what was written to export.json.
    """
    out = out or folder / format
    if out.exists():
        raise ValueError(f"{out} exists: remove it, or give another folder with --out")
    loaded = load_model(folder, "cpu")
    model: Any = cast(nn.Module, loaded.model).float()
    _refuse_unknown(model.config, format)
    writer, runner = FORMATS[format]
    with _whole_folder(out) as writing:
        _save_processor(loaded, writing)
        facts = writer(loaded, writing)
        checks = compare(model, runner(writing), length_limit(model))
        facts = {**describe(loaded, format), **facts, "checks": [check._asdict() for check in checks]}
        facts |= {"largest_difference": max(check.difference for check in checks), "bound": BOUND}
        facts["files"] = {path.name: path.stat().st_size for path in sorted(writing.iterdir())}
        wrong = next((check for check in checks if not check.within), None)
        if wrong is not None:
            raise ValueError(
                f"the exported model differs by {wrong.difference:.1e} at batch {wrong.batch}, lengths {wrong.lengths}"
                f": more than {BOUND:.0e} × max(1, {wrong.logit:.2g}); nothing was written"
            )
        (writing / FACTS).write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return facts


def _refuse_unknown(config: ConverterConfig, format: Format) -> None:
    """A one-line reason for models that a graph cannot hold."""
    if format == "safetensors":
        return
    if config.permutation == "learned":
        raise ValueError(
            f"permutation 'learned' cannot be exported as {format}: the best permutation of each length is searched "
            "at run time; use --format safetensors"
        )
    if config.mixer in NOT_IN_GRAPHS:
        reason = NOT_IN_GRAPHS[config.mixer]
        raise ValueError(f"mixer {config.mixer!r} cannot be exported as {format}: {reason}; use --format safetensors")


@contextmanager
def _whole_folder(out: Path) -> Iterator[Path]:
    """A folder to write into that gets its name when nothing failed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    writing = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        yield writing
        writing.chmod(0o755)
        writing.rename(out)
    finally:
        shutil.rmtree(writing, ignore_errors=True)


def _save_processor(loaded: LoadedModel, folder: Path) -> None:
    loaded.processor.save_pretrained(folder)
    loaded.model.config.save_pretrained(folder)


def describe(loaded: LoadedModel, format: Format) -> dict[str, Any]:
    """What the exported model is and takes."""
    names = ["synvolution", "torch", "transformers", *(PACKAGES if format == "onnx" else ())]
    return {
        "format": format,
        "classes": loaded.classes,
        "inputs": {name: _axes(name) for name in sample_inputs(loaded.model, 1, [1, 1])},
        "output": {"logits": ["batch", len(loaded.classes)]},
        "longest": length_limit(cast(nn.Module, loaded.model)),
        "versions": {name: version(name) for name in names},
    }


def _axes(name: str) -> list[str]:
    """Names of an input's axes, all of them free."""
    return ["batch", "length_pair" if name.endswith("_pair") else "length"]


def length_limit(model: nn.Module) -> int | None:
    """The longest sequence where weights belong to positions, else None."""
    config = cast(Any, model).config
    bound = config.position == "ape" or any(getattr(part, "max_length", None) for part in model.modules())
    return config.max_position_embeddings if bound else None


def trace(model: Any) -> torch.export.ExportedProgram:
    """The model as a graph for any batch and length.

    Layers are plain torch; the two sequential operators, ``synvolution::synvolve`` and ``synvolution::gru``, are nodes.
    """
    from torch.fx.experimental import _config as symbolic_settings

    batch, *lengths = TRACED
    limit = length_limit(model)
    inputs = sample_inputs(model, batch, [min(n, limit or n) for n in lengths])
    dim = torch.export.Dim
    shapes = {name: {0: dim.AUTO(min=1), 1: dim.AUTO(min=1, max=limit)} for name in inputs}
    kinds = {"input_ids": TokenLogits, "input_values": ValueLogits}
    kind = PairLogits if "input_ids_pair" in inputs else kinds[next(iter(inputs))]
    try:
        # sizes of 1 are as free as others: nothing in the graph may depend on them
        with torch.no_grad(), _cpu.switched_off(), cast(Any, symbolic_settings).patch(backed_size_oblivious=True):
            program = torch.export.export(kind(model), (), inputs, dynamic_shapes=shapes, strict=False)
    except Exception as error:
        raise ValueError(_refusal(model, error)) from error
    fixed = [name for name, node in _placeholders(program) if not _is_free(node)]
    if fixed:
        raise ValueError(_refusal(model, f"the graph works for one size of {', '.join(fixed)} alone"))
    return program


def _refusal(model: Any, reason: object) -> str:
    first = str(reason).strip().split("\n")[0]
    return (
        f"mixer {model.config.mixer!r} cannot be exported as a graph for any length ({first}): use --format safetensors"
    )


def _placeholders(program: torch.export.ExportedProgram) -> Iterator[tuple[str, torch.fx.Node]]:
    """The inputs of a graph that are not parameters."""
    names = set(program.graph_signature.user_inputs)
    return ((node.name, node) for node in program.graph.nodes if node.name in names)


def _is_free(node: torch.fx.Node) -> bool:
    return all(isinstance(size, torch.SymInt) for size in node.meta["val"].shape[:2])


def write_torch_export(loaded: LoadedModel, folder: Path) -> dict[str, Any]:
    """model.pt2: the traced program."""
    program = trace(loaded.model)
    # what remains of the trace are guesses that exclude sizes of 1 or the longest; these are checked with the rest
    program._guards_code = [guard for guard in program._guards_code if "==" in guard]
    _strip(program.graph_module)
    torch.export.save(program, folder / "model.pt2")
    return {"needs": "import synvolution before torch.export.load"}


def _strip(graph: torch.fx.GraphModule) -> None:
    """Leave out where each node was written: paths of this machine."""
    for module in graph.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            node.meta.pop("stack_trace", None)


def run_torch_export(folder: Path) -> Runner:
    """The program as loaded from its file."""
    program = torch.export.load(folder / "model.pt2").module()
    return lambda inputs: cast(Array, program(**inputs).detach().numpy())


def write_safetensors(loaded: LoadedModel, folder: Path) -> dict[str, Any]:
    """model.safetensors and config.json."""
    cast(Any, loaded.model).save_pretrained(folder)
    return {}


def run_safetensors(folder: Path) -> Runner:
    """The model as ``from_pretrained`` loads it."""
    model: Any = load_model(folder, "cpu").model
    return lambda inputs: cast(Array, model(**inputs).logits.detach().numpy())


def write_onnx(loaded: LoadedModel, folder: Path) -> dict[str, Any]:
    """model.onnx."""
    need_packages(*PACKAGES)
    from synvolution.training.export_onnx import save_onnx

    return save_onnx(
        trace(loaded.model), folder / "model.onnx", {n: _axes(n) for n in sample_inputs(loaded.model, 1, [1, 1])}
    )


def run_onnx(folder: Path) -> Runner:
    """The model in onnxruntime."""
    from synvolution.training.onnx_model import OnnxModel

    model = OnnxModel(folder)
    return lambda inputs: cast(Array, model(**inputs).logits.numpy())


def need_packages(*names: str) -> None:
    """Say in one line which extra is missing.

    Example:
        >>> need_packages("no_such_package")
        Traceback (most recent call last):
        ImportError: no_such_package is not installed: pip install 'synvolution[export]'
    """
    missing = [name for name in names if not _importable(name)]
    if missing:
        raise ImportError(f"{', '.join(missing)} is not installed: pip install 'synvolution[export]'")


def _importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


#: How each format is written, and how it is run for the comparison.
FORMATS: Mapping[str, tuple[Callable[[LoadedModel, Path], dict[str, Any]], Callable[[Path], Runner]]] = {
    "onnx": (write_onnx, run_onnx),
    "torch-export": (write_torch_export, run_torch_export),
    "safetensors": (write_safetensors, run_safetensors),
}
