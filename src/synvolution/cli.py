"""The command line: ``synvolution COMMAND``. A command is a function; its arguments are the options."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from synvolution.info import describe

#: Exit codes: what was asked cannot be done (also for unknown options), and the user's own interruption.
REFUSED, INTERRUPTED = 2, 130


def info(recipes: bool = False) -> None:
    """Show version, backend, instruction set, threads, torch and devices.

    Args:
        recipes: Show the recipes instead: sizes and numbers of parameters.
    """
    if recipes:
        from synvolution.experiments.recipe_table import show_recipes

        show_recipes()
        return
    for name, value in describe().items():
        print(f"{name:12} {value}")


def train() -> None:
    """Train on a task or your own data: synvolution train RECIPE, or train --data FILE; its --help shows all."""


def sweep() -> None:
    """Search better settings for a recipe: synvolution sweep RECIPE --trials N; its --help shows all."""


#: Commands whose options have the defaults of the recipe named first, and where they are: they read their arguments
#: themselves.
WITH_RECIPE = {"train": "synvolution.training.commands", "sweep": "synvolution.experiments.sweep"}


def commands() -> dict[str, Callable[..., None]]:
    """The commands by name; imported late, since they need the command line's extra."""
    from synvolution.data.commands import data
    from synvolution.experiments.bench import bench
    from synvolution.experiments.figures import figures
    from synvolution.experiments.report import report
    from synvolution.experiments.reproduce import reproduce
    from synvolution.training.commands import evaluate, export, predict

    return {
        "train": train,
        "evaluate": evaluate,
        "predict": predict,
        "export": export,
        "data": data,
        "sweep": sweep,
        "reproduce": reproduce,
        "report": report,
        "bench": bench,
        "figures": figures,
        "info": info,
    }


def main() -> None:
    """Entry point of the ``synvolution`` command."""
    try:
        import tyro
    except ImportError:
        if sys.argv[1:] == ["info"]:
            info()
            return
        sys.exit("the command line needs its extra: pip install 'synvolution[train]'")
    try:
        _run(tyro)
    except BrokenPipeError:  # whoever reads our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError, ImportError) as error:
        if isinstance(error, ImportError) and error.name is not None:  # not our word that an extra is missing
            raise
        print(f"synvolution: {error}", file=sys.stderr)
        sys.exit(REFUSED)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)  # at once: threads of data loaders and trackers may hang


def _run(tyro: Any) -> None:
    name = next(iter(sys.argv[1:]), "")
    if name in WITH_RECIPE:
        getattr(importlib.import_module(WITH_RECIPE[name]), name)(sys.argv[2:])
        return
    tyro.extras.subcommand_cli_from_dict(
        commands(),
        prog="synvolution",
        description="Converter: exact unitary sequence mixing.",
        sort_subcommands=False,
    )
