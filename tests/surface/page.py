"""The mapping tables of an adapter's page: what becomes of each native event, part and field, out of `surface.json`."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from tests.support.corpus import ROOT

__all__ = ["BEGIN", "END", "PAGES", "SECTIONS", "SurfaceError", "current", "render", "surface_of"]

PAGES: dict[str, Path] = {"langgraph": ROOT / "docs" / "adapters" / "langgraph.md"}
"""The page of each adapter whose tables are written here."""

BEGIN, END = "<!-- surface: begin -->", "<!-- surface: end -->"
"""What stands around the tables in a page."""

SECTIONS: dict[str, tuple[str, str]] = {
    "modes": ("Stream modes", "mode"),
    "shapes": ("Shapes of a stream", "shape"),
    "messages": ("Messages", "member"),
    "message_models": ("Parts of messages", "member"),
    "content_blocks": ("Content blocks", "block"),
    "message_metadata": ("Metadata of streamed messages", "key"),
    "state_keys": ("Keys of the state", "key"),
    "models": ("Parts, payloads and interrupts", "member"),
    "tool_events": ("Events of tools", "member"),
    "protocol_methods": ("Protocol events (v3, in beta)", "method"),
    "protocol_messages": ("Protocol events of messages", "member"),
    "server_events": ("Events of a LangGraph server", "event"),
    "exceptions": ("Exceptions", "exception"),
    "error_codes": ("Error codes", "code"),
}
"""The parts of a surface in the order of the page: the heading, and what the first column holds."""

_ABOUT = ("sdk", "dispositions")

# What Markdown would take for more than itself.
_MARKDOWN = re.compile(r"[*<|]|_(?=_)|(?<=_)_")

Fates: TypeAlias = Mapping[str, str]
Section: TypeAlias = Mapping[str, str | Fates]


class SurfaceError(Exception):
    """A surface or a page that no tables can be made for."""


def surface_of(adapter: str) -> dict[str, Section]:
    """What an adapter says of the surface that it reads.

    Args:
        adapter: its name.
    """
    return json.loads((ROOT / "adapters" / adapter / "surface.json").read_text(encoding="utf-8"))


def render(surface: Mapping[str, Section]) -> str:
    """The tables in Markdown.

    Args:
        surface: the surface.

    Raises:
        SurfaceError: it has a part without a heading, so that the page would leave it out.
    """
    unknown = sorted(surface.keys() - SECTIONS.keys() - {*_ABOUT})
    if unknown:
        raise SurfaceError(f"no heading for {', '.join(unknown)}")
    versions = ", ".join(f"`{name}` {version}" for name, version in surface["sdk"].items())
    lines = [f"Verified with {versions}."]
    for name, (title, column) in SECTIONS.items():
        if name in surface:
            lines += ["", f"### {title}", "", f"| {column} | becomes |", "| --- | --- |"]
            lines += [f"| {native} | {_cell(fate)} |" for native, fate in _rows(surface[name])]
    return "\n".join(lines) + "\n"


def _rows(section: Section) -> Iterator[tuple[str, str]]:
    # What several classes have in common is one row.
    holders: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, fate in section.items():
        if isinstance(fate, str):
            yield f"`{name}`", fate
        else:
            for member, inner in fate.items():
                holders[member, inner].append(name)
    for (member, fate), names in holders.items():
        yield f"`{member}` of {', '.join(f'`{name}`' for name in names)}", fate


def _cell(fate: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", fate.removeprefix("to "))


def current(text: str, surface: Mapping[str, Section]) -> str:
    """A page with the tables as the surface makes them now.

    Args:
        text: the page.
        surface: the surface.

    Raises:
        SurfaceError: the page has no place for them, or more than one.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise SurfaceError(f"a page has {BEGIN} and {END} once each")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{render(surface)}\n{END}{after}"
