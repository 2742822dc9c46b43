"""The quick table of a tokenizer gives what the tokenizer gives."""

from __future__ import annotations

import numpy as np
import pytest

from synvolution.data.encoding import _table_of, sequences_of
from synvolution.data.tokenizers import byte_tokenizer, character_tokenizer, dna_tokenizer, listops_tokenizer
from tests.data.test_tokenizers import AWKWARD

TEXTS = [AWKWARD, "plain text", "\U0010ffff\u0000\ud7ff", "☃ unknown ☃", "a" * 5000]


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[1:2], ["[]PADUNK"]])
def test_characters(texts: list[str]) -> None:
    tokenizer = character_tokenizer(texts, min_frequency=1)
    assert _table_of(tokenizer) is not None
    for length in (None, 3, 10_000):
        found = sequences_of(TEXTS, tokenizer, length)
        assert [ids.tolist() for ids in found] == [tokenizer(text)["input_ids"][:length] for text in TEXTS]


def test_bases() -> None:
    tokenizer = dna_tokenizer()
    assert _table_of(tokenizer) is not None
    texts = ["ACGTUacgtuNn", "RYSWKMBDHVXryswkmbdhvx", "acgt-*.", "".join(map(chr, range(33, 127)))]
    assert [ids.tolist() for ids in sequences_of(texts, tokenizer, None)] == [tokenizer(t)["input_ids"] for t in texts]


def test_others_have_no_table() -> None:
    assert _table_of(byte_tokenizer()) is None
    assert _table_of(listops_tokenizer()) is None
    assert [ids.tolist() for ids in sequences_of(["é"], byte_tokenizer(), 1)] == [[196]]
    ready = sequences_of([b"\x01\x02"], listops_tokenizer(), 1)
    assert isinstance(ready[0], np.ndarray)
    assert ready[0].tolist() == [1]
