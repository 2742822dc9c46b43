"""Train a Converter with Hugging Face's Trainer on a csv file with the columns text and label. A minute on two cores.

python examples/finetune_csv.py                     # writes a small csv of its own first
python examples/finetune_csv.py reviews.csv --out my-model
python examples/finetune_csv.py reviews.csv --model my-model   # go on from a saved model
"""

from __future__ import annotations

import argparse
import csv
import itertools
import random
from pathlib import Path
from typing import Any

from datasets import load_dataset
from transformers import AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments, pipeline

import synvolution as sv
from synvolution.data.tokenizers import character_tokenizer


def write_sample(path: Path) -> None:
    """Small reviews; "not" turns their meaning, so single words do not tell."""
    things, verbs = ("food", "film", "room", "music", "service", "view"), ("was", "is", "seemed")
    words = {"good": "positive", "great": "positive", "lovely": "positive", "bad": "negative", "poor": "negative"}
    opposite = {"positive": "negative", "negative": "positive"}
    rows = []
    for thing, verb, (word, label), negated in itertools.product(things, verbs, words.items(), (False, True)):
        text = f"the {thing} {verb} {'not ' if negated else ''}{word}"
        rows.append((text, opposite[label] if negated else label))
    random.Random(0).shuffle(rows)
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])


def accuracy(prediction: Any) -> dict[str, float]:
    """Share of right answers."""
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main() -> None:
    """Read, split, tokenize, train, save, predict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", nargs="?", type=Path, help="file with the columns text and label")
    parser.add_argument("--model", type=Path, help="saved model to start from")
    parser.add_argument("--out", type=Path, default=Path("outputs/finetuned"), help="where the model goes")
    parser.add_argument("--epochs", type=int, default=40)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.csv is None:
        options.csv = options.out / "reviews.csv"
        write_sample(options.csv)

    data = load_dataset("csv", data_files=str(options.csv), split="train", cache_dir=str(options.out / "cache"))
    data = data.class_encode_column("label").train_test_split(0.2, seed=0, stratify_by_column="label")
    classes = data["train"].features["label"].names
    tokenizer: Any
    if options.model is None:
        tokenizer = character_tokenizer(data["train"]["text"], max_length=4096)
        config = sv.ConverterConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            id2label=dict(enumerate(classes)),
            label2id={name: number for number, name in enumerate(classes)},
        )
        model = sv.ConverterForSequenceClassification(config)
    else:
        tokenizer = AutoTokenizer.from_pretrained(options.model)
        model = sv.ConverterForSequenceClassification.from_pretrained(options.model)
    data = data.map(lambda rows: tokenizer(rows["text"], truncation=True), batched=True, remove_columns="text")

    arguments = TrainingArguments(
        output_dir=str(options.out),
        num_train_epochs=options.epochs,
        per_device_train_batch_size=16,
        learning_rate=5e-3,
        warmup_steps=20,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=False,
        seed=0,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=data["train"],
        eval_dataset=data["test"],
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=accuracy,
    )
    trainer.train()
    print(f"held-out accuracy: {trainer.evaluate()['eval_accuracy']:.3f}")
    trainer.save_model(str(options.out))
    tokenizer.save_pretrained(options.out)
    print(f"saved: {options.out}")
    classify = pipeline("text-classification", model=str(options.out), tokenizer=str(options.out))
    for text in ("the music was not bad", "the view seemed great"):
        print(text, "→", classify(text)[0])


if __name__ == "__main__":
    main()
