"""ListOps: nested lists of MIN, MAX, MED and SM over digits, whose value is the class.

The rule of the benchmark (Nangia & Bowman 2018; Tay et al. 2021): a node is an operator with probability 1/4 at depths
1 to 9, else a digit; an operator has 2 to 10 arguments; trees are kept if their length (operators, digits and closing
brackets) lies strictly between 500 and 2000, and each tree only once.

Whole batches of trees grow level by level in numpy. A batch is drawn from its own seed, so that the samples do not
depend on the number of processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, cycle, islice, pairwise

import numpy as np
from numpy.typing import NDArray

from synvolution.data.parallel import ordered_map
from synvolution.data.vocabulary import LISTOPS_TOKENS

#: Ids of the operators (0 to 3 + OPERATOR), of "]" and of the digits (0 to 9 + DIGIT), as the tokenizer has them.
OPERATOR, CLOSE, DIGIT = (1 + LISTOPS_TOKENS.index(token) for token in ("[MIN", "]", "0"))

#: Trees begun per seed. Part of what a seed means: another number gives other samples.
TREES_PER_BATCH = 8192


@dataclass(frozen=True)
class ListOpsRule:
    """The limits of the generator.

    Args:
        min_length: lengths must be above.
        max_length: lengths must be below.
        max_depth: operators stand at depths below, the outermost at depth 1.
        max_arguments: an operator has 2 to so many arguments.

    Example:
        >>> ListOpsRule()
        ListOpsRule(min_length=500, max_length=2000, max_depth=10, max_arguments=10)
    """

    min_length: int = 500
    max_length: int = 2000
    max_depth: int = 10
    max_arguments: int = 10

    def __post_init__(self) -> None:
        if not 1 <= self.min_length < self.max_length - 1:
            raise ValueError(f"no length lies strictly between {self.min_length} and {self.max_length}")
        if self.max_depth < 2 or self.max_arguments < 2:
            raise ValueError(f"depth {self.max_depth} and arguments {self.max_arguments}: both must be at least 2")


def _rules(low: int, high: int, arguments: tuple[int, ...], depths: tuple[int, ...]) -> list[ListOpsRule]:
    return [ListOpsRule(low, high, depth, most) for most in arguments for depth in depths]


_NESTED = _rules(5, 30, (3, 4, 5), (3,)) + _rules(5, 40, (7,), (3,)) + _rules(8, 30, (2, 3), (4,))
_DEEPER = _rules(12, 60, (7, 10), (3,)) + _rules(8, 40, (3, 5), (4, 10)) + _NESTED

#: A course from two digits under one operator to lists of nearly 120 tokens: each lesson's share of the samples and the
#: rules that take turns in it.
LESSONS = (
    (0.03, _rules(3, 16, (2, 3), (2,))),
    (0.05, _rules(3, 16, (3, 5, 7, 10), (2,))),
    (0.20, _rules(5, 20, (2, 3, 3), (3,)) + _rules(3, 16, (5,), (2,))),
    (0.25, _rules(3, 16, (10,), (2,)) + _NESTED),
    (0.25, _DEEPER),
    (0.22, _rules(30, 120, (10,) * 20, (10,)) + _DEEPER),
)


@dataclass
class _Level:
    """The nodes of one depth, of all trees of a batch, children of one parent side by side."""

    tree: NDArray[np.int64]
    parent: NDArray[np.int64]
    is_operator: NDArray[np.bool_]
    symbol: NDArray[np.int64]  # 0 to 3 for operators, 0 to 9 for digits


def generate(rule: ListOpsRule, samples: int, seed: int, workers: int = 1) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Different ListOps samples: token ids and value.

    Example:
        >>> ids, value = next(generate(ListOpsRule(3, 8), 1, seed=0))
        >>> " ".join(LISTOPS_TOKENS[i - 1] for i in ids), value
        ('[MAX 3 1 ]', 3)
    """
    seen: set[bytes] = set()
    empty = 0
    for samples_of_batch in ordered_map(_batch, ((rule, seed, number) for number in _count()), workers):
        before = len(seen)
        for ids, value in samples_of_batch:
            digest = blake2b(ids.tobytes(), digest_size=16).digest()
            if digest not in seen:
                seen.add(digest)
                yield ids, value
                if len(seen) == samples:
                    return
        empty = empty + 1 if len(seen) == before else 0
        if empty == 100:
            raise ValueError(f"{rule} has given only {len(seen)} different samples of {samples}: widen its limits")


def lessons(samples: int, seed: int) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Samples of the course ``LESSONS``, in its order; the smallest lists are few and come again and again.

    Among lists of a natural size a sum modulo 10 is nearly never the only thing that a model does not know yet, and so
    is not learned at all; here it comes alone, on two digits, before anything else.

    Example:
        >>> [" ".join(LISTOPS_TOKENS[i - 1] for i in ids) for ids, _ in lessons(100, seed=0)][:61:30]
        ['[MAX 5 2 ]', '[MED [MED 9 1 5 ] [MED 0 4 ] [SM 9 2 ] ]', '[SM 9 [MIN 8 1 0 ] 3 ]']
    """
    ends = [round(samples * sum(share for share, _ in LESSONS[: k + 1])) for k in range(len(LESSONS) - 1)]
    for lesson, (start, end) in enumerate(pairwise([0, *ends, samples])):
        rules = LESSONS[lesson][1]
        sources = cycle([_endless(rule, seed, lesson * 1000 + number) for number, rule in enumerate(rules)])
        yield from (next(source) for source in islice(sources, end - start))


def _endless(rule: ListOpsRule, seed: int, stream: int) -> Iterator[tuple[NDArray[np.uint8], int]]:
    return chain.from_iterable(_batch(rule, seed, stream << 32 | number) for number in _count())


def _count() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def _batch(rule: ListOpsRule, seed: int, number: int) -> list[tuple[NDArray[np.uint8], int]]:
    """All acceptable trees of one batch, in order."""
    levels, lengths = _grow(rule, np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))))
    accepted = (lengths > rule.min_length) & (lengths < rule.max_length)
    levels = _only(levels, accepted)
    if not accepted.any():
        return []
    lengths = lengths[accepted]
    tokens, values = _serialised(levels, lengths), _evaluated(levels)
    ends = np.cumsum(lengths)
    return [(tokens[end - length : end], int(value)) for end, length, value in zip(ends, lengths, values, strict=True)]


def _grow(rule: ListOpsRule, bits: np.random.PCG64) -> tuple[list[_Level], NDArray[np.int64]]:
    """Trees level by level, and their lengths. A tree that is already too long grows no further.

    One random 64-bit word decides a node: its upper 2 bits whether it is an operator, 31 bits each the number of
    arguments and the symbol. Words, unlike the distributions of numpy, are the same in every version.
    """
    tree = np.arange(TREES_PER_BATCH)
    parent = np.zeros_like(tree)
    lengths = np.zeros_like(tree)
    levels = []
    for depth in range(1, rule.max_depth + 1):
        word = bits.random_raw(len(tree))
        is_operator = (word >> np.uint64(62) == 0) if depth < rule.max_depth else np.zeros(len(tree), bool)
        arguments = 2 + _scaled(word >> np.uint64(31), np.full(len(tree), rule.max_arguments - 1))
        symbol = _scaled(word, np.where(is_operator, 4, 10))
        levels.append(_Level(tree, parent, is_operator, symbol))
        lengths += np.bincount(tree, minlength=TREES_PER_BATCH)
        lengths += np.bincount(tree[is_operator], minlength=TREES_PER_BATCH)
        grows = np.flatnonzero(is_operator & (lengths[tree] < rule.max_length))
        parent = np.repeat(grows, arguments[grows])
        tree = tree[parent]
    return levels, lengths


def _scaled(word: NDArray[np.uint64], choices: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lower 31 bits of a word as a number below the number of choices (off uniform by less than 1e-8)."""
    return ((word & np.uint64(0x7FFFFFFF)).astype(np.int64) * choices) >> 31


def _only(levels: list[_Level], accepted: NDArray[np.bool_]) -> list[_Level]:
    """The levels with the nodes of accepted trees alone; trees and parents numbered anew."""
    tree_number = np.cumsum(accepted) - 1
    node_number = np.zeros(0, np.int64)
    kept = []
    for depth, level in enumerate(levels):
        keep = accepted[level.tree]
        parent = node_number[level.parent[keep]] if depth else level.parent[keep]
        kept.append(_Level(tree_number[level.tree[keep]], parent, level.is_operator[keep], level.symbol[keep]))
        node_number = np.cumsum(keep) - 1
    return kept


def _serialised(levels: list[_Level], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Token ids of all trees, one after the other."""
    sizes = [1 + level.is_operator.astype(np.int64) for level in levels]
    for depth in range(len(levels) - 1, 0, -1):
        of_children = np.bincount(levels[depth].parent, weights=sizes[depth], minlength=len(sizes[depth - 1]))
        sizes[depth - 1] += of_children.astype(np.int64)
    tokens = np.empty(int(lengths.sum()), np.uint8)
    position = np.cumsum(lengths) - lengths
    for depth, level in enumerate(levels):
        if depth and len(level.tree):
            before = np.cumsum(sizes[depth]) - sizes[depth]  # of all nodes to the left, of any parent
            first = np.flatnonzero(np.diff(level.parent, prepend=-1))
            siblings = np.diff(first, append=len(level.parent))
            position = position[level.parent] + 1 + before - np.repeat(before[first], siblings)
        elif depth:
            break
        tokens[position] = np.where(level.is_operator, OPERATOR, DIGIT) + level.symbol
        tokens[(position + sizes[depth] - 1)[level.is_operator]] = CLOSE
    return tokens


def _evaluated(levels: list[_Level]) -> NDArray[np.int64]:
    """Value of each tree: operators from the values of their arguments, from the deepest level up."""
    values = levels[-1].symbol
    for depth in range(len(levels) - 2, -1, -1):
        level, parent = levels[depth], levels[depth + 1].parent
        above = level.symbol.copy()
        if len(parent):
            first = np.flatnonzero(np.diff(parent, prepend=-1))
            number = np.diff(first, append=len(parent))
            ordered = np.sort(parent * 16 + values) % 16  # the arguments of each operator by size
            median = (ordered[first + (number - 1) // 2] + ordered[first + number // 2]) // 2
            largest = ordered[first + number - 1]
            results = (ordered[first], largest, median, np.add.reduceat(values, first) % 10)
            above[parent[first]] = np.choose(level.symbol[parent[first]], results)
        values = above
    return values
