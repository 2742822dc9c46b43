"""ListOps against an independent evaluator and a plain, slow generator of the benchmark's rule."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from functools import cache
from hashlib import sha256
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from synvolution.data.base import DataOptions, Prepared, prepare
from synvolution.data.listops import LESSONS, ListOpsRule, generate, lessons
from synvolution.data.listops_task import QUICK, sizes
from synvolution.data.tokenizers import listops_tokenizer
from synvolution.data.vocabulary import LISTOPS_TOKENS

SLOW_SAMPLES = 10_000


def value_of(tokens: list[str]) -> int:
    """Evaluate with a stack of unfinished lists; the median by the textbook."""
    stack: list[list[str | int]] = [[]]
    for token in tokens:
        if token.startswith("["):
            stack.append([token])
        elif token == "]":
            operator, *arguments = stack.pop()
            numbers = [int(argument) for argument in arguments]
            results = {
                "[MIN": min(numbers),
                "[MAX": max(numbers),
                "[MED": int(statistics.median(numbers)),
                "[SM": sum(numbers) % 10,
            }
            stack[-1].append(results[str(operator)])
        else:
            stack[-1].append(int(token))
    ((value,),) = stack
    return int(value)


def plain_tree(source: random.Random, depth: int, rule: ListOpsRule) -> list[str]:
    """The benchmark's rule, word by word, as a recursion."""
    if depth >= rule.max_depth or source.random() > 0.25:
        return [str(source.choice(range(10)))]
    tokens = [source.choice(["[MIN", "[MAX", "[MED", "[SM"])]
    for _ in range(source.randint(2, rule.max_arguments)):
        tokens += plain_tree(source, depth + 1, rule)
    return [*tokens, "]"]


@cache
def plain_samples(rule: ListOpsRule, number: int) -> list[list[str]]:
    source = random.Random(1)
    found: list[list[str]] = []
    while len(found) < number:
        tokens = plain_tree(source, 1, rule)
        if rule.min_length < len(tokens) < rule.max_length:
            found.append(tokens)
    return found


def decoded(data: Prepared, row: dict[str, Any]) -> str:
    assert isinstance(data.processor, PreTrainedTokenizerFast)
    return str(data.processor.decode(row["input_ids"]))


def words(ids: np.ndarray) -> list[str]:
    return [LISTOPS_TOKENS[number - 1] for number in ids]


def check_samples(samples: list[tuple[list[str], int]], rule: ListOpsRule) -> None:
    for tokens, value in samples:
        assert value_of(tokens) == value
        assert rule.min_length < len(tokens) < rule.max_length
    assert len({" ".join(tokens) for tokens, _ in samples}) == len(samples)


def depth_of(tokens: list[str]) -> int:
    return max(accumulate((token[0] == "[") - (token == "]") for token in tokens))


def check_distribution(ours: list[tuple[list[str], int]], plain: list[list[str]]) -> None:
    """Class shares, token shares, mean length and depth differ by less than 4 standard errors."""
    both = [[(value, tokens) for tokens, value in ours], [(value_of(tokens), tokens) for tokens in plain]]
    for feature in (
        *(lambda value, tokens, wanted=wanted: float(value == wanted) for wanted in range(10)),
        *(lambda value, tokens, token=token: tokens.count(token) / len(tokens) for token in LISTOPS_TOKENS),
        lambda value, tokens: float(len(tokens)),
        lambda value, tokens: float(depth_of(tokens)),
        lambda value, tokens: float(tokens[0] == "[MED"),
    ):
        one, other = (np.array([feature(value, tokens) for value, tokens in side]) for side in both)
        error = np.sqrt(one.var() / len(one) + other.var() / len(other))
        assert abs(one.mean() - other.mean()) < 4 * error + 1e-12


@pytest.mark.parametrize(
    "rule", [ListOpsRule(), QUICK, ListOpsRule(4, 9, 2, 6), ListOpsRule(10, 50, max_depth=3, max_arguments=2)]
)
def test_samples_are_right(rule: ListOpsRule) -> None:
    number = 5 if rule.max_arguments == 2 else 300
    if rule.max_arguments == 2:  # at most 1 + 2 · 2 tokens and brackets: nothing is that long
        with pytest.raises(ValueError, match="widen its limits"):
            list(generate(rule, number, seed=3))
        return
    check_samples([(words(ids), value) for ids, value in generate(rule, number, seed=3)], rule)


def test_distribution_of_short_lists() -> None:
    rule = ListOpsRule(20, 100)
    ours = [(words(ids), value) for ids, value in generate(rule, 2000, seed=0)]
    check_distribution(ours, plain_samples(rule, 2000))


def test_the_comparison_can_fail() -> None:
    ours = [(words(ids), value) for ids, value in generate(ListOpsRule(20, 100, max_arguments=9), 2000, seed=0)]
    with pytest.raises(AssertionError):
        check_distribution(ours, plain_samples(ListOpsRule(20, 100), 2000))


@pytest.mark.slow
def test_full_length_samples() -> None:
    rule = ListOpsRule()
    ours = [(words(ids), value) for ids, value in generate(rule, SLOW_SAMPLES, seed=0)]
    check_samples(ours, rule)
    check_distribution(ours, plain_samples(rule, SLOW_SAMPLES))


def test_workers_do_not_matter() -> None:
    def digest(workers: int) -> str:
        state = sha256()
        for ids, value in generate(ListOpsRule(100, 300), 1500, 7, workers):
            state.update(ids.tobytes() + bytes([value]))
        return state.hexdigest()

    assert digest(1) == digest(2)


def test_seed_and_number() -> None:
    first = [(bytes(ids), value) for ids, value in generate(QUICK, 50, 0)]
    assert [(bytes(ids), value) for ids, value in islice(generate(QUICK, 80, 0), 50)] == first
    assert [(bytes(ids), value) for ids, value in generate(QUICK, 50, 1)] != first


def test_ids_are_the_tokenizers() -> None:
    tokenizer = listops_tokenizer()
    for ids, _ in generate(QUICK, 20, 0):
        assert tokenizer(" ".join(words(ids)))["input_ids"] == ids.tolist()


def test_prepared(tmp_path: Path) -> None:
    data = prepare("listops-quick", options=DataOptions(samples=200, workers=1), cache=tmp_path)
    assert {name: split.num_rows for name, split in data.splits.items()} == {"train": 168, "validation": 16, "test": 16}
    for split in data.splits.values():
        for row in split:
            assert row["length"] == len(row["input_ids"])
            assert value_of(decoded(data, row).split()) == row["label"]
    assert data.classes == [str(value) for value in range(10)]
    assert data.facts["classes"]["train"] == counted(data.splits["train"]["label"])


def counted(labels: list[int]) -> dict[str, int]:
    counts = Counter(labels)
    return {str(value): counts[value] for value in range(10)}


def write_published(folder: Path, train: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    rows = "( ( ( [MAX 4 ) 3 ) ] )\t4\n( ( ( ( [SM 7 ) 8 ) ( ( ( [MIN 1 ) 2 ) ] ) ) ] )\t6\n"
    for name in ("basic_train.tsv", "basic_val.tsv", "basic_test.tsv"):
        (folder / name).write_text("Source\tTarget\n" + rows + (train if name == "basic_train.tsv" else ""))
    return folder


def test_published_files(tmp_path: Path) -> None:
    data = prepare("listops", write_published(tmp_path / "lra"), cache=tmp_path)
    row = data.splits["validation"][1]
    assert decoded(data, row) == "[SM 7 8 [MIN 1 2 ] ]"
    assert (row["label"], row["length"]) == (6, 8)
    assert data.facts["duplicates"]["in train and test"] == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("( [MAX 4 )\n", r"basic_train.tsv: line 4: 1 columns: expected 2"),
        ("( [MAX 4 ) ]\t4\t5\n", r"line 4: 3 columns"),
        ("( [MOX 4 ) ]\t4\n", r"line 4: '\[MOX' is no token"),
        ("( [MAX 4 ) ]\t12\n", r"line 4: label '12' is none of 0, 1"),
        ("( )\t1\n", r"line 4: the sequence is empty"),
    ],
)
def test_bad_rows(tmp_path: Path, line: str, message: str) -> None:
    folder = write_published(tmp_path / "lra", line)
    with pytest.raises(ValueError, match=message):
        prepare("listops", folder, cache=tmp_path)
    data = prepare("listops", folder, DataOptions(bad_rows="skip"), cache=tmp_path)
    assert sum(data.facts["skipped"].values()) == 1
    assert data.splits["train"].num_rows == 2


def test_bad_files(tmp_path: Path) -> None:
    folder = write_published(tmp_path / "lra")
    (folder / "basic_val.tsv").write_bytes(b"")
    with pytest.raises(ValueError, match=r"basic_val.tsv is empty"):
        prepare("listops", folder, cache=tmp_path)
    (folder / "basic_val.tsv").write_bytes(b"Source\tTarget\n\xff\t1\n")
    with pytest.raises(ValueError, match=r"basic_val.tsv: line 2: byte 0xff at column 1 is not UTF-8"):
        prepare("listops", folder, cache=tmp_path)
    (folder / "basic_val.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"basic_val.tsv does not exist"):
        prepare("listops", folder, cache=tmp_path)
    assert not [path for path in (tmp_path / "prepared").iterdir() if path.is_dir()]


def test_sizes() -> None:
    assert sizes(None, (5, 2, 2)) == (5, 2, 2)
    assert sizes(10, (96_000, 2_000, 2_000)) == (8, 1, 1)
    with pytest.raises(ValueError, match="at least 3"):
        sizes(2, (1, 1, 1))


def test_rule_is_checked() -> None:
    with pytest.raises(ValueError, match="no length lies strictly between 5 and 6"):
        ListOpsRule(5, 6)
    with pytest.raises(ValueError, match="at least 2"):
        ListOpsRule(max_arguments=1)
    with pytest.raises(ValueError, match="takes no source"):
        prepare("listops-quick", Path(__file__))


def test_lessons_are_right_and_grow() -> None:
    samples = [(words(ids), value) for ids, value in lessons(3000, seed=5)]
    assert [value_of(tokens) for tokens, _ in samples] == [value for _, value in samples]
    assert math.isclose(sum(share for share, _ in LESSONS), 1)
    ends = [0, *(round(3000 * share) for share in accumulate(share for share, _ in LESSONS))]
    for (start, end), (_, rules) in zip(pairwise(ends), LESSONS, strict=True):
        for number, (tokens, _) in enumerate(samples[start:end]):  # the rules of a lesson take turns
            rule = rules[number % len(rules)]
            assert rule.min_length < len(tokens) < rule.max_length
            assert depth_of(tokens) < rule.max_depth
    lengths = [statistics.mean(len(tokens) for tokens, _ in samples[start:end]) for start, end in pairwise(ends)]
    assert lengths == sorted(lengths)
    assert samples == [(words(ids), value) for ids, value in lessons(3000, seed=5)]
    assert samples != [(words(ids), value) for ids, value in lessons(3000, seed=6)]


def test_lessons_are_prepared_in_order(tmp_path: Path) -> None:
    data = prepare("listops-lessons", options=DataOptions(samples=4004, seed=5), cache=tmp_path)
    assert {name: split.num_rows for name, split in data.splits.items()} == {"train": 3998, "validation": 3, "test": 3}
    assert [row["input_ids"] for row in data.splits["train"].select(range(3))] == [
        ids.tolist() for ids, _ in islice(lessons(4004, seed=5), 3)
    ]
    with pytest.raises(ValueError, match="listops-lessons is generated and takes no source"):
        prepare("listops-lessons", Path(__file__))
