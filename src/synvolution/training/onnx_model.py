"""An exported model in onnxruntime, called like the one it was made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from synvolution.models.configuration import ConverterConfig

#: The file of the graph in an exported folder.
FILE = "model.onnx"


class Output(NamedTuple):
    """What a model returns: logits (B, classes)."""

    logits: Tensor


class OnnxModel:
    """Logits from model.onnx. The torch model is not built, its weights are not there.

    Args:
        folder: that ``synvolution export`` wrote.
    """

    device = torch.device("cpu")

    def __init__(self, folder: Path) -> None:
        if not (folder / FILE).is_file():
            raise ValueError(
                f"{folder} holds no {FILE}: `synvolution export {folder} --format onnx` makes a folder that does"
            )
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError("onnxruntime is not installed: pip install 'synvolution[export]'") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                str(folder / FILE), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its exceptions have no class in common
            raise ValueError(f"{folder / FILE} is not a model that onnxruntime can run: {error}") from error
        self.config: ConverterConfig = ConverterConfig.from_pretrained(folder, local_files_only=True)

    def __call__(self, **inputs: Tensor) -> Output:
        """Inputs as the collator makes them → logits (B, classes)."""
        feeds: dict[str, Any] = {name: value.numpy() for name, value in inputs.items()}
        (logits,) = self._session.run(["logits"], feeds)
        return Output(torch.from_numpy(logits))
