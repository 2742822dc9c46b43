"""What every mixer promises: shapes, gradients, one sequence at a time, any length, masks, repeatable results."""

from __future__ import annotations

import copy
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from synvolution.nn import MIXERS, build_mixer
from synvolution.nn.mixers import PADDING_MATTERS
from tests.nn.mixers.small import BASELINES, DIM, HEADS, MAX_LENGTH, OPTIONS, mask_of, small

#: Softmax does not feel a number added to all scores of a row: these have no gradient but rounding.
NO_GRADIENT = {"key.bias", "rule.gathered_key.bias", "attention.key.bias", "attention.key_global.bias"}
EXACT = [name for name in MIXERS if name not in PADDING_MATTERS]


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 12, 13, 29, 40])
@pytest.mark.parametrize("name", MIXERS)
def test_any_length(name: str, n: int) -> None:
    mixer, x = small(name), torch.randn(3, n, DIM)
    out = mixer(x)
    assert out.shape == ((3, n, 2, DIM) if getattr(mixer, "planar", False) else x.shape)
    assert out.isfinite().all()
    assert out.dtype == x.dtype


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", BASELINES)
def test_gradients_reach_everything(name: str, training: bool) -> None:
    mixer = small(name).train(training)
    x = torch.randn(3, MAX_LENGTH, DIM, requires_grad=True)
    (mixer(x) * torch.randn(3, MAX_LENGTH, DIM)).sum().backward()
    for parameter_name, parameter in mixer.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        assert parameter.grad.any() or parameter_name in NO_GRADIENT, parameter_name
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert (x.grad != 0).any(-1).all()


@pytest.mark.parametrize("name", sorted(set(BASELINES) - {"reformer", "longformer"}))
def test_gradients_are_right(name: str) -> None:
    """Against finite differences. Reformer sorts by x, which jumps; Longformer works in float32 inside."""
    mixer, mask = small(name).double(), mask_of([7, 5], 7)
    x = torch.randn(2, 7, DIM, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: mixer(x, mask), (x,), fast_mode=True)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", MIXERS)
def test_a_sequence_does_not_feel_its_neighbours(name: str, masked: bool) -> None:
    mixer, x = small(name), torch.randn(4, 13, DIM)
    x[2] *= 10
    mask = mask_of([13, 7, 13, 1], 13) if masked else None
    together, order = mixer(x, mask), torch.tensor([2, 0, 3, 1])
    close(mixer(x[order], None if mask is None else mask[order]), together[order])
    for i in range(4):
        close(mixer(x[i : i + 1], None if mask is None else mask[i : i + 1]), together[i : i + 1])


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", EXACT)
def test_padding_changes_nothing(name: str, side: str) -> None:
    """Also where padding holds NaN, and in the gradients."""
    mixer, lengths = small(name), [29, 16, 13, 4, 2, 1]
    mask = mask_of(lengths, 29, side)
    x = torch.randn(6, 29, DIM).masked_fill(~mask[..., None], float("nan"))
    if name in ("kernelution", "synvolution", "none"):  # they leave padding where it is, and finite stays finite
        x = x.nan_to_num(1e3)
    x.requires_grad_()
    padded = mixer(x, mask)
    for i, length in enumerate(lengths):
        close(padded[i][mask[i]], mixer(x[i][mask[i]][None])[0])
        assert mask[i].sum() == length
    (gradient,) = torch.autograd.grad(padded[mask].square().sum(), x)
    assert gradient.isfinite().all()
    assert not gradient[~mask].any()


@pytest.mark.parametrize("name", [name for name in EXACT if name in BASELINES])
def test_holes_are_skipped(name: str) -> None:
    mixer, x, mask = small(name), torch.randn(2, 17, DIM), torch.rand(2, 17) < 0.6
    out = mixer(x, mask)
    for i in range(2):
        close(out[i][mask[i]], mixer(x[i][mask[i]][None])[0])
    assert not out[~mask].any()


@pytest.mark.parametrize("name", PADDING_MATTERS)
def test_padding_matters_where_it_is_said_to(name: str) -> None:
    """But what stands in the padded rows does not."""
    mixer, x, mask = small(name), torch.randn(2, 13, DIM), mask_of([13, 7], 13)
    out = mixer(x, mask)
    assert (out[1, :7] - mixer(x[1:, :7])[0]).abs().max() > 0.01
    close(mixer(x.masked_fill(~mask[..., None], float("nan")), mask), out)


@pytest.mark.parametrize("name", MIXERS)
def test_a_full_mask_is_no_mask(name: str) -> None:
    mixer, x = small(name), torch.randn(3, 13, DIM)
    close(mixer(x, torch.ones(3, 13, dtype=torch.bool)), mixer(x))


@pytest.mark.parametrize("name", MIXERS)
def test_an_empty_sequence_harms_nobody(name: str) -> None:
    mixer, x, mask = small(name).train(), torch.randn(2, 13, DIM, requires_grad=True), mask_of([13, 0], 13)
    out = mixer(x, mask)
    assert out.isfinite().all()
    (gradient,) = torch.autograd.grad(out[0].sum(), x)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", BASELINES)
def test_repeatable(name: str) -> None:
    """In evaluation always, in training given a seed; and no global generator is reseeded or used in evaluation."""
    mixer, x = small(name, dropout=0.3), torch.randn(2, 29, DIM)
    state, numpy_state = torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002 - the global one is watched
    first, again = mixer(x), mixer(x)
    assert torch.equal(first, again)
    assert torch.equal(torch.get_rng_state(), state)
    mixer.train()
    torch.manual_seed(1)
    first = copy.deepcopy(mixer)(x)
    torch.manual_seed(1)
    assert torch.equal(copy.deepcopy(mixer)(x), first)
    assert not torch.equal(mixer(x), first), "dropout has no effect"
    assert str(np.random.get_state()) == numpy_state  # noqa: NPY002


@pytest.mark.parametrize("name", BASELINES)
def test_mixed_and_low_precision(name: str) -> None:
    mixer, x, mask = small(name).train(), torch.randn(2, 29, DIM, requires_grad=True), mask_of([29, 7], 29)
    with torch.autocast("cpu", torch.bfloat16):
        out = mixer(x, mask)
    (gradient,) = torch.autograd.grad(out.float().sum(), x)
    assert gradient.isfinite().all()
    low = mixer.to(torch.bfloat16)(x.detach().to(torch.bfloat16), mask)
    assert low.dtype == torch.bfloat16
    assert low.isfinite().all()


class Largest(TorchDispatchMode):
    """Notes the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        tensors = [t for t in tree_leaves(out) if isinstance(t, Tensor)]
        real = [t for t in tensors if t.untyped_storage().nbytes() >= t.nbytes]  # not a small one, expanded
        self.numbers = max([self.numbers, *(t.numel() for t in real)])
        return out


@pytest.mark.parametrize("name", BASELINES)
def test_no_matrix_of_all_pairs(name: str) -> None:
    """Forward and backward; the Synthesizer's weights are one by definition. A mask changes nothing about it."""
    n = 1024
    options = {**OPTIONS.get(name, {}), **({"stride": 32} if name == "sparse" else {})}
    options |= {"block_size": 16} if name in ("sinkhorn", "bigbird") else {}
    mixer = build_mixer(name, DIM, max_length=n, **options)
    x = torch.randn(1, n, DIM, requires_grad=True)
    with Largest() as largest:
        mixer(x, mask_of([n - 1], n)).sum().backward()
    assert (largest.numbers >= n * n) == (name == "synthesizer")


@pytest.mark.parametrize("name", BASELINES)
def test_saved_and_loaded(name: str) -> None:
    """What is random is in the state: the copy gives the same results."""
    mixer, other, x = small(name), small(name), torch.randn(2, 29, DIM)
    other.load_state_dict(mixer.state_dict())
    assert torch.equal(other(x), mixer(x))
    assert all(not parameter.is_complex() for parameter in mixer.parameters())


@pytest.mark.parametrize("name", BASELINES)
def test_wrong_input(name: str) -> None:
    mixer = small(name)
    with pytest.raises(ValueError, match=r"x has shape \(2, 5, 9\): expected \(B, N, D\) with N ≥ 1 and D = 8"):
        mixer(torch.zeros(2, 5, 9))
    with pytest.raises(TypeError, match=r"mask is torch.int64: expected torch.bool"):
        mixer(torch.zeros(2, 5, 8), torch.ones(2, 5, dtype=torch.int64))
    with pytest.raises(ValueError, match="mask"):
        mixer(torch.zeros(2, 5, 8), torch.ones(2, 4, dtype=torch.bool))


@pytest.mark.parametrize("name", ["linformer", "synthesizer", "sinkhorn", "paramixer"])
def test_longest_sequence(name: str) -> None:
    with pytest.raises(ValueError, match="41 positions are more than max_length = 40"):
        small(name)(torch.zeros(1, MAX_LENGTH + 1, DIM))
    with pytest.raises(ValueError, match=f"the mixer '{name}' has parameters per position: give max_length"):
        build_mixer(name, DIM)


@pytest.mark.parametrize(
    "name", sorted(set(BASELINES) - {"linformer", "synthesizer", "sinkhorn", "paramixer"} | {"kernelution", "none"})
)
def test_longest_sequence_is_not_needed(name: str) -> None:
    mixer = build_mixer(name, DIM, num_heads=HEADS).eval()
    assert mixer(torch.randn(1, 70, DIM)).isfinite().all()


@pytest.mark.parametrize("name", sorted(set(BASELINES) - {"fnet", "paramixer", "s4d"}))
def test_heads_must_divide(name: str) -> None:
    with pytest.raises(ValueError, match="3 heads do not divide 8 features"):
        build_mixer(name, 8, num_heads=3, max_length=9)


@pytest.mark.parametrize(("name", "package"), [("linformer", "linformer"), ("longformer", "transformers")])
def test_a_missing_package_is_named(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [m for m in sys.modules if m.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    expected = f"^the mixer '{name}' needs the package {package}: pip install 'synvolution\\[baselines\\]'$"
    with pytest.raises(ImportError, match=expected):
        build_mixer(name, 8, max_length=9)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("sparse", "stride", 0),
        ("reformer", "bucket_size", 0),
        ("reformer", "num_hashes", 0),
        ("longformer", "window", 3),
        ("linformer", "projected", 0),
        ("bigbird", "block_size", 0),
        ("bigbird", "num_random", -1),
        ("sinkhorn", "temperature", 0),
        ("sinkhorn", "iterations", 0),
        ("performer", "features", 0),
        ("performer", "redraw", 0),
        ("nystromformer", "landmarks", 0),
        ("nystromformer", "kernel_size", 4),
        ("luna", "memory", 0),
        ("paramixer", "hidden", 0),
        ("s4d", "states", 0),
        ("fnet", "dim", 0),
    ],
)
def test_wrong_options(name: str, option: str, value: int) -> None:
    arguments = {"dim": 8, "max_length": 9, option: value}
    with pytest.raises(ValueError, match=f"{option} is {value}: expected"):
        MIXERS[name](**arguments)


@pytest.mark.parametrize("name", BASELINES)
def test_parameters_can_be_drawn_again(name: str) -> None:
    """Part by part, as transformers does: what a mixer starts from is not lost, e.g. Paramixer's identity."""
    mixer, again = small(name), small(name)
    for part in again.modules():
        if callable(reset := getattr(part, "reset_parameters", None)):
            reset()
    for before, after in zip(mixer.parameters(), again.parameters(), strict=True):
        if before.numel() >= 32:  # enough numbers for their spread to be told
            assert torch.equal(before, after) or 0.5 < float(after.detach().std() / before.detach().std()) < 2
    if name == "paramixer":
        assert again.get_parameter("links.1.2.bias").tolist() == [1.0] + [0.0] * 6


def test_performer_redraws_in_training_only() -> None:
    mixer = build_mixer("performer", 8, redraw=2)
    before = mixer.get_buffer("rule.directions").clone()
    x = torch.randn(1, 5, 8)

    def step(model: nn.Module) -> bool:
        model(x)
        return torch.equal(model.get_buffer("rule.directions"), before)

    assert step(mixer)
    assert step(mixer)
    assert step(mixer.eval())
    assert not step(mixer.train())
