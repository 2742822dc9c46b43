"""The command line: ``synvolution COMMAND``. A command is a function; its arguments are the options."""

from __future__ import annotations

import sys
from collections.abc import Callable

from synvolution.info import describe


def info() -> None:
    """Show version, backend, instruction set, threads, torch and devices."""
    for name, value in describe().items():
        print(f"{name:12} {value}")


def commands() -> dict[str, Callable[..., None]]:
    """The commands by name; imported late, since they need the command line's extra."""
    from synvolution.experiments.bench import bench

    return {"info": info, "bench": bench}


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
        tyro.extras.subcommand_cli_from_dict(
            commands(),
            prog="synvolution",
            description="Converter: exact unitary sequence mixing.",
            sort_subcommands=False,
        )
    except (ValueError, OSError) as error:
        print(f"synvolution: {error}", file=sys.stderr)
        sys.exit(2)
