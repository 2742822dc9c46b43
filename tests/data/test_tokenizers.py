"""The tokenizers: exact, reversible, linear, and readable without this package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from synvolution.data.tokenizers import (
    byte_tokenizer,
    character_tokenizer,
    dna_tokenizer,
    listops_tokenizer,
)
from synvolution.data.vocabulary import LISTOPS_TOKENS

#: Everything that normalisers like to change: newlines, double spaces, tabs, astral plane, combining marks, zero byte.
AWKWARD = "Two  spaces\n\r\n\ttab \u0301e\u00e9 \U0001f600\U00020000 ﬁ ½ \u200b\x00 [PAD] [UNK] </s> ##x ▁ Ġ"
TOKENIZERS = {
    "characters": character_tokenizer([AWKWARD]),
    "bytes": byte_tokenizer(),
    "dna": dna_tokenizer(),
    "listops": listops_tokenizer(),
}
SAMPLES = {"characters": AWKWARD, "bytes": AWKWARD, "dna": "acgtnACGUryk", "listops": "[MAX 2 [SM 3 9 ] 0 ]"}


def test_characters_are_code_points() -> None:
    tokenizer = TOKENIZERS["characters"]
    ids = tokenizer(AWKWARD)["input_ids"]
    assert len(ids) == len(AWKWARD)
    assert tokenizer.decode(ids) == AWKWARD
    assert tokenizer.pad_token_id == 0
    assert tokenizer.unk_token_id == 1
    assert min(ids) >= 2
    assert tokenizer("☃a")["input_ids"][0] == 1


def test_vocabulary_is_by_frequency_and_does_not_depend_on_order() -> None:
    texts = ["ccc", "bb", "aa", "d"]
    tokenizer = character_tokenizer(texts, min_frequency=2)
    assert tokenizer("cabd")["input_ids"] == [2, 3, 4, 1]
    assert character_tokenizer(texts[::-1], min_frequency=2).get_vocab() == tokenizer.get_vocab()


def test_bytes_are_utf8() -> None:
    tokenizer = TOKENIZERS["bytes"]
    ids = tokenizer(AWKWARD)["input_ids"]
    assert ids == [byte + 1 for byte in AWKWARD.encode()]
    assert tokenizer.decode(ids) == AWKWARD
    assert len(tokenizer) == 257


def test_dna_letters() -> None:
    tokenizer = TOKENIZERS["dna"]
    assert tokenizer.convert_ids_to_tokens(tokenizer("acgtnACGTNuU")["input_ids"]) == [*"acgtnacgtntt"]
    assert tokenizer("RYSWKMBDHVX" + "ryswkmbdhvx")["input_ids"] == [5] * 22
    assert tokenizer("AC\nGT\n")["input_ids"] == [1, 2, 3, 4]
    assert len(tokenizer) == 6


def test_listops_reads_both_notations() -> None:
    tokenizer = TOKENIZERS["listops"]
    clean = "[MIN 1 [MED 2 3 [SM 4 5 ] ] 9 ]"
    published = "( ( ( ( [MIN 1 ) ( ( ( ( ( [MED 2 ) 3 ) ( ( ( [SM 4 ) 5 ) ] ) ) ] ) ) 9 ) ] )"
    ids = tokenizer(clean)["input_ids"]
    assert ids == tokenizer(published)["input_ids"] == tokenizer(clean.replace(" ]", "]"))["input_ids"]
    assert ids == [1 + LISTOPS_TOKENS.index(token) for token in clean.split()]
    assert len(tokenizer) == 16
    with pytest.raises(Exception, match="Missing"):
        tokenizer("[FOO 1 2 ]")


@pytest.mark.parametrize("name", TOKENIZERS)
def test_padding_and_truncation(name: str) -> None:
    tokenizer, text = TOKENIZERS[name], SAMPLES[name]
    whole = tokenizer(text)["input_ids"]
    cut = tokenizer(text, truncation=True, max_length=3)["input_ids"]
    assert cut == whole[:3]
    batch = tokenizer([text, "1" if name == "listops" else "a"], padding=True)
    assert set(batch) == {"input_ids", "attention_mask"}
    assert batch["input_ids"][1][1:] == [0] * (len(whole) - 1)
    assert sum(batch["attention_mask"][1]) == 1


def test_max_length_is_kept() -> None:
    tokenizer = character_tokenizer(["ab"], max_length=4)
    assert tokenizer("ababab", truncation=True)["input_ids"] == tokenizer("abab")["input_ids"]
    with pytest.raises(ValueError, match="at least 1"):
        byte_tokenizer(max_length=0)
    with pytest.raises(ValueError, match="no character occurs"):
        character_tokenizer([])
    with pytest.raises(ValueError, match="min_frequency is 0"):
        character_tokenizer(["a"], min_frequency=0)


def test_a_million_characters() -> None:
    """A quadratic tokenizer would take hours here."""
    text = AWKWARD * (1_000_000 // len(AWKWARD) + 1)
    assert len(TOKENIZERS["characters"](text)["input_ids"]) == len(text)
    assert len(TOKENIZERS["bytes"](text)["input_ids"]) == len(text.encode())
    assert len(TOKENIZERS["dna"]("ACGTRN" * 170_000)["input_ids"]) == 1_020_000
    assert len(TOKENIZERS["listops"]("[MAX 1 " + "2 " * 500_000 + "]")["input_ids"]) == 500_003


def test_auto_tokenizer_needs_no_code_of_ours(tmp_path: Path) -> None:
    expected = {}
    for name, tokenizer in TOKENIZERS.items():
        tokenizer.save_pretrained(tmp_path / name)
        expected[name] = tokenizer(SAMPLES[name], truncation=True, max_length=40)["input_ids"]
    (tmp_path / "samples.json").write_text(json.dumps(SAMPLES))
    script = """
import json, sys
from pathlib import Path
from transformers import AutoTokenizer
root = Path(sys.argv[1])
found = {}
for name, text in json.loads((root / "samples.json").read_text()).items():
    tokenizer = AutoTokenizer.from_pretrained(root / name)
    assert tokenizer.model_input_names == ["input_ids", "attention_mask"], tokenizer.model_input_names
    assert tokenizer.pad_token_id == 0
    found[name] = tokenizer(text, truncation=True, max_length=40)["input_ids"]
assert not any(name.startswith("synvolution") for name in sys.modules)
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected


def test_they_are_fast_tokenizers() -> None:
    assert all(isinstance(tokenizer, PreTrainedTokenizerFast) for tokenizer in TOKENIZERS.values())
