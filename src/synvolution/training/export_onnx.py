"""From a traced program to an ONNX file."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx
import torch

from synvolution.training.export_graph import OPSET, TRANSLATIONS


def save_onnx(program: torch.export.ExportedProgram, path: Path, axes: dict[str, list[str]]) -> dict[str, Any]:
    """Translate a traced model, name its axes, and write it; returns what is to be known about the file."""
    try:
        with _quiet():
            translated = torch.onnx.export(
                program, dynamo=True, opset_version=OPSET, verbose=False, custom_translation_table=TRANSLATIONS
            )
    except Exception as error:
        raise ValueError(f"ONNX cannot hold the model ({_cause(error)}): use --format safetensors") from error
    assert translated is not None
    model = translated.model_proto
    _name(model, axes)
    _strip(model.graph)
    foreign = sorted(
        {f"{node.domain}::{node.op_type}" for node in _nodes(model.graph) if node.domain not in ("", "ai.onnx")}
    )
    if foreign or model.functions:
        raise ValueError(f"ONNX has no operators for {', '.join(foreign) or 'functions'}: use --format safetensors")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return {"opset": OPSET, "nodes": sum(1 for _ in _nodes(model.graph))}


@contextlib.contextmanager
def _quiet() -> Any:
    """The exporter tells of packages it does not need and of constants it does not fold."""
    names = ("torch.onnx", "onnxscript", "onnx_ir")
    before = {name: logging.getLogger(name).level for name in names}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            for name in names:
                logging.getLogger(name).setLevel(logging.ERROR)
            yield
        finally:
            for name, level in before.items():
                logging.getLogger(name).setLevel(level)


def _cause(error: BaseException) -> str:
    """The first line of what went wrong at the root."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).strip().split("\n")[0]


def _nodes(graph: onnx.GraphProto) -> Any:
    """All nodes, those of loops included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _nodes(attribute.g)


def _name(model: onnx.ModelProto, axes: dict[str, list[str]]) -> None:
    """Names for the free axes instead of the trace's; shapes in between are left to the runtime."""
    for value in model.graph.input:
        for size, name in zip(value.type.tensor_type.shape.dim, axes[value.name], strict=False):
            size.dim_param = name
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    _rename_output(model.graph, "logits")
    model.producer_name, model.producer_version = "synvolution", version("synvolution")
    del model.graph.value_info[:]


def _rename_output(graph: onnx.GraphProto, name: str) -> None:
    old = graph.output[0].name
    for node in graph.node:
        node.output[:] = [name if value == old else value for value in node.output]
        node.input[:] = [name if value == old else value for value in node.input]
    graph.output[0].name = name


def _strip(graph: onnx.GraphProto) -> None:
    """Leave out where each node was written: paths of this machine."""
    for node in _nodes(graph):
        node.doc_string = ""
        del node.metadata_props[:]
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                del attribute.g.value_info[:]
                del attribute.g.metadata_props[:]
    for value in (*graph.input, *graph.output, *graph.initializer):
        del value.metadata_props[:]
    del graph.metadata_props[:]
