"""Citations: which source supports which span of a text (spec §2 `AgCitation`)."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from ._base import AgStruct, ListOf, Number, Opt

__all__ = [
    "AgBounds",
    "AgCitation",
    "AgIndexFrame",
    "AgIndexUnit",
    "BlockCitation",
    "CharCitation",
    "OffsetCitation",
    "PageCitation",
    "UrlCitation",
]

AgIndexUnit: TypeAlias = Literal["char", "byte", "utf16"]
"""What an index counts: code points, UTF-8 bytes (Gemini) or UTF-16 units (spec §2)."""

AgBounds: TypeAlias = Literal["[start,end)", "[start,end]"]
"""Whether the end index is outside or inside the span (spec §2)."""

AgIndexFrame: TypeAlias = Literal["source", "response"]
"""Which text the indexes point into: the cited source or the response (spec §2)."""


class _Citation(AgStruct, frozen=True, kw_only=True, tag_field="kind"):
    cited_text: str
    source: Opt[str] = None
    title: Opt[str] = None
    confidence: Opt[Number | ListOf[Number]] = None
    confidence_scores: Opt[ListOf[Number]] = None
    encrypted_index: Opt[str] = None
    index_frame: Opt[AgIndexFrame] = None


class CharCitation(_Citation, frozen=True, kw_only=True, tag="char"):
    """A span of characters in a document (spec §2 `AgCitation`).

    Attributes:
        cited_text: the cited words.
        source: a name of the source.
        title: the source's title.
        confidence: one score, or one per support.
        confidence_scores: one score per chunk (Gemini).
        encrypted_index: Anthropic's opaque index, echoed byte-identical.
        index_frame: which text the indexes point into.
        document_index: the place of the document in the request, from 0.
        start_char_index: where the span starts.
        end_char_index: where it ends.
        unit: what the indexes count.
        bounds: whether the end is part of the span.
    """

    kind: ClassVar[Literal["char"]] = "char"
    document_index: Number
    start_char_index: Number
    end_char_index: Number
    unit: Opt[AgIndexUnit] = None
    bounds: Opt[AgBounds] = None


class PageCitation(_Citation, frozen=True, kw_only=True, tag="page"):
    """A range of pages in a document (spec §2 `AgCitation`); the common fields are those of `CharCitation`.

    Attributes:
        document_index: the place of the document in the request, from 0.
        start_page: the first page.
        end_page: the page where the range ends.
    """

    kind: ClassVar[Literal["page"]] = "page"
    document_index: Number
    start_page: Number
    end_page: Number


class BlockCitation(_Citation, frozen=True, kw_only=True, tag="block"):
    """A range of content blocks in a document (spec §2 `AgCitation`); the common fields are those of `CharCitation`.

    Attributes:
        document_index: the place of the document in the request, from 0.
        start_block_index: the first block.
        end_block_index: the block where the range ends.
    """

    kind: ClassVar[Literal["block"]] = "block"
    document_index: Number
    start_block_index: Number
    end_block_index: Number


class UrlCitation(_Citation, frozen=True, kw_only=True, tag="url"):
    """A web page, perhaps with the span of the response that it supports (spec §2 `AgCitation`).

    The common fields are those of `CharCitation`.

    Attributes:
        url: the page's address.
        start_index: where the span starts.
        end_index: where it ends.
        unit: what the indexes count.
        bounds: whether the end is part of the span.
    """

    kind: ClassVar[Literal["url"]] = "url"
    url: str
    start_index: Opt[Number] = None
    end_index: Opt[Number] = None
    unit: Opt[AgIndexUnit] = None
    bounds: Opt[AgBounds] = None


class OffsetCitation(_Citation, frozen=True, kw_only=True, tag="offset"):
    """A span of the response and the grounding sources that support it (spec §2 `AgCitation`, §5 attachment key).

    The common fields are those of `CharCitation`.

    Attributes:
        start_index: where the span starts.
        end_index: where it ends.
        source_ids: the ``sourceId`` of each `SourceEvent` that supports the span.
        part_index: the response part that the span lies in.
        unit: what the indexes count; UTF-8 bytes for Gemini grounding.
        bounds: whether the end is part of the span.
    """

    kind: ClassVar[Literal["offset"]] = "offset"
    start_index: Number
    end_index: Number
    source_ids: list[str]
    part_index: Opt[Number] = None
    unit: AgIndexUnit
    bounds: AgBounds


AgCitation: TypeAlias = CharCitation | PageCitation | BlockCitation | UrlCitation | OffsetCitation
"""A citation (spec §2): narrows on ``kind``."""
