"""Tokenizers of the tasks, as ordinary Hugging Face tokenizers.

Each function builds a ``PreTrainedTokenizerFast``: ``save_pretrained`` writes a plain ``tokenizer.json``, and
``AutoTokenizer.from_pretrained`` reads it back without any code of this package. Text that happens to spell a special
token ("[PAD]") is text: nothing in the input can make padding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from synvolution.data.vocabulary import DNA_TOKENS, IUPAC_AMBIGUOUS, LISTOPS_TOKENS

PAD, UNKNOWN = "[PAD]", "[UNK]"


def character_tokenizer(
    texts: Iterable[str], *, min_frequency: int = 1, max_length: int | None = None
) -> PreTrainedTokenizerFast:
    """One token per Unicode character (code point), from the characters of the texts given.

    Give it the training texts only. Nothing is normalised: spaces, newlines, case and combining marks stay. Ids: 0
    padding, 1 unknown, then the characters by falling frequency (ties by code point).

    Args:
        texts: where the characters are counted.
        min_frequency: rarer characters are unknown.
        max_length: longer texts are cut at the end when ``truncation=True``; None for no limit.

    Example:
        >>> tokenizer = character_tokenizer(["abba", "b c"])
        >>> tokenizer("cab?")["input_ids"], tokenizer.decode([2, 3])
        ([5, 3, 2, 1], 'ba')
    """
    if min_frequency < 1:
        raise ValueError(f"min_frequency is {min_frequency}: a character counts from 1 occurrence on")
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    return characters_counted(counts, min_frequency=min_frequency, max_length=max_length)


def characters_counted(
    counts: Counter[str], *, min_frequency: int = 1, max_length: int | None = None
) -> PreTrainedTokenizerFast:
    """The tokenizer of ``character_tokenizer``, from counts made elsewhere.

    Example:
        >>> len(characters_counted(Counter("abc")))
        5
    """
    kept = [character for character, count in counts.items() if count >= min_frequency]
    if not kept:
        raise ValueError(f"no character occurs {min_frequency} times or more: the texts are empty or too few")
    ordered = sorted(kept, key=lambda character: (-counts[character], character))
    return _of_symbols([PAD, UNKNOWN, *ordered], unknown=UNKNOWN, max_length=max_length)


def byte_tokenizer(max_length: int | None = None) -> PreTrainedTokenizerFast:
    """The bytes of the text in UTF-8: id 0 is padding, byte b has id b + 1. Nothing is unknown.

    Example:
        >>> byte_tokenizer()("é!")["input_ids"]
        [196, 170, 34]
    """
    vocabulary = {PAD: 0} | {f"<0x{byte:02X}>": byte + 1 for byte in range(256)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return _finished(tokenizer, unknown=None, max_length=max_length)


def dna_tokenizer(max_length: int | None = None) -> PreTrainedTokenizerFast:
    """One token per base: padding, a, c, g, t, n; upper and lower case are the same.

    U is read as t (RNA), the other IUPAC letters as n; white space (wrapped lines) is dropped. Everything else is n as
    well here; the readers of files refuse it, so that prose is not taken for a sequence of n.

    Example:
        >>> dna_tokenizer()("ACGU nRy-")["input_ids"]
        [1, 2, 3, 4, 5, 5, 5, 5]
    """
    tokenizer = Tokenizer(models.BPE(_numbered([PAD, *DNA_TOKENS]), [], unk_token="n", fuse_unk=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Replace(Regex(r"\s+"), ""),
            normalizers.Replace("u", "t"),
            normalizers.Replace(Regex(f"[{IUPAC_AMBIGUOUS}]"), "n"),
        ]
    )
    tokenizer.decoder = decoders.Fuse()
    return _finished(tokenizer, unknown="n", max_length=max_length)


def listops_tokenizer(max_length: int | None = None) -> PreTrainedTokenizerFast:
    """The 15 tokens of ListOps and padding; round brackets of the published files are dropped, "]" is a token.

    There is no unknown token: text with anything else in it raises an error, for a wrong expression has no value.

    Example:
        >>> tokenizer = listops_tokenizer()
        >>> tokenizer("( ( ( [MAX 4 ) 3 ) ] )")["input_ids"]
        [2, 10, 9, 5]
        >>> tokenizer.decode([2, 10, 9, 5])
        '[MAX 4 3 ]'
    """
    tokenizer = Tokenizer(models.WordLevel(_numbered([PAD, *LISTOPS_TOKENS]), unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Replace(Regex(r"[()]"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split("]", "isolated")]
    )
    return _finished(tokenizer, unknown=None, max_length=max_length)


def _numbered(tokens: Iterable[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}


def _of_symbols(tokens: list[str], *, unknown: str, max_length: int | None) -> PreTrainedTokenizerFast:
    """One token per character. Byte-pair encoding without pairs: linear in the length, unlike a split by pattern."""
    tokenizer = Tokenizer(models.BPE(_numbered(tokens), [], unk_token=unknown, fuse_unk=False))
    tokenizer.decoder = decoders.Fuse()
    return _finished(tokenizer, unknown=unknown, max_length=max_length)


def _finished(tokenizer: Tokenizer, *, unknown: str | None, max_length: int | None) -> PreTrainedTokenizerFast:
    if max_length is not None and max_length < 1:
        raise ValueError(f"max_length is {max_length}: give at least 1, or None for no limit")
    options: dict[str, object] = {} if unknown is None else {"unk_token": unknown}
    if max_length is not None:
        options["model_max_length"] = max_length
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        padding_side="right",
        truncation_side="right",
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
        split_special_tokens=True,  # "[PAD]" written in a text is five characters
        **options,
    )
