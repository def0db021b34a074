"""The command line as a whole: its commands, their order, and how it is started."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, cast

import typer

from agjson import __version__
from agjson.cli.check import check
from agjson.cli.fold import fold
from agjson.cli.native import to_native
from agjson.cli.normalize import normalize
from agjson.cli.schema import schema
from agjson.cli.show import show
from agjson.cli.streams import FAULT, UNUSABLE
from agjson.cli.validate import validate
from agjson.types import SPEC_VERSION

__all__ = ["make_app", "run"]


def make_app(*, rich_help: bool) -> typer.Typer:
    """Build the command line.

    Args:
        rich_help: draw help and usage errors with boxes and colours; False writes plain lines.
    """
    app = typer.Typer(
        name="agjson",
        no_args_is_help=True,
        rich_markup_mode="rich" if rich_help else None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_agjson)
    app.command("show", epilog="Example: agjson show stream.jsonl")(show)
    app.command("fold", epilog="Example: agjson fold stream.jsonl > thread.json")(fold)
    app.command("check", epilog="Example: agjson check --profile CORE stream.jsonl")(check)
    app.command("validate", epilog="Example: agjson validate --as input request.json")(validate)
    app.command("normalize", epilog="Example: agjson normalize anthropic recording.yaml | agjson show")(normalize)
    app.command("to-native", epilog="Example: agjson to-native anthropic request.json --history thread.json")(to_native)
    app.command("schema", epilog="Example: agjson schema AgEvent")(schema)
    return app


def run() -> int:
    """Run the command line with the arguments of the process; returns the exit status."""
    if cast("object", sys.stderr) is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for as long as the process lives
    if cast("object", sys.stdout) is None:
        print("agjson: standard output is closed", file=sys.stderr)
        return UNUSABLE
    on_terminal = sys.stdout.isatty() and sys.stderr.isatty()
    app = make_app(rich_help=on_terminal and os.environ.get("TERM") != "dumb")
    try:
        app(prog_name="agjson")
    except SystemExit as exit:
        return exit.code if isinstance(exit.code, int) else 0
    except Exception:
        # Python would end with 1, which says that something was found in the input.
        traceback.print_exc()
        return FAULT
    return 0


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agjson {__version__} (AgJSON {SPEC_VERSION})")
        raise typer.Exit


def _agjson(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Look at AgJSON streams, check them, fold them, and make them of native ones.

    Every command reads a file or standard input. The exit status is 0 if all is well, 1 if something was found, 2 if
    a call or a file cannot be used.
    """
