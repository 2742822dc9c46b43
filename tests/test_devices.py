"""What runs on devices without kernels of ours (MPS, XPU, …): plain torch without complex numbers and without float64.

MPS has neither. The path is the same for every such device, so it can be watched on the CPU with the kernels left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import synvolution as sv
from synvolution.nn import GFFN, ScaleNorm
from synvolution.ops import _backends, _cpu, givens
from synvolution.ops.gate import gate
from synvolution.ops.means import sine_means
from synvolution.ops.synvolve import synvolve_backward, synvolve_op

FORBIDDEN = (torch.float64, torch.complex32, torch.complex64, torch.complex128)
OPERATORS = {
    torch.ops.synvolution.synvolve.default: synvolve_op,
    torch.ops.synvolution.synvolve_backward.default: synvolve_backward,
    torch.ops.synvolution.givens_chain.default: givens.givens_chain,
    torch.ops.synvolution.givens_chain_backward.default: givens.givens_chain_backward,
}


class NoWideNumbers(TorchDispatchMode):
    """Raises when an operation makes a tensor of a type that MPS does not have; looks into our own operators too."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.add(str(func))
        if func in OPERATORS:
            with self:
                return OPERATORS[func]._init_fn(*args, **(kwargs or {}))
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor) and leaf.dtype in FORBIDDEN:
                raise AssertionError(f"{func} makes {leaf.dtype}")
        return out


@pytest.fixture(autouse=True)
def _other_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """CPU tensors are treated like those of a device that we have no kernels for."""
    monkeypatch.delitem(_backends.BACKENDS, "cpp", raising=False)
    assert _backends.automatic(torch.device("cpu")) in ("scan", "triton")
    with _cpu.switched_off():
        yield


def model() -> Callable[[], Tensor]:
    sizes: dict[str, Any] = {"vocab_size": 9, "hidden_size": 12, "intermediate_size": 16, "num_labels": 3}
    config = sv.ConverterConfig(**sizes, num_heads=2, reach="spread", pooling="ends")
    classifier = sv.ConverterForSequenceClassification(config).train()
    tokens, labels = torch.randint(1, 9, (3, 11)), torch.tensor([0, 2, 1])
    mask = (torch.arange(11) < torch.tensor([[11], [4], [7]])).long()
    return lambda: classifier(tokens, attention_mask=mask, labels=labels).loss


def layer(module: nn.Module, *shape: int) -> Callable[[], Tensor]:
    x = torch.randn(shape, requires_grad=True)

    def run() -> Tensor:
        out = module(x)
        return (out[0] if isinstance(out, tuple) else out).square().sum()

    return run


def synvolve() -> Callable[[], Tensor]:
    v, phase = torch.randn(2, 9, 2, 3, requires_grad=True), torch.randn(2, 9, requires_grad=True)
    lower, upper = (torch.randn(2, 8, 3, requires_grad=True) for _ in range(2))
    mask = torch.arange(9) < torch.tensor([[9], [5]])
    return lambda: sv.synvolve(v, lower, upper, phase, mask).square().sin().sum()


def gru() -> Callable[[], Tensor]:
    module, x = sv.GRU(4, 6, 2, batch_first=True, dropout=0.1), torch.randn(2, 5, 4, requires_grad=True)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    return lambda: module(x, mask=mask)[0].square().sum()


CASES: dict[str, Callable[[], Callable[[], Tensor]]] = {
    "synvolve": synvolve,
    "GRU": gru,
    "ScaleNorm": lambda: layer(ScaleNorm(5), 3, 5),
    "planar ScaleNorm": lambda: layer(ScaleNorm(5, planar=True), 3, 2, 5),
    "gate": lambda: lambda: gate(torch.randn(3, 5, requires_grad=True), torch.randn(3, 5), 0.1).sum(),
    "means of sines": lambda: lambda: sine_means(torch.randn(4, 6, requires_grad=True), 3, unit=True).sum(),
    "GFFN": lambda: layer(GFFN(5, 7), 2, 4, 2, 5),
    "Kernelution, two orders": lambda: layer(sv.Kernelution(6, orders=2, permutation="block"), 2, 8, 6),
    "model": model,
}


@pytest.mark.parametrize("name", CASES)
def test_neither_complex_nor_float64(name: str) -> None:
    run = CASES[name]()
    with NoWideNumbers() as watch:
        run().backward()
    if name in ("synvolve", "model"):
        assert {"synvolution.synvolve.default", "synvolution.synvolve_backward.default"} <= watch.seen
        assert any("cos" in op for op in watch.seen), "the inside of the operator was not seen"


def test_the_watch_can_fail() -> None:
    for make in (lambda: torch.zeros(2).double(), lambda: torch.complex(torch.zeros(2), torch.zeros(2))):
        with pytest.raises(AssertionError, match="makes torch"), NoWideNumbers():
            make()


def test_shapes_on_the_meta_device() -> None:
    v, angles, phase = (torch.empty(s, device="meta") for s in ((2, 9, 2, 4), (2, 8, 3), (2, 9)))
    assert sv.synvolve(v, angles, angles, phase).shape == v.shape
    assert sv.Kernelution(4).to("meta")(torch.empty(2, 9, 4, device="meta")).shape == (2, 9, 2, 4)


def test_errors_name_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    v, angles, phase = (torch.empty(s, device="meta") for s in ((1, 3, 2, 2), (1, 2, 3), (1, 3)))
    with pytest.raises(ValueError, match="upper is on cpu but v is on meta"):
        sv.synvolve(v, angles, angles.to("meta").new_empty(1, 2, 3, device="cpu"), phase)
    for name, backend in _backends.BACKENDS.items():
        if backend.devices is not None:
            with pytest.raises(ValueError, match=rf"backend '{name}' runs on .*, the tensors are on mps"):
                _backends.choose(name, torch.device("mps"))
