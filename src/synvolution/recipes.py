"""Recipes: what to train on what, and how. The paper's nine configurations, smaller relatives, and one's own data.

Every number of a published configuration is here and nowhere else. The paper gives sizes, rates and dropout (its table
of hyperparameters); epochs, patience, warm-up and schedule it does not give: those here are ours.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from synvolution.data.options import DataOptions
from synvolution.models.options import ModelOptions
from synvolution.training.options import TrainingOptions


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A task, a model and a way to train it.

    Args:
        task: name of the data (``synvolution data list``), or None for one's own.
        data, model, training: the options of each part.
        vocabulary, classes: of the published task, to count parameters; training takes them from the data.
        pair: whether the task compares two sequences.
        about: one line.
    """

    task: str | None
    model: ModelOptions = field(default_factory=ModelOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    data: DataOptions = field(default_factory=DataOptions)
    vocabulary: int = 98
    classes: int = 2
    pair: bool = False
    about: str = ""

    def to_json(self) -> str:
        """As a file that ``train`` takes.

        Example:
            >>> Recipe.from_json(RECIPES["listops"].to_json()) == RECIPES["listops"]
            True
        """
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """Read what ``to_json`` wrote; names that no option has are refused."""
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError(
                f"a recipe is a JSON object with task, model, training and data, not {type(content).__name__}"
            )
        parts: dict[str, Any] = {"model": ModelOptions, "training": TrainingOptions, "data": DataOptions}
        for name, kind in parts.items():
            content[name] = _filled(kind, content.get(name, {}), name)
        return _filled(cls, content, "recipe")


def _filled(kind: Any, values: dict[str, Any], where: str) -> Any:
    unknown = set(values) - {entry.name for entry in fields(kind)}
    if unknown:
        known = [entry.name for entry in fields(kind)]
        near = difflib.get_close_matches(min(unknown), known, 1)
        raise ValueError(f"{where} has no option {min(unknown)!r}" + (f": did you mean {near[0]!r}?" if near else ""))
    return kind(**values)


def _paper(task: str, size: int, eta: float, training: TrainingOptions, **rest: Any) -> Recipe:
    """One row of the paper's table of hyperparameters: all have RPE, K = 2, mean pooling and dropout 0.1."""
    model = ModelOptions(hidden_size=size, intermediate_size=4 * size, eta=eta)
    return Recipe(task=task, model=model, training=training, **rest)


def _training(batch_size: int, rate: float, decay: float, epochs: float, patience: int) -> TrainingOptions:
    return TrainingOptions(
        batch_size=batch_size, learning_rate=rate, weight_decay=decay, epochs=epochs, patience=patience
    )


#: Our model for ListOps: twice the paper's width, heads of different reach, the ends pooled; no dropout, since there
#: are more samples than so few parameters can learn by heart.
_LISTOPS_MODEL = ModelOptions(
    hidden_size=64,
    intermediate_size=128,
    num_heads=4,
    reach="spread",
    pooling="ends",
    embedding_dropout=0.0,
    value_dropout=0.0,
    feedforward_dropout=0.0,
    eigenvalue_dropout=0.0,
    eigenvector_dropout=0.0,
    classifier_dropout=0.0,
)
_ENSEMBL = {"vocabulary": 6, "classes": 2}
_LONGDOC = {"vocabulary": 98, "classes": 4}

#: Every recipe by name.
RECIPES: dict[str, Recipe] = {
    "listops": _paper("listops", 32, 0.001, _training(128, 0.001, 0.001, 50, 10), vocabulary=16, classes=10),
    "text": _paper("text", 64, 0.001, _training(128, 0.001, 0.001, 30, 8), vocabulary=96),
    "retrieval": _paper("retrieval", 64, 0.001, _training(256, 0.001, 0.001, 20, 5), vocabulary=98, pair=True),
    "image": _paper("image", 64, 0.01, _training(128, 0.001, 0.001, 60, 10), vocabulary=256, classes=10),
    "pathfinder": _paper("pathfinder", 64, 0.001, _training(256, 0.0002, 0.0002, 100, 15), vocabulary=256),
    "longdoc16k": _paper("longdoc16k", 128, 0.1, _training(4, 0.001, 0.001, 20, 5), **_LONGDOC),
    "longdoc32k": _paper("longdoc32k", 128, 0.1, _training(4, 0.001, 0.001, 20, 5), **_LONGDOC),
    "ensembl-bs": _paper("ensembl-bs", 128, 0.1, _training(32, 0.001, 0.001, 20, 5), **_ENSEMBL),
    "ensembl-mr": _paper("ensembl-mr", 128, 0.1, _training(32, 0.001, 0.001, 10, 3), **_ENSEMBL),
    "listops-quick": Recipe(
        task="listops-quick",
        model=ModelOptions(hidden_size=64, intermediate_size=128, num_heads=4, reach="spread", pooling="ends"),
        training=TrainingOptions(epochs=6, batch_size=64, learning_rate=0.003, patience=0),
        vocabulary=16,
        classes=10,
        about="short ListOps: minutes on a laptop, to see that everything works",
    ),
    "listops-short": Recipe(
        task="listops-quick",
        model=_LISTOPS_MODEL,
        data=DataOptions(samples=500_000),
        training=TrainingOptions(
            max_steps=20_000, batch_size=64, learning_rate=0.003, validate_every=0.15, patience=0, log_every=100
        ),
        vocabulary=16,
        classes=10,
        about="half a million short expressions: where listops-plus starts from",
    ),
    "listops-course": Recipe(
        task="listops-lessons",
        model=_LISTOPS_MODEL,
        training=TrainingOptions(
            epochs=1, batch_size=128, learning_rate=0.003, warmup=0.01, order="given", validate_every=0.1, patience=0
        ),
        vocabulary=16,
        classes=10,
        about="a course from two digits under one operator to short expressions, in this order",
    ),
    "listops-plus": Recipe(
        task="listops",
        model=_LISTOPS_MODEL,
        training=TrainingOptions(
            start_from="outputs/listops-short",
            max_steps=6000,
            batch_size=32,
            learning_rate=0.001,
            validate_every=0.2,
            patience=0,
        ),
        vocabulary=16,
        classes=10,
        about="ListOps with our settings, begun on short expressions; train listops-short first",
    ),
    "own": Recipe(
        task=None,
        model=ModelOptions(num_heads=4, reach="spread", pooling="ends"),
        training=TrainingOptions(epochs=30, batch_size=32, learning_rate=0.002),
        about="one's own data, given with --data",
    ),
}

#: The nine configurations of the paper's table.
PUBLISHED = tuple(name for name, recipe in RECIPES.items() if name == recipe.task and name != "listops-quick")


def plus(recipe: Recipe) -> Recipe:
    """A recipe with what helped us beyond the paper: heads of different reach, the ends pooled as well, a higher rate.

    Sizes, dropout and data stay. Why each helps: docs/training.md.

    Example:
        >>> plus(RECIPES["listops"]).model.pooling
        'ends'
    """
    model = replace(recipe.model, num_heads=4, reach="spread", pooling="ends")
    rate = max(recipe.training.learning_rate, 0.002)
    return replace(recipe, model=model, training=replace(recipe.training, learning_rate=rate))


#: The paper's table of baselines: width, heads, batch, rate. All have RPE, 2 blocks, hidden size 4 × width, mean
#: pooling, weight decay 0.0001, dropout 0.1. Its second block is headed LongDoc16K again and taken for LongDoc32K.
_WIDE, _SMALL = (128, 2, 4, 0.0002), (64, 2, 2, 0.0001)
_LONGDOC_BASELINES = {
    "vanilla": (64, 2, 2, 0.0005),
    "linformer": _WIDE,
    "performer": _WIDE,
    "synthesizer": (64, 2, 2, 0.0005),
    "fnet": (128, 1, 4, 0.0002),
    "cosformer": _WIDE,
    "paramixer": (128, 1, 4, 0.0002),
}
_ENSEMBL_BASELINES = {
    "vanilla": (64, 1, 2, 0.0002),
    "linformer": _SMALL,
    "performer": _SMALL,
    "synthesizer": (64, 1, 2, 0.0002),
    "fnet": (64, 1, 2, 0.0001),
    "cosformer": _SMALL,
    "paramixer": (64, 1, 2, 0.0001),
}
_ONE_HEAD = {name: (64, 1, 2, 0.0005) for name in ("vanilla", "synthesizer")}
BASELINES: dict[str, dict[str, tuple[int, int, int, float]]] = {
    "longdoc16k": _LONGDOC_BASELINES,
    "longdoc32k": {**_LONGDOC_BASELINES, **_ONE_HEAD},
    "ensembl-bs": _ENSEMBL_BASELINES,
    "ensembl-mr": _ENSEMBL_BASELINES,
}


def baseline_recipe(name: str, mixer: str) -> Recipe:
    """A recipe with another mixer on the paper's terms for baselines.

    For the long documents and Ensembl these are its table of baselines; where that has no row (and for the five tasks
    of the Long-Range Arena) the recipe's own sizes are kept and only the mixer is another one.

    Example:
        >>> [baseline_recipe(name, "fnet").model.num_layers for name in ("longdoc16k", "listops")]
        [2, 1]
    """
    recipe = find_recipe(name)
    row = BASELINES.get(name, {}).get(mixer)
    if row is None:
        model = replace(recipe.model, mixer=mixer)
        model.check()
        return replace(recipe, model=model)
    width, heads, batch, rate = row
    model = ModelOptions(
        mixer=mixer, hidden_size=width, intermediate_size=4 * width, num_layers=2, num_heads=heads, eta=0.0
    )
    training = replace(recipe.training, batch_size=batch, learning_rate=rate, weight_decay=0.0001)
    return replace(recipe, model=model, training=training)


def find_recipe(name: str) -> Recipe:
    """A recipe by name, or from a JSON file.

    Example:
        >>> find_recipe("listops").model.hidden_size
        32
    """
    if name in RECIPES:
        return RECIPES[name]
    if Path(name).suffix == ".json":
        try:
            return Recipe.from_json(Path(name).read_text(encoding="utf-8"))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name}: {error}") from error
    near = difflib.get_close_matches(name, RECIPES, 2)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    if Path(name).exists():
        hint = f"to train on this data: synvolution train --data {name}. "
    raise ValueError(f"unknown recipe {name!r}: {hint}Recipes: {', '.join(RECIPES)}, or a .json file")


def parameter_counts(names: tuple[str, ...] = PUBLISHED) -> dict[str, int]:
    """Numbers of parameters of the models of recipes, for the vocabulary and classes of the published tasks.

    Example:
        >>> parameter_counts(("listops",))
        {'listops': 33624}
    """
    from synvolution.models import ConverterConfig, ConverterForPairClassification, ConverterForSequenceClassification

    counts = {}
    for name in names:
        recipe = RECIPES[name]
        labels = {number: str(number) for number in range(recipe.classes)}
        config = ConverterConfig(**asdict(recipe.model), vocab_size=recipe.vocabulary, id2label=labels)
        kind = ConverterForPairClassification if recipe.pair else ConverterForSequenceClassification
        counts[name] = sum(parameter.numel() for parameter in kind(config).parameters())
    return counts
