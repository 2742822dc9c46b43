"""Recipes: the paper's table to the number, parameter counts, files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from synvolution.experiments.recipe_table import recipe_table
from synvolution.recipes import (
    BASELINES,
    PUBLISHED,
    RECIPES,
    Recipe,
    baseline_recipe,
    find_recipe,
    parameter_counts,
)

#: The paper's table of hyperparameters: embedding size, hidden size, η, batch, rate, weight decay.
PAPER = {
    "listops": (32, 128, 0.001, 128, 0.001, 0.001),
    "text": (64, 256, 0.001, 128, 0.001, 0.001),
    "retrieval": (64, 256, 0.001, 256, 0.001, 0.001),
    "image": (64, 256, 0.01, 128, 0.001, 0.001),
    "pathfinder": (64, 256, 0.001, 256, 0.0002, 0.0002),
    "longdoc16k": (128, 512, 0.1, 4, 0.001, 0.001),
    "longdoc32k": (128, 512, 0.1, 4, 0.001, 0.001),
    "ensembl-bs": (128, 512, 0.1, 32, 0.001, 0.001),
    "ensembl-mr": (128, 512, 0.1, 32, 0.001, 0.001),
}

#: The paper's table of baselines, row by row: embedding size, hidden size, blocks, heads (N/A: None), batch, rate. All
#: rows have RPE, mean pooling, weight decay 0.0001 and dropout 0.1 at positions, values and feed-forward network.
_LONGDOC16K = {
    "vanilla": (64, 256, 2, 2, 2, 0.0005),
    "linformer": (128, 512, 2, 2, 4, 0.0002),
    "performer": (128, 512, 2, 2, 4, 0.0002),
    "synthesizer": (64, 256, 2, 2, 2, 0.0005),
    "fnet": (128, 512, 2, None, 4, 0.0002),
    "cosformer": (128, 512, 2, 2, 4, 0.0002),
    "paramixer": (128, 512, 2, None, 4, 0.0002),
}
_LONGDOC32K = {
    "vanilla": (64, 256, 2, 1, 2, 0.0005),
    "linformer": (128, 512, 2, 2, 4, 0.0002),
    "performer": (128, 512, 2, 2, 4, 0.0002),
    "synthesizer": (64, 256, 2, 1, 2, 0.0005),
    "fnet": (128, 512, 2, None, 4, 0.0002),
    "cosformer": (128, 512, 2, 2, 4, 0.0002),
    "paramixer": (128, 512, 2, None, 4, 0.0002),
}
_ENSEMBL = {
    "vanilla": (64, 256, 2, 1, 2, 0.0002),
    "linformer": (64, 256, 2, 2, 2, 0.0001),
    "performer": (64, 256, 2, 2, 2, 0.0001),
    "synthesizer": (64, 256, 2, 1, 2, 0.0002),
    "fnet": (64, 256, 2, None, 2, 0.0001),
    "cosformer": (64, 256, 2, 2, 2, 0.0001),
    "paramixer": (64, 256, 2, None, 2, 0.0001),
}
PAPER_BASELINES = {
    "longdoc16k": _LONGDOC16K,
    "longdoc32k": _LONGDOC32K,
    "ensembl-bs": _ENSEMBL,
    "ensembl-mr": _ENSEMBL,
}


def by_hand(width: int, hidden: int, vocabulary: int, classes: int, pair: bool) -> int:
    """Parameters of the published model, counted part by part."""
    linear = lambda inputs, outputs: inputs * outputs + outputs  # noqa: E731
    norm, angles = 1, 6 * -(-width // 6)
    embedding = vocabulary * width + 2 * (2 * 3 * width * width + 2 * 3 * width) + norm
    siren = lambda out: linear(width, width) + norm + linear(width, out)  # noqa: E731
    mixer = linear(width, 2 * width) + siren(width) + siren(angles) + 1 + 3  # reach; w_0, w_1, w_2
    block = mixer + norm + 2 * linear(width, hidden) + linear(hidden, width) + 1 + norm  # ζ
    return embedding + block + linear((4 if pair else 1) * width, width) + linear(width, classes)


def test_published_configurations_are_the_papers() -> None:
    assert set(PUBLISHED) == set(PAPER)
    for name, row in PAPER.items():
        model, training = RECIPES[name].model, RECIPES[name].training
        rates = (training.batch_size, training.learning_rate, training.weight_decay)
        assert (model.hidden_size, model.intermediate_size, model.eta, *rates) == row, name
        assert (model.order, model.position, model.pooling, model.num_layers, model.num_heads) == (
            2,
            "rpe",
            "mean",
            1,
            1,
        )
        assert {getattr(model, f) for f in vars(model) if f.endswith("_dropout")} == {0.1}


def test_parameter_counts() -> None:
    for name, count in parameter_counts().items():
        recipe = RECIPES[name]
        sizes = recipe.model.hidden_size, recipe.model.intermediate_size, recipe.vocabulary, recipe.classes
        assert count == by_hand(*sizes, recipe.pair), name
    assert recipe_table().row_count == 9


def test_recipes_survive_a_file(tmp_path: Path) -> None:
    recipe = replace(RECIPES["listops"], model=replace(RECIPES["listops"].model, reach=[0.1, 2.0], num_heads=2))
    path = tmp_path / "mine.json"
    path.write_text(recipe.to_json(), encoding="utf-8")
    assert find_recipe(str(path)) == recipe


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"task": "listops", "model": {"hiden_size": 3}}',
            "model has no option 'hiden_size': did you mean 'hidden_size'",
        ),
        ('{"task": "listops", "training": {"epochs": -1}}', "epochs is -1"),
        ('{"tusk": 3}', "recipe has no option 'tusk': did you mean 'task'"),
        ("[1]", "a recipe is a JSON object"),
        ("{", "mine.json: "),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        find_recipe(str(path))


def test_unknown_names_suggest() -> None:
    assert isinstance(find_recipe("own"), Recipe)
    with pytest.raises(ValueError, match="did you mean 'pathfinder'"):
        find_recipe("pathfindr")
    with pytest.raises(ValueError, match=r"synvolution train --data pyproject\.toml"):
        find_recipe("pyproject.toml")


@pytest.mark.parametrize("task", PAPER_BASELINES)
def test_baselines_are_the_papers_row_by_row(task: str) -> None:
    assert set(BASELINES[task]) == set(PAPER_BASELINES[task])
    for mixer, (width, hidden, blocks, heads, batch, rate) in PAPER_BASELINES[task].items():
        recipe = baseline_recipe(task, mixer)
        model, training = recipe.model, recipe.training
        assert (model.mixer, model.position, model.pooling, recipe.task) == (mixer, "rpe", "mean", task)
        assert (model.hidden_size, model.intermediate_size, model.num_layers) == (width, hidden, blocks), mixer
        assert model.num_heads == (heads or 1), mixer
        assert (training.batch_size, training.learning_rate, training.weight_decay) == (batch, rate, 0.0001), mixer
        assert (model.embedding_dropout, model.value_dropout, model.feedforward_dropout) == (0.1, 0.1, 0.1), mixer


def test_baselines_have_the_papers_settings_or_the_recipes_own() -> None:
    performer = baseline_recipe("ensembl-bs", "performer")
    model, training = performer.model, performer.training
    assert (model.hidden_size, model.intermediate_size, model.num_layers, model.num_heads) == (64, 256, 2, 2)
    assert (training.batch_size, training.learning_rate, training.weight_decay) == (2, 0.0001, 0.0001)
    assert baseline_recipe("longdoc16k", "vanilla").model.num_heads == 2
    assert baseline_recipe("longdoc32k", "vanilla").model.num_heads == 1
    for task, mixer in (("listops", "fnet"), ("ensembl-mr", "luna")):
        assert baseline_recipe(task, mixer).model == replace(RECIPES[task].model, mixer=mixer)
        assert baseline_recipe(task, mixer).training == RECIPES[task].training
    for rows in BASELINES.values():
        assert set(rows) == {"vanilla", "linformer", "performer", "synthesizer", "fnet", "cosformer", "paramixer"}
    with pytest.raises(ValueError, match="mixer is 'perfomer'"):
        baseline_recipe("listops", "perfomer")
