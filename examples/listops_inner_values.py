"""Train a ListOps model also on the values of the inner lists, which the task does not give: hours on two cores.

python examples/listops_inner_values.py models/listops outputs/listops-inner --steps 9000
synvolution train listops-plus --training.start-from outputs/listops-inner --training.max-steps 1500

At each closing bracket a second head has to say the value of the list that ends there: some 170 answers for a row
instead of one. The head is not saved; what is left is a model like any other. The rows are those of the task.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from transformers import get_cosine_schedule_with_warmup

import synvolution as sv
from synvolution.data.base import DataOptions, prepare
from synvolution.data.collate import Collator
from synvolution.data.listops import CLOSE, DIGIT, OPERATOR
from synvolution.data.vocabulary import LISTOPS_TOKENS
from synvolution.training.memory import keep_memory
from synvolution.training.rows import Rows
from synvolution.training.sampler import LengthGroupedSampler

#: Where there is no list's end: F.cross_entropy leaves it out.
NO_VALUE = -100


def inner_values(ids: list[int]) -> list[int]:
    """For each token of a row the value of the list that it closes, else NO_VALUE.

    Example:
        >>> ids = [1 + LISTOPS_TOKENS.index(token) for token in "[SM 9 [MIN 4 7 ] 8 ]".split()]
        >>> [value for value in inner_values(ids) if value != NO_VALUE]
        [4, 1]
    """
    values, stack = [NO_VALUE] * len(ids), []
    for place, token in enumerate(ids):
        if token >= DIGIT:
            stack[-1].append(token - DIGIT)
        elif token >= CLOSE:
            operator, *arguments = stack.pop()
            values[place] = _apply(LISTOPS_TOKENS[operator - 1], sorted(arguments))
            if stack:
                stack[-1].append(values[place])
        elif token >= OPERATOR:
            stack.append([token])
    return values


def _apply(operator: str, ordered: list[int]) -> int:
    if operator == "[SM":
        return sum(ordered) % 10
    if operator == "[MED":
        return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2
    return ordered[0] if operator == "[MIN" else ordered[-1]


def batches(rows: Rows, lengths: list[int], size: int, seed: int) -> Iterator[dict[str, Tensor]]:
    """Padded batches of rows of similar length, epoch after epoch, with the inner values."""
    sampler, collate, epoch = LengthGroupedSampler(lengths, size, seed), Collator(0), 0
    while True:
        sampler.set_epoch(epoch)
        for batch in DataLoader(rows, size, sampler=sampler, collate_fn=collate):
            batch["inner"] = torch.tensor([inner_values(row) for row in batch["input_ids"].tolist()])
            yield batch
        epoch += 1


class WithInnerValues(nn.Module):
    """A classifier and a head on each position, which see the same states."""

    def __init__(self, model: sv.ConverterForSequenceClassification) -> None:
        super().__init__()
        width, self.model = model.config.hidden_size, model
        self.head = nn.Sequential(nn.Linear(width, width), nn.LeakyReLU(), nn.Linear(width, 10))

    def forward(self, inner: Tensor, **batch: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Both losses' sum, the row's and the inner lists' shares of right answers; inner is (B, N)."""
        output = self.model(**batch, output_hidden_states=True)
        asked = inner != NO_VALUE
        logits = self.head(output.hidden_states[-1][asked])
        right = (output.logits.argmax(-1) == batch["labels"]).float().mean()
        inner_right = (logits.argmax(-1) == inner[asked]).float().mean()
        return output.loss + F.cross_entropy(logits, inner[asked]), right, inner_right


def train(both: WithInnerValues, data: Iterator[dict[str, Tensor]], steps: int, rate: float, out: Path) -> None:
    """Steps of AdamW, warm-up and cosine; a line and a copy of the model every 500."""
    optimizer = torch.optim.AdamW(both.parameters(), lr=rate, weight_decay=0.001)
    schedule = get_cosine_schedule_with_warmup(optimizer, min(100, steps // 10), steps)
    since, shares = time.monotonic(), []
    for step in range(1, steps + 1):
        loss, right, inner_right = both(**next(data))
        loss.backward()
        nn.utils.clip_grad_norm_(both.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        shares.append((loss.item(), right.item(), inner_right.item()))
        if step % 500 == 0 or step == steps:
            lost, rows, lists = np.mean(shares, 0)
            minutes, shares = (time.monotonic() - since) / 60, []
            print(
                f"step {step:,}/{steps:,}  loss {lost:.3f}  rows {rows:.1%}  inner lists {lists:.1%}  {minutes:.0f} min"
            )
            both.model.save_pretrained(out)


def main() -> None:
    """Read the model and the task, train, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a trained model")
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--task", default="listops", help="listops, or listops-quick for short lists")
    parser.add_argument("--samples", type=int, help="rows to train on, instead of the task's number")
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    keep_memory()
    torch.manual_seed(options.seed)
    prepared = prepare(options.task, options=DataOptions(samples=options.samples))
    rows = prepared.splits["train"]
    both = WithInnerValues(sv.ConverterForSequenceClassification.from_pretrained(options.model)).train()
    prepared.processor.save_pretrained(options.out)
    data = batches(Rows(rows), rows["length"], options.batch_size, options.seed)
    train(both, data, options.steps, options.learning_rate, options.out)
    print(f"model: {options.out}")


if __name__ == "__main__":
    main()
