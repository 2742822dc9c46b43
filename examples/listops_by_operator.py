"""What a ListOps model has understood: its accuracy by the outermost operator, on new samples. A minute on two cores.

python examples/listops_by_operator.py models/listops
python examples/listops_by_operator.py outputs/listops-quick --shortest 31 --longest 119
python examples/listops_by_operator.py outputs/listops-course --shortest 4 --longest 15 --depth 2
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import torch

import synvolution as sv
from synvolution.data.listops import ListOpsRule, generate
from synvolution.data.vocabulary import LISTOPS_TOKENS


@torch.inference_mode()
def right_by_operator(
    model: sv.ConverterForSequenceClassification, rule: ListOpsRule, samples: int, seed: int
) -> dict[str, list[int]]:
    """For each outermost operator a list of 1 (right) and 0, one for each sample."""
    right = defaultdict(list)
    for ids, value in generate(rule, samples, seed):
        logits = model(torch.from_numpy(ids.astype("int64"))[None]).logits
        right[LISTOPS_TOKENS[ids[0] - 1]].append(int(logits.argmax() == value))
    return dict(sorted(right.items()))


def main() -> None:
    """Generate, answer, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a trained model")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--shortest", type=int, default=501, help="tokens of a sample")
    parser.add_argument("--longest", type=int, default=1999)
    parser.add_argument("--depth", type=int, default=10, help="operators stand above it; 2 for flat lists")
    parser.add_argument("--arguments", type=int, default=10, help="of an operator at most")
    parser.add_argument("--seed", type=int, default=54321, help="of the samples; the training rows have seed 0")
    options = parser.parse_args()
    model = sv.ConverterForSequenceClassification.from_pretrained(options.model).eval()
    rule = ListOpsRule(options.shortest - 1, options.longest + 1, options.depth, options.arguments)
    found = right_by_operator(model, rule, options.samples, options.seed)
    for operator, answers in found.items():
        print(f"{operator:5}{len(answers):6,} samples  {sum(answers) / len(answers):7.2%}")
    answers = [answer for part in found.values() for answer in part]
    print(f"all  {len(answers):6,} samples  {sum(answers) / len(answers):7.2%}")


if __name__ == "__main__":
    main()
