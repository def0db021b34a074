"""Content blocks for human eyes: each as a few styled lines, safe to print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agjson.cli.show_screen import StyleName
from agjson.cli.show_values import WORDS, cut, shown_json, shown_named, shown_size, shown_url
from agjson.cli.terminal import shown_text, shown_word
from agjson.types import (
    UNSET,
    AgCitation,
    AgOpaque,
    AgSourcePayload,
    AudioBlock,
    BareUrlSource,
    Base64Source,
    CodeBlock,
    CodeResultBlock,
    CompactionBlock,
    DataBlock,
    DocumentBlock,
    DocumentSource,
    FileBlock,
    FileSource,
    ImageBlock,
    OffsetCitation,
    ProviderRawBlock,
    ReasoningBlock,
    ResourceBlock,
    ResourceLinkBlock,
    SearchResultBlock,
    TextBlock,
    ToolCallBlock,
    ToolDone,
    ToolResultBlock,
    UnknownBlock,
    UrlCitation,
    UrlSource,
)
from agjson.wire import encode

__all__ = ["Limits", "Line", "block_lines", "citation_line", "opaque_words", "result_lines", "source_words"]

Line = tuple[StyleName, str]
"""What a line is, and its text, which may have several lines."""


class Limits:
    """How much of a long value is shown.

    Attributes:
        value: characters of a tool's arguments or result, or of code; None for all.
        words: characters of a value told in passing; None for all.
    """

    def __init__(self, *, full: bool) -> None:
        self.value = None if full else 2_000
        self.words = None if full else WORDS


def block_lines(block: Any, limits: Limits) -> Iterator[Line]:
    """The lines of one block, of any kind."""
    match block:
        case TextBlock():
            yield "plain", shown_text(block.text)
            for citation in block.citations or ():
                yield citation_line(citation)
        case ReasoningBlock():
            if block.text:
                yield "faint", _prefixed("~ ", shown_text(block.text))
            if block.opaque is not None:
                yield "faint", f"~ ({opaque_words(block.opaque)})"
        case ToolCallBlock():
            yield "tool", f"→ {shown_word(block.name)} {shown_json(block.input, limits.value, hide=False)}"
        case ToolResultBlock():
            yield from result_lines(block, None, limits)
        case CodeBlock():
            yield "faint", f"code, {shown_word(block.language)}:"
            yield "plain", _prefixed("  ", cut(shown_text(block.code), limits.value))
        case CodeResultBlock():
            yield "good" if block.outcome == "ok" else "bad", f"code result, {block.outcome}:"
            yield "plain", _prefixed("  ", cut(shown_text(block.output), limits.value))
        case CompactionBlock():
            yield "faint", f"[summary of earlier turns] {shown_text(block.text or '')}".rstrip()
            if block.opaque is not None:
                yield "faint", f"({opaque_words(block.opaque)})"
        case SearchResultBlock():
            words = [f'"{shown_word(block.title)}"' if block.title else "", shown_url(block.url) if block.url else ""]
            words.append(f"({shown_word(block.page_age)})" if block.page_age else "")
            yield "faint", " ".join(["[search result]", *filter(None, words)])
        case _:
            yield "faint", f"[{_placeholder(block, limits)}]"


def result_lines(result: ToolDone | ToolResultBlock, name: str | None, limits: Limits) -> Iterator[Line]:
    """The lines of a tool's result.

    Args:
        result: the event or the block.
        name: the tool's name; None where it is not known any more.
        limits: how much to show.
    """
    partial = result.more if isinstance(result, ToolDone) else result.preliminary
    outcome = result.outcome or ("error" if result.is_error else "ok")
    words = [f"← {shown_word(name or result.tool_call_id)}"]
    if outcome != "ok":
        words.append(outcome.replace("_", " "))
    words += [f"({shown_word(result.error_code)})"] if result.error_code else []
    words += ["(partial)"] if partial else []
    head = " ".join(words)
    body: list[Line] = []
    if result.error_text:
        body.append(("bad", cut(shown_text(result.error_text), limits.value)))
    for block in result.content:
        if isinstance(block, TextBlock):
            body.append(("plain", cut(shown_text(block.text.rstrip("\n")), limits.value)))
            body += [citation_line(citation) for citation in block.citations or ()]
        else:
            body += block_lines(block, limits)
    if result.structured_content is not UNSET:
        body.append(("plain", shown_json(result.structured_content, limits.value, hide=False)))
    if result.ui_data is not UNSET:
        body.append(("faint", f"[for the surface] {shown_json(result.ui_data, limits.words)}"))
    if result.side_data is not UNSET:
        body.append(("faint", f"[for the app] {shown_json(result.side_data, limits.words)}"))
    if result.pending_input is not None:
        keys = ", ".join(shown_word(key) for key in result.pending_input.input_keys or ())
        body.append(("warning", f"waits for input: {keys}" if keys else "waits for input"))
    style: StyleName = "tool" if outcome == "ok" else "bad"
    if len(body) == 1 and "\n" not in body[0][1]:
        yield style, f"{head}: {body[0][1]}"
        return
    yield style, f"{head}:" if body else head
    for line_style, text in body:
        yield line_style, _prefixed("  ", text)


def citation_line(citation: AgCitation) -> Line:
    """One citation on one line."""
    words = [f'"{cut(shown_word(citation.cited_text), WORDS)}"']
    name = citation.title or citation.source
    if name:
        words.append(f"from {shown_word(name)}")
    if isinstance(citation, UrlCitation):
        words.append(shown_url(citation.url))
    elif isinstance(citation, OffsetCitation):
        words.append(f"sources {', '.join(shown_word(each) for each in citation.source_ids)}")
    else:
        words.append(f"document {citation.document_index}")
    return "faint", f"cites {' '.join(words)}"


def source_words(source: AgSourcePayload) -> str:
    """Where bytes are, or what a grounding source is."""
    match source:
        case Base64Source():
            return f"{shown_word(source.media_type)}, {shown_size(len(source.data) * 3 // 4)}"
        case UrlSource():
            return _joined(source.media_type, shown_url(source.url))
        case FileSource():
            return _joined(source.media_type, f"file {shown_word(source.file_id)}")
        case BareUrlSource():
            return _joined(source.title, shown_url(source.url))
        case DocumentSource():
            return _joined(source.title or source.filename, shown_word(source.media_type or "document"))


def opaque_words(opaque: AgOpaque) -> str:
    """That there is an opaque value, and its length (spec §13.2: the value is not printed)."""
    return f"{opaque.kind}, {shown_size(len(opaque.value), 'characters')}"


def _placeholder(block: Any, limits: Limits) -> str:
    match block:
        case ImageBlock() | AudioBlock():
            return f"{block.type}: {source_words(block.source)}"
        case FileBlock():
            return f"file: {_joined(block.filename, source_words(block.source))}"
        case DocumentBlock():
            return f"document: {_joined(block.title, source_words(block.source))}"
        case ResourceBlock():
            resource = block.resource
            size = len(resource.text) if resource.text is not None else len(resource.blob or "") * 3 // 4
            what = "characters" if resource.text is not None else "bytes"
            return f"resource: {_joined(resource.mime_type, shown_url(resource.uri))}, {shown_size(size, what)}"
        case ResourceLinkBlock():
            return f"resource: {_joined(block.mime_type, shown_url(block.uri))}"
        case DataBlock():
            name = f"{block.name} {block.id}" if block.id else block.name
            return f"data {shown_word(name)}: {shown_named(block.name, block.data, limits.words)}"
        case ProviderRawBlock():
            return f"{shown_word(block.vendor)} part, {shown_size(len(encode(block.raw)))}"
        case UnknownBlock():
            return f"unknown block {shown_word(block.type)}, {shown_size(len(block.raw))}"
        case _:
            return shown_word(str(block.type))


def _joined(name: str | None, rest: str) -> str:
    return f"{shown_word(name)}, {rest}" if name else rest


def _prefixed(prefix: str, text: str) -> str:
    return "\n".join(f"{prefix}{line}" if line else prefix.rstrip() for line in text.rstrip("\n").split("\n"))
