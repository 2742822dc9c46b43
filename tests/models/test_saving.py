"""Saving and loading: the same logits bit for bit, the Auto classes, safetensors alone, pipelines."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

import synvolution as sv
from synvolution.nn import MIXERS
from tests.models.test_modeling import VARIANTS, batch, classifier, config

SAVED = {**VARIANTS, **{f"mixer {name}": {"mixer": name, "num_heads": 2} for name in MIXERS}}


@pytest.mark.parametrize("name", SAVED)
def test_loaded_model_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    model, (tokens, mask) = classifier(**SAVED[name]), batch()
    with torch.no_grad():
        for parameter in model.parameters():  # not the initial values, which loading might produce by itself
            parameter.add_(0.05 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    assert type(loaded) is sv.ConverterForSequenceClassification
    assert torch.equal(loaded(tokens, mask).logits, model(tokens, mask).logits)
    encoder = AutoModel.from_pretrained(tmp_path).eval()
    expected = model.converter(tokens, mask).last_hidden_state
    assert torch.equal(encoder(tokens, mask).last_hidden_state, expected)


def test_configuration_survives(tmp_path: Path) -> None:
    first = config(reach=[0.3, 1.0, 2.9], num_heads=3, damping="wang", damping_options={"a": 1.0, "b": 2.0})
    first.save_pretrained(tmp_path)
    second = AutoConfig.from_pretrained(tmp_path)
    assert isinstance(second, sv.ConverterConfig)
    ours = {name: getattr(first, name) for name in sv.ConverterConfig.__dataclass_fields__}
    for name in set(ours) - {"transformers_version", "id2label", "label2id"}:
        assert getattr(second, name) == ours[name], name


def test_pair_classifier_and_new_head(tmp_path: Path) -> None:
    pair = sv.ConverterForPairClassification(config()).eval()
    pair.save_pretrained(tmp_path)
    tokens, mask = batch()
    loaded = sv.ConverterForPairClassification.from_pretrained(tmp_path).eval()
    arguments: dict[str, Any] = {"input_ids_pair": tokens, "attention_mask_pair": mask}
    assert torch.equal(loaded(tokens, mask, **arguments).logits, pair(tokens, mask, **arguments).logits)
    single = sv.ConverterForSequenceClassification.from_pretrained(tmp_path, ignore_mismatched_sizes=True).eval()
    encoded = single.converter(tokens, mask).last_hidden_state
    assert torch.equal(encoded, pair.converter(tokens, mask).last_hidden_state)  # encoder kept, head made anew
    assert single.classifier.first.weight.std() > 0.01


class Malice:
    """Unpickling it would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


def test_nothing_but_safetensors_is_read(tmp_path: Path) -> None:
    folder, trap = tmp_path / "model", tmp_path / "trap"
    model = classifier()
    model.save_pretrained(folder)
    (folder / "model.safetensors").unlink()
    with open(folder / "pytorch_model.bin", "wb") as file:
        pickle.dump(Malice(trap), file)
    with pytest.raises(OSError, match="safetensors"):
        AutoModelForSequenceClassification.from_pretrained(folder)
    with pytest.raises(ValueError, match="safetensors files only"):
        AutoModelForSequenceClassification.from_pretrained(folder, use_safetensors=False)
    assert not trap.exists()


def test_code_beside_a_model_is_not_run(tmp_path: Path) -> None:
    classifier().save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    settings["auto_map"] = {"AutoModelForSequenceClassification": "evil.Evil"}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'trap')!r}, 'w')\nclass Evil: pass\n")
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert type(loaded) is sv.ConverterForSequenceClassification
    assert not (tmp_path / "trap").exists()


def test_auto_classes_know_the_model_after_importing_the_package(tmp_path: Path) -> None:
    classifier().save_pretrained(tmp_path)
    code = (
        "import synvolution; from transformers import AutoModelForSequenceClassification as A; "
        f"print(type(A.from_pretrained({str(tmp_path)!r})).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "ConverterForSequenceClassification", done.stderr
