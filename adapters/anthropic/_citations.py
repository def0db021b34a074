"""Citations of a text, in the neutral form and as they came (spec §2 `AgCitation`, §8 item 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agjson.types import AgCitation, BlockCitation, CharCitation, PageCitation, UrlCitation

__all__ = ["CITATION_TYPES", "read_citations"]


def read_citations(natives: Iterable[object]) -> list[AgCitation]:
    """The citations that have a neutral form, in order; the others live only in what the caller keeps verbatim.

    Document citations point into the source: indexes from 0, the end outside the span. Web citations name the page
    and keep ``encrypted_index``, which must go back.

    Args:
        natives: native citations.
    """
    found: list[AgCitation] = []
    for native in natives:
        if isinstance(native, dict) and (read := _READERS.get(_text(native.get("type")) or "")) is not None:
            try:
                found.append(read(native))
            except (KeyError, TypeError):
                continue
    return found


def _char(native: dict[str, Any]) -> CharCitation:
    return CharCitation(
        document_index=_index(native["document_index"]),
        start_char_index=_index(native["start_char_index"]),
        end_char_index=_index(native["end_char_index"]),
        unit="char",
        bounds="[start,end)",
        index_frame="source",
        **_document(native),
    )


def _page(native: dict[str, Any]) -> PageCitation:
    return PageCitation(
        document_index=_index(native["document_index"]),
        start_page=_index(native["start_page_number"]),
        end_page=_index(native["end_page_number"]),
        index_frame="source",
        **_document(native),
    )


def _block(native: dict[str, Any]) -> BlockCitation:
    return BlockCitation(
        document_index=_index(native["document_index"]),
        start_block_index=_index(native["start_block_index"]),
        end_block_index=_index(native["end_block_index"]),
        index_frame="source",
        **_document(native),
    )


def _search_result(native: dict[str, Any]) -> BlockCitation:
    return BlockCitation(
        document_index=_index(native["search_result_index"]),
        start_block_index=_index(native["start_block_index"]),
        end_block_index=_index(native["end_block_index"]),
        index_frame="source",
        cited_text=_required(native["cited_text"]),
        source=_text(native.get("source")),
        title=_text(native.get("title")),
    )


def _web(native: dict[str, Any]) -> UrlCitation:
    return UrlCitation(
        url=_required(native["url"]),
        cited_text=_required(native["cited_text"]),
        title=_text(native.get("title")),
        encrypted_index=_text(native.get("encrypted_index")) or None,
    )


def _document(native: dict[str, Any]) -> dict[str, Any]:
    return {
        "cited_text": _required(native["cited_text"]),
        "source": _text(native.get("file_id")),
        "title": _text(native.get("document_title")),
    }


def _index(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no index")
    return value


def _required(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_READERS: dict[str, Callable[[dict[str, Any]], AgCitation]] = {
    "char_location": _char,
    "page_location": _page,
    "content_block_location": _block,
    "web_search_result_location": _web,
    "search_result_location": _search_result,
}

CITATION_TYPES = frozenset(_READERS)
"""The native citation types that have a neutral form."""
