"""Symbols of the tasks, apart from the tokenizers, so that generating processes start without loading those."""

from __future__ import annotations

#: The 15 tokens of ListOps, in the order of their ids from 1 on (0 is padding).
LISTOPS_TOKENS: tuple[str, ...] = ("[MIN", "[MAX", "[MED", "[SM", "]", *"0123456789")

#: The bases, in the order of their ids from 1 on (0 is padding); n is any base.
DNA_TOKENS: tuple[str, ...] = tuple("acgtn")

#: The letters of the IUPAC code that stand for several bases, and X: all read as n.
IUPAC_AMBIGUOUS = "ryswkmbdhvx"
