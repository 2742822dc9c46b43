"""What every layer promises: padding and batch order change nothing, gradients, half precision, compilation, seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import synvolution as sv
from synvolution.nn import (
    POOLINGS,
    ConverterBlock,
    LearnedPosition,
    NoMixer,
    NoPosition,
    Pooling,
    RealBlock,
    RecurrentPosition,
    SinusoidalPosition,
)
from tests.oracles import assert_near

D, N = 12, 9
LENGTHS = (9, 1, 5)
ROWS = torch.tensor([4, 0, 8, 2, 6, 1, 7, 3, 5])


class Difference(nn.Module):
    """A mixer with real output: each position minus the mean of its sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(D, D)
        self.pool = Pooling("mean")

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        out: Tensor = self.linear(x - self.pool(x, mask)[:, None])
        return out


MIXERS: dict[str, Callable[[], nn.Module]] = {
    "synvolution": lambda: sv.Synvolution(D),
    "kernelution": lambda: sv.Kernelution(D),
    "heads": lambda: sv.Kernelution(D, num_heads=3),
    "reach": lambda: sv.Kernelution(D, reach=1.5),
    "reach of each head": lambda: sv.Synvolution(D, num_heads=2, reach=[0.1, 3.0]),
    "spread": lambda: sv.Kernelution(D, num_heads=4, reach="spread"),
    "orders": lambda: sv.Kernelution(D, orders=3, num_heads=2),
    "block permutation": lambda: sv.Kernelution(D, permutation="block", orders=2),
    "bit reversal": lambda: sv.Kernelution(D, permutation="bit_reversal", num_heads=2),
    "given permutation": lambda: sv.Kernelution(D, permutation=ROWS),
    "given permutations": lambda: sv.Kernelution(D, permutation=torch.stack((ROWS, ROWS.flip(0))), orders=2),
    "learned permutation": lambda: sv.Kernelution(D, permutation="learned", length=N, orders=2),
    "basis": lambda: sv.Kernelution(D, basis="jacobi", basis_options={"a": 1.0}, order=3),
    "damping": lambda: sv.Kernelution(D, damping="lorentz", damping_options={"xi": 2.0}, order=4),
    "no bias, few features": lambda: sv.Kernelution(D, bias=False, angle_features=1),
    "scan": lambda: sv.Kernelution(D, backend="scan"),
    "control": lambda: NoMixer(D),
}
LAYERS: dict[str, Callable[[], nn.Module]] = {
    **MIXERS,
    "converter block": lambda: ConverterBlock(D, 20, sv.Kernelution(D, num_heads=2, reach="spread")),
    "default block": lambda: ConverterBlock(D, 20),
    "control block": lambda: ConverterBlock(D, 20, NoMixer(D)),
    "real block": lambda: RealBlock(D, 20, Difference()),
    "rpe": lambda: RecurrentPosition(D),
    "ape": lambda: LearnedPosition(D, max_length=N),
    "spe": lambda: SinusoidalPosition(D),
    "none": lambda: NoPosition(D),
}
POOLED: dict[str, Callable[[], nn.Module]] = {kind: (lambda kind=kind: Pooling(kind)) for kind in POOLINGS}  # type: ignore[misc]
layers = pytest.mark.parametrize("name", LAYERS)


def build(name: str, dtype: torch.dtype = torch.float32) -> nn.Module:
    return {**LAYERS, **POOLED}[name]().to(dtype).eval()


def masks(side: str) -> Tensor:
    n = torch.arange(N)
    return torch.stack([n < k if side == "right" else n >= N - k for k in LENGTHS])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", [*LAYERS, *POOLED])
def test_padding_changes_nothing(name: str, side: str, dtype: torch.dtype) -> None:
    layer, mask = build(name, dtype), masks(side)
    x = torch.randn(3, N, D, dtype=dtype)
    x[~mask] *= 100
    out = layer(x, mask)
    tolerance = {torch.float32: 1e-6, torch.float64: 1e-13}[dtype]
    for i in range(3):
        alone = layer(x[i : i + 1, mask[i]])[0]
        found = out[i] if name in POOLED else out[i, mask[i]]
        scale = alone.abs().max()  # strictly relative, also where all entries are small
        assert_near(found / scale, alone / scale, tolerance, what=f"sequence {i}")


@pytest.mark.parametrize("name", [*LAYERS, *POOLED])
def test_full_mask_and_batch_order_change_nothing(name: str) -> None:
    layer, x, order = build(name), torch.randn(4, N, D), torch.tensor([2, 0, 3, 1])
    out = layer(x)
    assert_near(layer(x, torch.ones(4, N, dtype=torch.bool)), out, 1e-6)
    assert_near(layer(x[order]), out[order], 1e-6)


@layers
def test_gradients_reach_every_parameter_in_training(name: str) -> None:
    layer = build(name).train()
    x = torch.randn(3, N, D, requires_grad=True)
    out = layer(x, masks("right"))
    (out * torch.randn_like(out)).sum().backward()
    assert x.grad is not None
    for parameter, value in layer.named_parameters():
        assert value.grad is not None, parameter
        assert bool(torch.isfinite(value.grad).all()), parameter
        assert value.grad.abs().max() > 0, parameter
    assert all(not p.is_complex() for p in layer.parameters())


@pytest.mark.parametrize("name", ["heads", "orders", "bit reversal", "damping", "converter block", "rpe", "real block"])
def test_gradcheck(name: str) -> None:
    layer = build(name, torch.float64)
    mask = torch.tensor([[True] * 4, [True, True, True, False]])
    x = torch.randn(2, 4, D, dtype=torch.float64, requires_grad=True)
    names, values = zip(*layer.named_parameters(), strict=True)

    def function(x: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x, mask))

    assert torch.autograd.gradcheck(function, (x, *values), fast_mode=True)


@layers
def test_same_seed_same_layer_and_answer(name: str) -> None:
    x = torch.randn(2, N, D)
    answers = []
    for _ in range(2):
        torch.manual_seed(5)
        layer = LAYERS[name]()
        answers.append(layer(x))
    assert torch.equal(*answers)


@layers
def test_reset_gives_the_construction_again(name: str) -> None:
    torch.manual_seed(3)
    layer = LAYERS[name]()
    first = {key: value.clone() for key, value in layer.state_dict().items()}
    scalars = [key for key, value in first.items() if value.unique().numel() == 1 and "bias" not in key]
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(1.0)
    for module in layer.modules():
        if callable(reset := getattr(module, "reset_parameters", None)):
            reset()
    for key in scalars:
        assert torch.equal(layer.state_dict()[key], first[key]), key
    for key, value in layer.state_dict().items():
        assert value.mean().sub(first[key].mean()).abs() < 0.9, key


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@layers
def test_autocast(name: str, dtype: torch.dtype) -> None:
    layer, x, mask = build(name), torch.randn(3, N, D), masks("left")
    exact = layer(x, mask)
    with torch.autocast("cpu", dtype=dtype):
        out = layer(x, mask)
        assert layer(x.to(dtype), mask).dtype == dtype
    assert out.dtype == torch.float32
    assert_near(out[mask], exact[mask], 0.1)
    out[mask].square().sum().backward() if out.requires_grad else None
    for parameter in layer.parameters():
        assert parameter.grad is None or bool(torch.isfinite(parameter.grad).all())


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "rpe"])  # the GRU's weights stay float32
def test_whole_model_in_bfloat16(name: str) -> None:
    layer, x, mask = build(name), torch.randn(3, N, D), masks("right")
    exact = layer(x, mask)
    out = layer.to(torch.bfloat16)(x.to(torch.bfloat16), mask)
    assert out.dtype == torch.bfloat16
    assert_near(out[mask].float(), exact[mask], 0.1)


COMPILED = ["converter block", "block permutation", "given permutation", "rpe", "ape", "ends"]


@pytest.mark.parametrize("name", COMPILED)
def test_compiles_without_graph_breaks(name: str) -> None:
    torch._dynamo.reset()
    layer = build(name)
    compiled: Any = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (7, N):
        x, mask = torch.randn(3, n, D, requires_grad=True), masks("right")[:, :n]
        expected, found = layer(x, mask), compiled(x, mask)
        assert_near(found, expected, 1e-6)
        weight = torch.randn_like(expected)
        (g_expected,), (g_found,) = (torch.autograd.grad((y * weight).sum(), x) for y in (expected, found))
        assert_near(g_found, g_expected)


@layers
def test_state_dict_round_trip(name: str) -> None:
    layer, x = build(name), torch.randn(2, N, D)
    again = build(name)
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(x), layer(x))


@pytest.mark.parametrize("name", MIXERS)
@pytest.mark.parametrize("n", [1, 2])
def test_shortest_sequences(name: str, n: int) -> None:
    out = build(name)(torch.randn(2, n, D))
    assert out.shape == (2, n, 2, D)
    assert bool(torch.isfinite(out).all())
