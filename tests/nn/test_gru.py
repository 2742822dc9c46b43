"""The GRU module against torch.nn.GRU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import synvolution as sv
from synvolution.ops import _cpu

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def pair(*args: object, **options: object) -> tuple[torch.nn.GRU, sv.GRU]:
    """torch's layer and ours with the same parameters"""
    theirs, ours = torch.nn.GRU(*args, **options), sv.GRU(*args, **options)  # type: ignore[arg-type]
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def results(layer: torch.nn.Module, x: Tensor, hx: Tensor | None) -> list[Tensor]:
    leaves = [t.detach().clone().requires_grad_() for t in (x, hx) if t is not None]
    output, h_n = layer(*leaves)
    loss = sum((torch.arange(t.numel()).sin().to(t).view_as(t) * t).sum() for t in (output, h_n))
    return [output, h_n, *torch.autograd.grad(loss, [*leaves, *layer.parameters()])]


def assert_equal(given: list[Tensor], expected: list[Tensor]) -> None:
    for a, b in zip(given, expected, strict=True):
        tolerance = TOLERANCE[a.dtype]
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * max(1.0, b.abs().max().item()))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("start", [True, False])
def test_equals_torch(dtype: torch.dtype, layers: int, batch_first: bool, bias: bool, start: bool) -> None:
    theirs, ours = pair(7, 19, layers, bias=bias, batch_first=batch_first, dtype=dtype)
    x = torch.randn((3, 21, 7) if batch_first else (21, 3, 7), dtype=dtype)
    hx = torch.randn(layers, 3, 19, dtype=dtype) if start else None
    assert_equal(results(ours, x, hx), results(theirs, x, hx))


@pytest.mark.parametrize("hidden", [1, 2, 3, 5, 16, 17, 32, 33, 64, 128, 130])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_sizes_equal_torch(hidden: int, dtype: torch.dtype) -> None:
    for batch, steps in ((1, 1), (2, 2), (3, 7), (5, 33)):
        theirs, ours = pair(hidden, hidden, 2, batch_first=True, dtype=dtype)
        x = torch.randn(batch, steps, hidden, dtype=dtype)
        assert_equal(results(ours, x, None), results(theirs, x, None))


@pytest.mark.parametrize("batch_first", [True, False])
def test_one_sequence(batch_first: bool) -> None:
    theirs, ours = pair(4, 6, 2, batch_first=batch_first)
    x, hx = torch.randn(9, 4), torch.randn(2, 6)
    assert_equal(results(ours, x, hx), results(theirs, x, hx))
    mask = torch.arange(9) < 5
    output, h_n = ours(x, hx, mask)
    alone, last = theirs(x[:5], hx)
    assert_equal([output[:5], h_n], [alone, last])


def test_state_dict_is_interchangeable() -> None:
    theirs, ours = pair(3, 5, 2)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict(sv.GRU(3, 5, 2).state_dict())
    torch.manual_seed(0)
    first = torch.nn.GRU(3, 5, 2).state_dict()
    torch.manual_seed(0)
    second = sv.GRU(3, 5, 2).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("batch_first", [True, False])
def test_mask_equals_each_sequence_alone(batch_first: bool) -> None:
    theirs, ours = pair(4, 6, 2, batch_first=batch_first, dtype=torch.float64)
    lengths = [3, 8, 0, 1]
    x = torch.randn(4, 8, 4, dtype=torch.float64)
    mask = torch.arange(8) < torch.tensor(lengths)[:, None]
    output, h_n = ours(x if batch_first else x.transpose(0, 1), None, mask)
    output = output if batch_first else output.transpose(0, 1)
    for row, length in enumerate(lengths):
        assert not output[row, length:].any()
        if length == 0:
            assert not h_n[:, row].any()
            continue
        alone, last = theirs(x[row, :length])
        assert_equal([output[row, :length], h_n[:, row]], [alone, last])


def test_dropout_between_layers_only() -> None:
    torch.manual_seed(0)
    layer = sv.GRU(4, 64, 2, batch_first=True, dropout=0.5)
    x = torch.randn(2, 5, 4)
    first, second = layer(x), layer(x)
    assert torch.equal(first[1][0], second[1][0])
    assert not torch.equal(first[0], second[0])
    assert first[0].ne(0).all()
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("built", [True, False])
def test_autocast_computes_in_float32(dtype: torch.dtype, built: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not built:
        monkeypatch.setattr(_cpu, "kernels", None)
    layer = sv.GRU(4, 6, 2, batch_first=True)
    x = torch.randn(2, 5, 4).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, h_n = layer(x)
    assert output.dtype == h_n.dtype == torch.float32
    assert torch.equal(output, layer(x.float())[0])


def test_module_in_bfloat16() -> None:
    """Weights in half precision: computed in float32, returned as they came, as torch's layer does."""
    layer = sv.GRU(4, 6, 2, batch_first=True).to(torch.bfloat16)
    x = torch.randn(2, 5, 4, dtype=torch.bfloat16)
    output, h_n = layer(x)
    assert output.dtype == h_n.dtype == torch.bfloat16
    wide = sv.GRU(4, 6, 2, batch_first=True)
    wide.load_state_dict(layer.state_dict())
    assert torch.equal(output, wide(x.float())[0].to(torch.bfloat16))
    output.sum().backward()
    assert all(p.grad is not None and p.grad.dtype == torch.bfloat16 for p in layer.parameters())


@pytest.mark.filterwarnings("ignore")  # of the compiler's own
@pytest.mark.parametrize("masked", [False, True])
def test_compile(masked: bool) -> None:
    _, ours = pair(4, 6, 2, batch_first=True)
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    x, mask = torch.randn(2, 5, 4), torch.arange(5) < torch.tensor([[3], [5]]) if masked else None
    given, expected = ([*layer(x, None, mask)] for layer in (compiled, ours))
    assert_equal(given, expected)
    grads = [torch.autograd.grad(out[0].sum(), list(ours.parameters())) for out in (given, expected)]
    assert_equal(list(grads[0]), list(grads[1]))


def test_meta_device() -> None:
    layer = sv.GRU(4, 6, 2, batch_first=True, device="meta")
    assert layer(torch.randn(2, 5, 4, device="meta"))[0].shape == (2, 5, 6)


def test_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cpu, "kernels", None)
    theirs, ours = pair(4, 6, 2, batch_first=True)
    x = torch.randn(2, 5, 4)
    assert_equal(results(ours, x, None), results(theirs, x, None))


def test_refuses() -> None:
    with pytest.raises(ValueError, match="bidirectional"):
        sv.GRU(3, 4, bidirectional=True)
    with pytest.raises(ValueError, match="proj_size"):
        sv.GRU(3, 4, proj_size=2)
    layer = sv.GRU(3, 4, batch_first=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(2, 5, 3), torch.tensor([5, 3]), batch_first=True)
    with pytest.raises(TypeError, match="mask"):
        layer(packed)
    with pytest.raises(ValueError, match="the last 3"):
        layer(torch.randn(2, 5, 4))
    with pytest.raises(ValueError, match="hx of shape"):
        layer(torch.randn(2, 5, 3), torch.randn(1, 3, 4))
    with pytest.raises(ValueError, match="mask of shape"):
        layer(torch.randn(2, 5, 3), mask=torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(TypeError, match="float64"):
        layer(torch.randn(2, 5, 3).double())
