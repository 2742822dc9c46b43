"""What a sweep searches: names, ranges, starts, and what becomes of a recipe."""

from __future__ import annotations

from dataclasses import replace

import pytest

from synvolution.experiments.search_space import PAPER, SPACE, chosen, configured, grid, start_of
from synvolution.recipes import RECIPES, Recipe


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_starts_inside_the_default_space(name: str) -> None:
    recipe = RECIPES[name]
    space = chosen((), recipe)
    assert set(space) == set(PAPER)
    start = {key: start_of(key, dimension, recipe) for key, dimension in space.items()}
    assert configured(recipe, start, space) == recipe
    for key, dimension in space.items():
        value = start[key]
        if dimension.choices:
            assert value in dimension.choices
        else:
            assert isinstance(value, int | float)
            assert dimension.low <= value <= dimension.high


def test_every_dimension_reaches_its_options() -> None:
    recipe = RECIPES["listops"]
    for name, dimension in SPACE.items():
        start = start_of(name, dimension, recipe)
        low = int(dimension.low) if dimension.whole else dimension.low
        other = next(value for value in (*dimension.choices, low, dimension.high) if value != start)
        part = getattr(configured(recipe, {name: other}), dimension.part)
        for option in dimension.fields:
            assert getattr(part, option) == (float(other) if name == "reach" and other != "spread" else other)


def test_ranges_are_widened_to_the_start() -> None:
    recipe = RECIPES["pathfinder"]  # rate 0.0002
    assert chosen(["learning_rate=1e-3:1e-2"], recipe)["learning_rate"].low == 0.0002
    assert chosen(["batch_size=8,16"], recipe)["batch_size"].choices == (8, 16, 256)
    without = replace(recipe, model=replace(recipe.model, eta=0.0))
    found = chosen(["eta"], without)["eta"]
    assert (found.low, found.log) == (0.0, False)


def test_mixers_and_rates_decide_what_is_searched() -> None:
    recipe = RECIPES["listops"]
    other = replace(recipe, model=replace(recipe.model, mixer="vanilla"))
    assert set(PAPER) - set(chosen((), other)) == {"order", "eta"}
    with pytest.raises(ValueError, match="'vanilla' has no such option"):
        chosen(["eta"], other)
    uneven = replace(recipe, model=replace(recipe.model, value_dropout=0.3))
    assert {"value_dropout", "embedding_dropout"} < set(chosen((), uneven))
    with pytest.raises(ValueError, match="rates differ"):
        chosen(["dropout"], uneven)


def test_the_feed_forward_network_keeps_its_ratio_unless_searched() -> None:
    recipe = RECIPES["listops"]  # 32, 128
    assert configured(recipe, {"hidden_size": 64}).model.intermediate_size == 256
    assert configured(recipe, {"hidden_size": 64, "intermediate_size": 64}).model.intermediate_size == 64
    assert configured(recipe, {"reach": "2"}).model.reach == 2.0
    assert configured(recipe, {"reach": "spread"}).model.reach == "spread"


def test_a_configured_recipe_survives_its_file() -> None:
    recipe = RECIPES["listops-quick"]
    changed = configured(recipe, {"batch_size": 16, "eta": 0.2, "num_heads": 2, "pooling": "mean", "order": 3})
    assert Recipe.from_json(changed.to_json()) == changed != recipe


def test_grid() -> None:
    space = chosen(["mixer=kernelution,none", "seed=0,1,2"], RECIPES["listops"])
    points = grid(space)
    assert len(points) == len({tuple(point.items()) for point in points}) == 6
    with pytest.raises(ValueError, match="learning_rate is a range"):
        grid(chosen(["learning_rate"], RECIPES["listops"]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["learning_rat"], "did you mean 'learning_rate'"),
        (["order", "order=1,2"], "named twice"),
        (["dropout", "value_dropout"], "both decide value_dropout"),
        (["learning_rate=1:0.1"], "below HIGH"),
        (["learning_rate=0:0.1"], "above 0"),
        (["learning_rate=fast"], "expected numbers"),
        (["learning_rate="], "give values"),
        (["batch_size=0,16"], "batch_size is 0"),
        (["dropout=0:1"], "expected a rate"),
        (["mixer=kernelution,mamba"], "mixer is 'mamba'"),
    ],
)
def test_bad_words_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chosen(words, RECIPES["listops"])
