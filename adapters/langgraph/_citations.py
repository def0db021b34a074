"""Annotations of a text as neutral citations: those of the Responses API and LangChain's own (spec §2 `AgCitation`).

The native annotations are kept beside them, whole: not every one has a neutral form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agjson.adapters.anthropic._citations import read_citations
from agjson.types import AgCitation, UrlCitation

__all__ = ["read_annotations"]


def read_annotations(annotations: Iterable[object], text: str) -> list[AgCitation]:
    """The annotations that have a neutral form, in order.

    Args:
        annotations: ``annotations`` of a text block, or its ``citations``.
        text: the text that they belong to.
    """
    found: list[AgCitation] = []
    for each in annotations:
        if not isinstance(each, dict):
            continue
        if each.get("type") == "citation" and isinstance(extras := each.get("extras"), dict):
            of_anthropic = read_citations([_anthropic(each, extras)])
            if of_anthropic:
                found += of_anthropic
                continue
        if each.get("type") in ("url_citation", "citation"):
            citation = _url(each, text)
            if citation is not None:
                found.append(citation)
    return found


def _url(native: Mapping[str, Any], text: str) -> AgCitation | None:
    url, start, end = native.get("url"), _index(native.get("start_index")), _index(native.get("end_index"))
    title, cited = native.get("title"), native.get("cited_text")
    if not isinstance(url, str) or not url:
        return None
    spanned = start is not None and end is not None
    if not isinstance(cited, str):
        cited = text[start:end] if spanned else ""
    return UrlCitation(
        url=url,
        cited_text=cited,
        title=title if isinstance(title, str) else None,
        start_index=start,
        end_index=end,
        unit="char" if spanned else None,
        bounds="[start,end)" if spanned else None,
        index_frame="response" if spanned else None,
    )


def _index(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


# LangChain keeps a citation of the Messages API without its type; which indexes it has tells the type.
_BY_INDEX = (
    ("start_char_index", "char_location"),
    ("start_page_number", "page_location"),
    ("search_result_index", "search_result_location"),
    ("encrypted_index", "web_search_result_location"),
    ("start_block_index", "content_block_location"),
)


def _anthropic(native: Mapping[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """The citation as the Messages API told it, as far as LangChain has kept it; without a type if it is none."""
    kind = next((kind for name, kind in _BY_INDEX if name in extras), None)
    title = native.get("title")
    return {
        **extras,
        "type": kind,
        "cited_text": native.get("cited_text"),
        "url": native.get("url"),
        "title": title,
        "document_title": title,
        "source": native.get("url") if kind == "search_result_location" else None,
    }
