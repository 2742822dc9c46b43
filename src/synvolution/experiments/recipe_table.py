"""The recipes as a table: sizes, rates, numbers of parameters."""

from __future__ import annotations

from rich.table import Table

from synvolution.recipes import PUBLISHED, RECIPES, parameter_counts
from synvolution.training.callbacks import console


def recipe_table() -> Table:
    """The paper's nine configurations and their numbers of parameters.

    Example:
        >>> recipe_table().row_count
        9
    """
    table = Table(title="recipes: the paper's configurations (RPE, K = 2, one block, one head, mean pooling)")
    names = ("recipe", "width", "hidden", "η", "batch", "rate", "decay", "vocabulary", "classes", "parameters")
    for name in names:
        table.add_column(name, justify="left" if name == "recipe" else "right")
    counts = parameter_counts()
    for name in PUBLISHED:
        recipe = RECIPES[name]
        model, training = recipe.model, recipe.training
        sizes = (model.hidden_size, model.intermediate_size, model.eta)
        rates = (training.batch_size, training.learning_rate, training.weight_decay)
        values = (*sizes, *rates, recipe.vocabulary, recipe.classes)
        table.add_row(name, *(f"{value:g}" for value in values), f"{counts[name]:,}")
    return table


def show_recipes() -> None:
    """Print it."""
    console().print(recipe_table())
