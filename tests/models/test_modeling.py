"""What the models promise: padding and batch order change nothing, gradients, learning, compilation, half precision."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import synvolution as sv
from synvolution.nn import POOLINGS, POSITIONS
from tests.oracles import assert_near

VOCABULARY, N = 16, 23
LENGTHS = (23, 1, 11, 2, 7, 19, 3)
LABELS = torch.tensor([0, 1, 2, 4, 4, 3, 0])


def config(**options: Any) -> sv.ConverterConfig:
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 12, "intermediate_size": 20, "num_labels": 5}
    return sv.ConverterConfig(**{**sizes, "max_position_embeddings": N, **options})


def classifier(**options: Any) -> Any:
    return sv.ConverterForSequenceClassification(config(**options)).eval()


def batch(side: str = "right") -> tuple[Tensor, Tensor]:
    n = torch.arange(N)
    mask = torch.stack([n < k if side == "right" else n >= N - k for k in LENGTHS])
    return torch.where(mask, torch.randint(1, VOCABULARY, mask.shape), 0), mask.long()


#: The paper's ablations, the control, and our own options: each is one argument.
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "NoPE": {"position": "none"},
    "SPE": {"position": "spe"},
    "APE": {"position": "ape"},
    "Synvolution": {"mixer": "synvolution"},
    "no KPL": {"eta": 0.0},
    "control": {"mixer": "none"},
    "two layers, heads": {"num_layers": 2, "num_heads": 3, "reach": "spread"},
    "orders": {"orders": 2, "permutation": "block"},
    "learned permutation": {"permutation": "learned"},
    "damping": {"damping": "lorentz", "damping_options": {"xi": 2.0}, "basis": "legendre", "order": 3},
    "the GRU alone": {"num_layers": 0},
}


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("position", POSITIONS)
def test_padding_changes_nothing(position: str, pooling: str, side: str) -> None:
    model = classifier(position=position, pooling=pooling, num_heads=2, num_layers=2)
    tokens, mask = batch(side)
    tokens[mask == 0] = torch.randint(0, VOCABULARY, (int((mask == 0).sum()),))  # whatever stands there
    logits = model(tokens, mask).logits
    for i in range(len(tokens)):
        alone = model(tokens[i : i + 1, mask[i] == 1]).logits[0]
        scale = alone.abs().max()
        assert_near(logits[i] / scale, alone / scale, 1e-6, what=f"sequence {i}")


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_keep_padding_and_batch_order_out(name: str) -> None:
    model, (tokens, mask) = classifier(**VARIANTS[name]), batch()
    logits, order = model(tokens, mask).logits, torch.tensor([2, 0, 6, 3, 1, 5, 4])
    assert_near(model(tokens[order], mask[order]).logits, logits[order], 1e-6)
    alone = torch.cat([model(tokens[i : i + 1, :k]).logits for i, k in enumerate(LENGTHS)])
    assert_near(logits / alone.abs().max(), alone / alone.abs().max(), 1e-6)


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_reach_every_parameter_and_all_are_real(name: str) -> None:
    model = classifier(**VARIANTS[name]).train()
    tokens, mask = batch()
    model(tokens, mask, labels=LABELS).loss.backward()
    for parameter, value in model.named_parameters():
        assert value.dtype == torch.float32, parameter
        assert value.grad is not None, parameter
        assert bool(torch.isfinite(value.grad).all()), parameter
        assert len(tokens) not in value.shape, f"{parameter}: the batch size in a parameter's shape"


def test_pair_classifier_shares_the_encoder_and_ignores_padding() -> None:
    model = sv.ConverterForPairClassification(config()).eval()
    (first, mask), (second, other) = batch(), batch()
    second, other = second.flip(0), other.flip(0)
    pair = {"input_ids_pair": second, "attention_mask_pair": other}
    out = model(first, mask, labels=LABELS, **pair)
    alone = torch.cat(
        [
            model(first[i : i + 1, :k], input_ids_pair=second[i : i + 1, :m]).logits
            for i, (k, m) in enumerate(zip(LENGTHS, reversed(LENGTHS), strict=True))
        ]
    )
    assert_near(out.logits, alone, 1e-6)
    u = model.pooling(model.converter(first, mask).last_hidden_state, mask.bool())
    v = model.pooling(model.converter(second, other).last_hidden_state, other.bool())
    assert_near(out.logits, model.classifier(torch.cat((u, v, u * v, u - v), -1)), 1e-6)
    out.loss.backward()
    assert all(p.grad is not None for p in model.parameters())
    with pytest.raises(ValueError, match="input_ids_pair"):
        model(first, mask)


def test_loss_is_the_papers() -> None:
    eta, (tokens, mask), labels = 0.25, batch(), LABELS
    model = classifier(eta=eta, num_layers=2)
    out = model(tokens, mask, labels=labels)
    weights = [block.mixer.polynomial.weight for block in model.converter.blocks]
    penalty = sum(torch.pi * k**2 * w[k].item() ** 2 for w in weights for k in (1, 2)) / 2
    expected = 0.75 * torch.nn.functional.cross_entropy(out.logits, labels) + 0.25 * penalty
    assert_near(out.loss, expected, 1e-6)
    for options in ({"eta": 0.0}, {"mixer": "synvolution", "eta": eta}, {"mixer": "none", "eta": eta}):
        plain = classifier(**options)(tokens, mask, labels=labels)
        assert_near(plain.loss, torch.nn.functional.cross_entropy(plain.logits, labels), 1e-6)


def test_problem_types() -> None:
    tokens, mask = batch()
    several = (torch.rand(7, 5) > 0.5).float()
    out = classifier(problem_type="multi_label_classification", eta=0.0)(tokens, mask, labels=several)
    assert_near(out.loss, torch.nn.functional.binary_cross_entropy_with_logits(out.logits, several), 1e-6)
    numbers = torch.randn(7)
    out = classifier(num_labels=1, eta=0.0)(tokens, mask, labels=numbers)
    assert_near(out.loss, torch.nn.functional.mse_loss(out.logits[:, 0], numbers), 1e-6)


def test_embeddings_values_hidden_states_and_tuples() -> None:
    model, (tokens, mask) = classifier(num_layers=2), batch()
    logits = model(tokens, mask).logits
    embeds = model.get_input_embeddings()(tokens)
    assert torch.equal(model(inputs_embeds=embeds, attention_mask=mask).logits, logits)
    states = model(tokens, mask, output_hidden_states=True).hidden_states
    assert [tuple(s.shape) for s in states] == [(7, N, 12)] * 3
    assert torch.equal(states[-1], model.converter(tokens, mask).last_hidden_state)
    assert torch.equal(model(tokens, mask, return_dict=False)[0], logits)
    numbers = classifier(input_features=1)
    values = torch.rand(7, N)
    assert torch.equal(
        numbers(input_values=values, attention_mask=mask).logits,
        numbers(input_values=values[..., None], attention_mask=mask).logits,
    )
    assert classifier(input_features=3)(input_values=torch.rand(2, 7, 3)).logits.shape == (2, 5)


def test_digraphs_are_those_of_the_layers() -> None:
    model, (tokens, mask) = classifier(num_layers=2, num_heads=2), batch()
    found = model.digraphs(tokens, mask)
    states = model(tokens, mask, output_hidden_states=True).hidden_states
    for block, digraph, x in zip(model.converter.blocks, found, states[:2], strict=True):
        assert digraph.operator.shape == (7, 2, N, N)
        assert torch.equal(digraph.operator, block.mixer.digraph(x, mask.bool()).operator)
    with pytest.raises(ValueError, match="makes no digraph"):
        classifier(mixer="none").digraphs(tokens, mask)


def test_checkpointing_changes_nothing() -> None:
    tokens, mask = batch()
    labels, results = LABELS, []
    model = classifier(num_layers=2, **{k: 0.0 for k in sv.ConverterConfig().to_dict() if k.endswith("_dropout")})
    for checkpointing in (False, True):
        if checkpointing:
            model.activation_checkpointing_enable()
        model.train().zero_grad()
        model(tokens, mask, labels=labels).loss.backward()
        results.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    assert model.is_activation_checkpointing
    for name, gradient in results[0].items():
        assert_near(results[1][name], gradient, 1e-6, what=name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_stays_close_and_finite(dtype: torch.dtype) -> None:
    model, (tokens, mask) = classifier(num_layers=2, num_heads=2, reach="spread"), batch()
    exact = model(tokens, mask).logits
    with torch.autocast("cpu", dtype):
        out = model(tokens, mask, labels=LABELS)
    assert_near(out.logits.float(), exact, 0.05)
    out.loss.backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.grad is not None)


def test_half_precision_weights() -> None:
    tokens, mask = batch()
    model = classifier()
    exact = model(tokens, mask).logits
    assert_near(model.to(torch.bfloat16)(tokens, mask).logits.float(), exact, 0.1)


@pytest.mark.parametrize("options", [{}, {"num_heads": 2, "num_layers": 2, "pooling": "ends"}, {"position": "spe"}])
def test_compiles_without_graph_breaks(options: dict[str, Any]) -> None:
    model, (tokens, mask) = classifier(**options), batch()
    labels = LABELS
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    expected, found = model(tokens, mask, labels=labels), compiled(tokens, mask, labels=labels)
    assert_near(found.logits, expected.logits, 1e-6)
    assert_near(found.loss, expected.loss, 1e-6)


def test_a_seed_decides_everything() -> None:
    tokens, mask = batch()
    losses = []
    for _ in range(2):
        torch.manual_seed(3)
        model = classifier().train()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(tokens, mask, labels=LABELS).loss
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == losses[1]


def test_fits_a_batch_of_random_sequences() -> None:
    torch.manual_seed(0)
    model = classifier(hidden_size=32, intermediate_size=64, num_labels=10).train()
    tokens, labels = torch.randint(1, VOCABULARY, (32, 40)), torch.randint(10, (32,))
    lengths = torch.randint(20, 41, (32, 1))
    mask = torch.arange(40) < lengths
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(300):
        optimizer.zero_grad()
        model(tokens, mask, labels=labels).loss.backward()
        optimizer.step()
    right = (model.eval()(tokens, mask).logits.argmax(-1) == labels).float().mean().item()
    assert right > 0.99
