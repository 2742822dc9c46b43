"""Models in other runtimes: the same logits at every length and padding, the same predictions, clear refusals."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import synvolution as sv
from synvolution import cli
from synvolution.data.pixels import PixelProcessor
from synvolution.data.tokenizers import character_tokenizer
from synvolution.training import export_check
from synvolution.training.export import export_model, run_onnx, run_torch_export
from synvolution.training.export_check import compare, sample_inputs
from synvolution.training.inference import load_model

onnx = pytest.importorskip("onnx")

#: The exporter's own.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

#: Batch and lengths that every graph must know.
LENGTHS = ((1, 1), (3, 1), (3, 2), (1, 100), (3, 100))


def saved(folder: Path, *, pair: bool = False, **options: Any) -> Path:
    """A small model with random weights, as train leaves it."""
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"hidden_size": 12, "intermediate_size": 16, "num_labels": 3, **options}
    labels: dict[str, Any] = {"id2label": {0: "a", 1: "b", 2: "c"}, "label2id": {"a": 0, "b": 1, "c": 2}}
    if "input_features" in options:
        config = sv.ConverterConfig(**sizes, pad_token_id=None, **labels)
        PixelProcessor(10, 10, mode="value").save_pretrained(folder)
    else:
        tokenizer = character_tokenizer(["abcdefgh"])
        tokenizer.save_pretrained(folder)
        config = sv.ConverterConfig(**sizes, vocab_size=len(tokenizer), **labels)
    kind = sv.ConverterForPairClassification if pair else sv.ConverterForSequenceClassification
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # larger than initial weights, so that a wrong part shows
            parameter.mul_(1.5)
    model.save_pretrained(folder)
    return folder


def assert_same(folder: Path, exported: Path, run: Any, lengths: tuple[tuple[int, int], ...] = LENGTHS) -> None:
    model: Any = load_model(folder, "cpu").model
    runner = run(exported)
    for batch, length in lengths:
        inputs = sample_inputs(model, batch, [length, max(1, length - 1)])
        with torch.inference_mode():
            expected = model(**inputs).logits.numpy()
        np.testing.assert_allclose(runner(inputs), expected, atol=1e-4, rtol=1e-4, err_msg=f"{batch}×{length}")


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["synvolution", *arguments])
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0) if not isinstance(end.code, str) else 1
    return 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("model"), num_heads=2, reach="spread", pooling="ends", num_layers=1)


@pytest.fixture(scope="module")
def exported(folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_check, "CHECKS", ((1, 1), (3, 40)))
        export_model(folder, "onnx")
    return folder / "onnx"


def test_onnx_gives_the_models_logits(folder: Path, exported: Path) -> None:
    assert_same(folder, exported, run_onnx)


def test_onnx_file_holds_standard_real_operators_alone(exported: Path) -> None:
    graph = onnx.load(exported / "model.onnx")
    nodes = list(_nodes(graph.graph))
    assert {node.domain for node in nodes} <= {"", "ai.onnx"}
    assert not graph.functions
    assert {node.op_type for node in nodes} >= {"GRU", "Loop"}
    types = {value.type.tensor_type.elem_type for value in (*graph.graph.input, *graph.graph.output)}
    assert types <= {onnx.TensorProto.FLOAT, onnx.TensorProto.INT64}
    axes = {value.name: [size.dim_param for size in value.type.tensor_type.shape.dim] for value in graph.graph.input}
    assert axes == {"input_ids": ["batch", "length"], "attention_mask": ["batch", "length"]}
    assert str(Path(sv.__file__).parent).encode() not in (exported / "model.onnx").read_bytes()


def _nodes(graph: Any) -> Any:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _nodes(attribute.g) if attribute.HasField("g") else ()


def test_exported_folder_tells_what_it_is(exported: Path) -> None:
    facts = json.loads((exported / "export.json").read_text())
    assert facts["classes"] == ["a", "b", "c"]
    assert facts["inputs"]["input_ids"] == ["batch", "length"]
    assert facts["opset"] == 18
    assert facts["largest_difference"] <= facts["bound"] == 1e-4
    assert {"config.json", "tokenizer.json", "model.onnx"} <= {path.name for path in exported.iterdir()}
    assert "onnxruntime" in facts["versions"]


def test_prediction_in_onnxruntime_builds_no_torch_model(
    folder: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "new.csv"
    data.write_text("text\nabc\nhgfedcba\na\nbbbbbbbbbbbbbbbbbbbbbb\n")
    assert command(monkeypatch, "predict", str(folder), str(data)) == 0
    expected = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))

    def forbidden(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the torch model was built")

    monkeypatch.setattr(sv.ConverterForSequenceClassification, "__init__", forbidden)
    assert command(monkeypatch, "predict", str(exported), str(data), "--backend", "onnx") == 0
    found = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["label"] for row in found] == [row["label"] for row in expected]
    for one, other in zip(found, expected, strict=True):
        assert [float(one[f"p({name})"]) for name in "abc"] == pytest.approx(
            [float(other[f"p({name})"]) for name in "abc"], abs=2e-5
        )


def test_wrong_folders_are_told_what_to_do(
    folder: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    (tmp_path / "damaged").mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "damaged" / name).write_bytes((exported / name).read_bytes())
    (tmp_path / "damaged" / "model.onnx").write_bytes(b"nonsense")
    for arguments, message in (
        (("export", str(tmp_path / "none")), "holds no model"),
        (("export", str(tmp_path / "foreign")), "'bert'"),
        (("export", str(tmp_path / "broken")), "not JSON"),
        (("export", str(exported)), "--backend onnx"),
        (("export", str(folder)), "exists"),
        (("export", str(folder), "--out", "/proc/nothing/here"), "/proc/nothing"),
        (("export", str(folder), "--format", "tensorflow"), "tensorflow"),
        (("predict", str(folder), "new.csv", "--backend", "onnx"), "synvolution export"),
        (("predict", str(exported), "new.csv"), "--backend onnx"),
        (("predict", str(tmp_path / "damaged"), "new.csv", "--backend", "onnx"), "not a model"),
    ):
        assert command(monkeypatch, *arguments) == 2, arguments
        written = capsys.readouterr()
        assert message in written.err + written.out, arguments
        assert "Traceback" not in written.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"permutation": "learned", "max_position_embeddings": 8}, "permutation 'learned'"),
        ({"mixer": "s4d"}, "mixer 's4d' cannot be exported"),
    ],
)
def test_what_no_graph_can_hold(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = saved(tmp_path, **options)
    with pytest.raises(ValueError, match=message):
        export_model(folder, "onnx")
    assert not (tmp_path / "onnx").exists()


def test_missing_package(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ImportError, match=r"pip install 'synvolution\[export\]'"):
        export_model(folder, "onnx", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_wrong_export_is_not_written(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_check, "BOUND", -1.0)
    with pytest.raises(ValueError, match="nothing was written"):
        export_model(folder, "safetensors", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_safetensors_folder(folder: Path, tmp_path: Path) -> None:
    facts = export_model(folder, "safetensors", tmp_path / "out")
    assert facts["largest_difference"] == 0
    model = sv.ConverterForSequenceClassification.from_pretrained(tmp_path / "out")
    assert model.config.id2label[2] == "c"
    assert (tmp_path / "out" / "tokenizer.json").exists()


def test_torch_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_check, "CHECKS", ((1, 1), (3, 40)))
    folder = saved(tmp_path, orders=2, permutation="block", position_layers=1)
    export_model(folder, "torch-export")
    assert_same(folder, folder / "torch-export", run_torch_export)


def test_comparison_sees_a_difference(folder: Path) -> None:
    model: Any = load_model(folder, "cpu").model
    checks = compare(model, lambda inputs: np.zeros((len(inputs["input_ids"]), 3), np.float32), None)
    assert not any(check.within for check in checks)


KINDS: dict[str, dict[str, Any]] = {
    "pairs": {"pair": True, "pooling": "last"},
    "values": {"input_features": 1, "position": "ape", "max_position_embeddings": 2000, "pooling": "first"},
    "sinusoidal": {"position": "spe", "pooling": "max", "permutation": "bit_reversal"},
    "orders": {"num_heads": 3, "orders": 2, "permutation": "block", "num_layers": 2},
    "alone": {"position": "none", "mixer": "none", "pooling": "sum"},
    "synvolution": {"mixer": "synvolution", "num_layers": 1, "bias": False},
    "polynomial": {"basis": "jacobi", "damping": "jackson", "order": 4},
    "gru alone": {"num_layers": 0, "pooling": "last"},
    "vanilla": {"mixer": "vanilla", "num_heads": 2},
    "fnet": {"mixer": "fnet"},
    "linear": {"mixer": "linear"},
    "performer": {"mixer": "performer"},
    "cosformer": {"mixer": "cosformer"},
    "luna": {"mixer": "luna"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("format", "run"), [("onnx", run_onnx), ("torch-export", run_torch_export)])
def test_every_kind(name: str, format: Any, run: Any, tmp_path: Path) -> None:
    folder = saved(tmp_path, **KINDS[name])
    facts = export_model(folder, format)  # compares at 1, 2, 100 and 2000 positions
    assert facts["largest_difference"] <= 1e-4 * max(1, *(check["logit"] for check in facts["checks"]))
    assert_same(folder, folder / format, run)


@pytest.mark.slow
def test_long_and_padded(folder: Path, exported: Path) -> None:
    assert_same(folder, exported, run_onnx, ((1, 2000), (3, 2000), (2, 5000)))
