"""The ``agjson`` command. It needs typer and rich: ``pip install 'agjson[cli]'``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command with the arguments of the process.

    Returns:
        The exit status: 0 fine, 1 findings, 2 an unusable call or file, 70 a fault of its own, 130 interrupted, 141 the
        reader of the output has gone.
    """
    try:
        try:
            import rich as rich
            import typer as typer
        except ImportError as error:
            from agjson.errors import MissingExtraError

            print(f"agjson: {MissingExtraError('cli', error.name or 'typer')}", file=sys.stderr)
            return 2
        from agjson.cli.app import run

        return run()
    except KeyboardInterrupt:
        return 130
