"""``agjson schema``: the JSON Schema of a type of the format."""

from __future__ import annotations

import difflib
from typing import Annotated

import msgspec
import typer

from agjson.cli.streams import Streams, Unusable, command
from agjson.schema import json_schema, schema_names

__all__ = ["schema"]


@command
def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=schema_names,
            help="A union (AgEvent), a record (AgMessage), one arm (TextDelta) or an enum (AgRole).",
            show_default=False,
        ),
    ] = None,
    names: Annotated[bool, typer.Option("--list", help="Print every name instead.")] = False,
) -> int:
    """Print the JSON Schema of a type of the format."""
    streams = Streams()
    if names:
        for each in schema_names():
            streams.line(each.encode())
        return 0
    if name is None:
        raise Unusable("agjson schema needs a NAME; agjson schema --list prints all of them")
    if name not in schema_names():
        raise Unusable(_unknown(name))
    streams.line(msgspec.json.format(msgspec.json.encode(json_schema(name)), indent=2))
    return 0


def _unknown(name: str) -> str:
    by_lower = {each.lower(): each for each in schema_names()}
    near = [by_lower[each] for each in difflib.get_close_matches(name.lower(), by_lower, n=3)]
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"No schema is named {name!r}: {hint}agjson schema --list prints all names"
