"""Every mixer in the whole model: saved and loaded, gradients, padding, mixed precision."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from synvolution.models import ConverterConfig, ConverterForSequenceClassification
from synvolution.nn import MIXERS
from synvolution.nn.mixers import PADDING_MATTERS
from tests.nn.mixers.small import OPTIONS, mask_of
from tests.nn.mixers.test_contract import NO_GRADIENT

N, VOCABULARY, LENGTHS, LABELS = 37, 16, [37, 1, 18, 5], torch.tensor([0, 2, 1, 2])


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """The tensors are tiny: on a busy machine threads mostly wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def classifier(name: str, **options: Any) -> Any:
    """Two blocks with small pieces, so that several of them are in a sequence."""
    sizes: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 12,
        "intermediate_size": 20,
        "num_labels": 3,
        "num_heads": 2,
    }
    sizes |= {"num_layers": 2, "max_position_embeddings": N, "mixer_options": OPTIONS.get(name)}
    return ConverterForSequenceClassification(ConverterConfig(mixer=name, **{**sizes, **options})).eval()


def batch() -> tuple[Tensor, Tensor]:
    mask = mask_of(LENGTHS, N)
    return torch.randint(1, VOCABULARY, mask.shape) * mask, mask.long()


@pytest.mark.parametrize("name", MIXERS)
def test_saved_and_loaded(name: str, tmp_path: Path) -> None:
    """Random buffers and numbers that no rule draws are in the file as well."""
    model, (tokens, mask) = classifier(name), batch()
    with torch.no_grad():
        for parameter in model.parameters():  # not the initial values, which loading might produce by itself
            parameter.add_(0.05 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path)
    torch.manual_seed(1)
    loaded = ConverterForSequenceClassification.from_pretrained(tmp_path).eval()
    assert loaded.config.mixer == name
    assert torch.equal(loaded(tokens, mask).logits, model(tokens, mask).logits)


@pytest.mark.parametrize("name", MIXERS)
def test_gradients_reach_every_parameter(name: str) -> None:
    model, (tokens, mask) = classifier(name).train(), batch()
    model(tokens, mask, labels=LABELS).loss.backward()
    for where, parameter in model.named_parameters():
        assert parameter.grad is not None, where
        assert parameter.grad.isfinite().all(), where
        assert parameter.grad.any() or where.split(".mixer.")[-1] in NO_GRADIENT, where


@pytest.mark.parametrize("name", [name for name in MIXERS if name not in PADDING_MATTERS])
def test_a_padded_batch_equals_its_sequences(name: str) -> None:
    model, (tokens, mask) = classifier(name), batch()
    alone = torch.cat([model(tokens[i : i + 1, :length]).logits for i, length in enumerate(LENGTHS)])
    torch.testing.assert_close(model(tokens, mask).logits, alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MIXERS)
def test_mixed_precision_is_finite_and_near(name: str) -> None:
    """Default options at a length of several blocks. Reformer's buckets may change with rounding."""
    model = classifier(name, mixer_options=None, max_position_embeddings=300)
    tokens, mask = torch.randint(1, VOCABULARY, (2, 300)), mask_of([300, 170], 300).long()
    exact = model(tokens, mask).logits
    with torch.autocast("cpu", torch.bfloat16):
        out = model(tokens, mask, labels=LABELS[:2])
    out.loss.backward()
    assert out.logits.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
    torch.testing.assert_close(out.logits.float(), exact, rtol=0, atol=0.05)
