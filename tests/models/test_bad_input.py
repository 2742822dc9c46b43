"""Bad configurations and inputs: errors that name the value."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import synvolution as sv
from tests.models.test_modeling import N, classifier


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mixer": "kernelutoin"}, "mixer is 'kernelutoin': choose one of kernelution"),
        ({"position": "gps"}, "position is 'gps': choose one of rpe, ape, spe, none"),
        ({"pooling": "min"}, "pooling is 'min'"),
        ({"hidden_size": 0}, "hidden_size is 0"),
        ({"num_layers": -1}, "num_layers is -1"),
        ({"value_dropout": 1.0}, "value_dropout is 1.0"),
        ({"eta": 1.0}, "eta is 1.0"),
        ({"vocab_size": 0}, "vocab_size is 0"),
        ({"pad_token_id": 300}, "pad_token_id is 300: expected a token from 0 to 256"),
        ({"input_features": 0}, "input_features is 0"),
        ({"position": "ape"}, "position 'ape' has weights for each position: give max_position_embeddings"),
        ({"permutation": "learned"}, "permutation 'learned' has weights for each position"),
    ],
)
def test_configurations_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sv.ConverterConfig(**options)


def test_options_of_layers_are_refused_by_the_layers() -> None:
    for options, message in (
        ({"num_heads": 5}, "5 heads do not divide 12 features"),
        ({"reach": [0.1, 0.2, 0.3], "num_heads": 2}, "reach has 3 values for 2 heads"),
        ({"basis": "fourier"}, "unknown basis 'fourier'"),
        ({"permutation": "random"}, "unknown permutation 'random'"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier(**options)


def test_inputs_are_refused() -> None:
    model, tokens = classifier(), torch.ones(2, N, dtype=torch.long)
    for wrong, message in (
        ({"input_ids": tokens + 15}, "token 16 is not in the vocabulary of 16: expected 0 to 15"),
        ({"input_ids": tokens - 2}, "token -1 is not in the vocabulary"),
        ({"input_ids": tokens[:, :0]}, r"input_ids has shape \(2, 0\)"),
        ({"input_ids": tokens[0]}, r"input_ids has shape \(23,\)"),
        ({}, "nothing given: expected one of input_ids, inputs_embeds"),
        ({"input_ids": tokens, "inputs_embeds": torch.randn(2, N, 12)}, "input_ids and inputs_embeds given"),
        ({"input_values": torch.rand(2, N)}, "input_values given to a model that takes input_ids"),
        ({"input_ids": tokens, "attention_mask": tokens[:, 1:]}, r"attention_mask has shape \(2, 22\)"),
        ({"input_ids": tokens, "attention_mask": tokens * torch.tensor([[1], [0]])}, "row 1 of attention_mask has no"),
        ({"input_ids": tokens, "labels": torch.tensor([0, 5])}, "label 5 is not among the 5 classes: expected 0 to 4"),
        ({"input_ids": tokens, "labels": torch.tensor([0, -1])}, "label -1 is not among"),
        ({"input_ids": tokens, "labels": torch.tensor([0])}, r"labels have shape \(1,\): expected \(2,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            model(**wrong)
    with pytest.raises(TypeError, match="expected integers"):
        model(tokens.float())


def test_labels_of_minus_100_are_ignored() -> None:
    model, tokens = classifier(eta=0.0), torch.randint(1, 16, (2, N))
    alone = model(tokens[:1], labels=torch.tensor([3])).loss
    assert torch.allclose(model(tokens, labels=torch.tensor([3, -100])).loss, alone)


def test_sequence_longer_than_learned_positions() -> None:
    model = classifier(position="ape")
    with pytest.raises(ValueError, match=f"a sequence of {N + 1} positions, the learned position embedding has {N}"):
        model(torch.ones(1, N + 1, dtype=torch.long))
    padded = torch.arange(N + 1)[None] < N
    assert model(torch.ones(1, N + 1, dtype=torch.long), padded).logits.shape == (1, 5)
