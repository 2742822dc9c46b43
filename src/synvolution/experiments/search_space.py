"""What a sweep searches: a table of the paper's hyperparameters and our options, and how values become a recipe."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from synvolution.models.options import UNITARY_MIXERS
from synvolution.recipes import Recipe

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

Value = int | float | str


@dataclass(frozen=True)
class Dimension:
    """One thing that is searched: either a few choices, or a range.

    Args:
        part: of the recipe: "model" or "training".
        fields: options that take the value.
        choices: what is tried, or none for a range.
        low, high: ends of the range.
        log: whether the range is even in the logarithm.
        whole: whether the range has whole numbers only.
        mixers: mixers that know the option; none for all.
    """

    part: str
    fields: tuple[str, ...]
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    whole: bool = False
    mixers: tuple[str, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return all(isinstance(choice, int | float) for choice in self.choices)


def _rate(*names: str, mixers: tuple[str, ...] = ()) -> Dimension:
    return Dimension("model", tuple(f"{name}_dropout" for name in names), low=0.0, high=0.5, mixers=mixers)


_RATES = ("embedding", "value", "feedforward", "eigenvalue", "eigenvector")
_KERNELUTION = ("kernelution",)

#: Everything a sweep can search, by name. Ranges and choices are widened to hold the recipe's own value.
SPACE: dict[str, Dimension] = {
    # the columns of the paper's table of hyperparameters
    "hidden_size": Dimension("model", ("hidden_size",), (32, 64, 128)),
    "order": Dimension("model", ("order",), low=1, high=4, whole=True, mixers=_KERNELUTION),
    "eta": Dimension("model", ("eta",), low=1e-4, high=0.3, log=True, mixers=_KERNELUTION),
    "batch_size": Dimension("training", ("batch_size",), (16, 32, 64, 128, 256)),
    "learning_rate": Dimension("training", ("learning_rate",), low=1e-4, high=1e-2, log=True),
    "weight_decay": Dimension("training", ("weight_decay",), low=1e-5, high=1e-1, log=True),
    "dropout": _rate(*_RATES),
    # the same rates one by one
    "embedding_dropout": _rate("embedding"),
    "value_dropout": _rate("value"),
    "feedforward_dropout": _rate("feedforward"),
    "eigenvalue_dropout": _rate("eigenvalue", mixers=UNITARY_MIXERS),
    "eigenvector_dropout": _rate("eigenvector", mixers=UNITARY_MIXERS),
    "classifier_dropout": _rate("classifier"),
    # options beyond the paper
    "intermediate_size": Dimension("model", ("intermediate_size",), (64, 128, 256, 512)),
    "num_layers": Dimension("model", ("num_layers",), low=1, high=3, whole=True),
    "num_heads": Dimension("model", ("num_heads",), (1, 2, 4, 8)),
    "reach": Dimension("model", ("reach",), ("0", "1", "2", "spread"), mixers=UNITARY_MIXERS),
    "orders": Dimension("model", ("orders",), low=1, high=3, whole=True, mixers=UNITARY_MIXERS),
    "mixer": Dimension("model", ("mixer",), ("kernelution", "synvolution", "none")),
    "position": Dimension("model", ("position",), ("rpe", "ape", "spe", "none")),
    "pooling": Dimension("model", ("pooling",), ("mean", "max", "ends")),
    "warmup": Dimension("training", ("warmup",), low=0.0, high=0.2),
    "seed": Dimension("training", ("seed",), (0, 1, 2)),
}

#: Searched unless --search says otherwise.
PAPER = ("hidden_size", "order", "eta", "batch_size", "learning_rate", "weight_decay", "dropout")


def chosen(words: Sequence[str], recipe: Recipe) -> dict[str, Dimension]:
    """The dimensions that are searched, by name: those named, or the paper's as far as the recipe's mixer has them.

    Args:
        words: ``NAME`` as in the table, ``NAME=A,B,C`` for other choices, ``NAME=LOW:HIGH`` for another range.
        recipe: its own values are always among those that can be tried.

    Example:
        >>> from synvolution.recipes import RECIPES
        >>> space = chosen(["learning_rate=1e-3:1e-2", "num_heads=1,4"], RECIPES["listops"])
        >>> space["learning_rate"].high, space["num_heads"].choices
        (0.01, (1, 4))
        >>> chosen(["learning_rat"], RECIPES["listops"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: --search learning_rat: did you mean 'learning_rate'? Known: hidden_size, order, eta, ...
    """
    if not words:
        equal = len({getattr(recipe.model, name) for name in SPACE["dropout"].fields}) == 1
        names = [name for name in PAPER if name != "dropout"]
        names += ["dropout"] if equal else list(SPACE["dropout"].fields)
        words = [name for name in names if _known_to(SPACE[name], recipe)]
    found: dict[str, Dimension] = {}
    for word in words:
        name, _, values = word.partition("=")
        if name in found:
            raise ValueError(f"--search {word}: {name} is named twice")
        found[name] = _with_start(name, _parsed(word, name, values), recipe)
    _check(found, recipe)
    return found


def _parsed(word: str, name: str, values: str) -> Dimension:
    if name not in SPACE:
        near = difflib.get_close_matches(name, SPACE, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"--search {word}: {hint}Known: {', '.join(SPACE)}")
    dimension = SPACE[name]
    if not values:
        if "=" in word:
            raise ValueError(f"--search {word}: give values, {name}=A,B,C or {name}=LOW:HIGH")
        return dimension
    number = int if dimension.whole or isinstance(next(iter(dimension.choices), None), int) else float
    try:
        if not dimension.numeric:
            return replace(dimension, choices=tuple(values.split(",")))
        if ":" not in values:
            return replace(dimension, choices=tuple(number(part) for part in values.split(",")))
        low, high = (number(part) for part in values.split(":"))
    except ValueError as error:
        raise ValueError(f"--search {word}: expected numbers, {name}=A,B,C or {name}=LOW:HIGH") from error
    if not low < high or (dimension.log and low <= 0):
        positive = " above 0" if dimension.log else ""
        raise ValueError(f"--search {word}: expected LOW{positive} below HIGH")
    return replace(dimension, choices=(), low=low, high=high, whole=number is int)


def _known_to(dimension: Dimension, recipe: Recipe) -> bool:
    return not dimension.mixers or recipe.model.mixer in dimension.mixers


def _with_start(name: str, dimension: Dimension, recipe: Recipe) -> Dimension:
    """The dimension, widened to hold the recipe's own value: the first trial is the recipe itself."""
    if not _known_to(dimension, recipe):
        raise ValueError(f"--search {name}: the mixer {recipe.model.mixer!r} has no such option")
    start = start_of(name, dimension, recipe)
    if dimension.choices:
        values = dict.fromkeys((*dimension.choices, start))
        ordered = sorted(values) if dimension.numeric else list(values)
        return replace(dimension, choices=tuple(ordered))
    assert isinstance(start, int | float)
    low, high = min(dimension.low, start), max(dimension.high, start)
    return replace(dimension, low=low, high=high, log=dimension.log and low > 0)


def _check(space: dict[str, Dimension], recipe: Recipe) -> None:
    """Refuse two names for one option, and values that no option takes: better now than in the tenth trial."""
    seen: dict[str, str] = {}
    for name, dimension in space.items():
        for option in dimension.fields:
            if option in seen:
                raise ValueError(f"--search {seen[option]} {name}: both decide {option}, name one of them")
            seen[option] = name
        try:
            for value in dimension.choices or ends_of(dimension):
                tried = configured(recipe, {name: value}, space)
                tried.model.check()
                tried.training.batch_per_process(1)
        except ValueError as error:
            raise ValueError(f"--search {name}: {error}") from error


def ends_of(dimension: Dimension) -> tuple[Value, Value]:
    """Both ends of a range, whole if it is.

    Example:
        >>> ends_of(SPACE["order"])
        (1, 4)
    """
    return (int(dimension.low), int(dimension.high)) if dimension.whole else (dimension.low, dimension.high)


def start_of(name: str, dimension: Dimension, recipe: Recipe) -> Value:
    """The recipe's own value of a dimension.

    Example:
        >>> from synvolution.recipes import RECIPES
        >>> start_of("dropout", SPACE["dropout"], RECIPES["listops"])
        0.1
    """
    values = [getattr(getattr(recipe, dimension.part), option) for option in dimension.fields]
    if any(value != values[0] for value in values):
        raise ValueError(f"--search {name}: the recipe's rates differ, so name them: {', '.join(dimension.fields)}")
    if not isinstance(values[0], int | float | str):
        raise ValueError(f"--search {name}: the recipe has {values[0]!r}, which cannot be searched from")
    value: Value = values[0]
    return value if dimension.numeric else f"{value:g}" if isinstance(value, int | float) else value


def configured(recipe: Recipe, values: dict[str, Any], space: dict[str, Dimension] = SPACE) -> Recipe:
    """The recipe with these values; the feed-forward network keeps its ratio to a new width unless searched itself.

    Example:
        >>> from synvolution.recipes import RECIPES
        >>> model = configured(RECIPES["listops"], {"hidden_size": 64, "dropout": 0.2}).model
        >>> model.hidden_size, model.intermediate_size, model.value_dropout, model.classifier_dropout
        (64, 256, 0.2, 0.1)
    """
    parts: dict[str, dict[str, Any]] = {"model": {}, "training": {}}
    for name, value in values.items():
        dimension = space[name]
        parts[dimension.part] |= dict.fromkeys(dimension.fields, _option(name, value))
    model = parts["model"]
    if "hidden_size" in model and "intermediate_size" not in model:
        ratio = recipe.model.intermediate_size / recipe.model.hidden_size
        model["intermediate_size"] = max(1, round(ratio * model["hidden_size"]))
    return replace(recipe, model=replace(recipe.model, **model), training=replace(recipe.training, **parts["training"]))


def _option(name: str, value: Value) -> Value:
    return float(value) if name == "reach" and value != "spread" else value


def suggest(trial: BaseTrial, space: dict[str, Dimension]) -> dict[str, Value]:
    """Values of a trial of Optuna, one of each dimension.

    Example:
        >>> from optuna.trial import FixedTrial
        >>> suggest(FixedTrial({"order": 3, "seed": 1}), {"order": SPACE["order"], "seed": SPACE["seed"]})
        {'order': 3, 'seed': 1}
    """
    values: dict[str, Value] = {}
    for name, dimension in space.items():
        low, high = ends_of(dimension)
        if dimension.choices:
            value = trial.suggest_categorical(name, dimension.choices)
            assert value is not None
            values[name] = value
        elif isinstance(low, int) and isinstance(high, int):
            values[name] = trial.suggest_int(name, low, high, log=dimension.log)
        else:
            values[name] = trial.suggest_float(name, float(low), float(high), log=dimension.log)
    return values


def grid(space: dict[str, Dimension]) -> list[dict[str, Value]]:
    """Every combination of choices; ranges of whole numbers are choices, too.

    Example:
        >>> grid({"order": SPACE["order"], "seed": SPACE["seed"]})[:4]
        [{'order': 1, 'seed': 0}, {'order': 1, 'seed': 1}, {'order': 1, 'seed': 2}, {'order': 2, 'seed': 0}]
    """
    values: list[Sequence[Value]] = []
    for name, dimension in space.items():
        if not dimension.choices and not dimension.whole:
            raise ValueError(f"--sampler grid: {name} is a range, so give choices: --search {name}=A,B,C")
        values.append(dimension.choices or range(int(dimension.low), int(dimension.high) + 1))
    return [dict(zip(space, point, strict=True)) for point in itertools.product(*values)]


def described(space: dict[str, Dimension]) -> dict[str, Any]:
    """The dimensions as plain data, to compare two studies.

    Example:
        >>> described({"seed": SPACE["seed"]})["seed"]["choices"]
        [0, 1, 2]
    """
    return {name: asdict(dimension) | {"choices": list(dimension.choices)} for name, dimension in space.items()}
