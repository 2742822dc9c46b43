"""The command line: ``synvolution COMMAND``. A command is a function; its arguments are the options."""

from __future__ import annotations

import sys

from synvolution.info import describe


def info() -> None:
    """Show version, backend, threads, torch and devices."""
    for name, value in describe().items():
        print(f"{name:12} {value}")


COMMANDS = {"info": info}


def main() -> None:
    """Entry point of the ``synvolution`` command."""
    try:
        import tyro
    except ImportError:
        if sys.argv[1:] == ["info"]:
            info()
            return
        sys.exit("the command line needs its extra: pip install 'synvolution[train]'")
    tyro.extras.subcommand_cli_from_dict(
        COMMANDS, prog="synvolution", description="Converter: exact unitary sequence mixing.", sort_subcommands=False
    )
