"""Parts that blocks are made of: sources of bytes, embedded resources, opaque blobs, annotations (spec §2)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import msgspec

from ._base import AgMeta, AgStruct, ListOf, Number, Opt

__all__ = [
    "SOURCE_PAYLOAD_ARMS",
    "AgAnnotations",
    "AgEmbeddedResource",
    "AgOpaque",
    "AgOpaqueKind",
    "AgPendingInput",
    "AgSource",
    "AgSourcePayload",
    "BareUrlSource",
    "Base64Source",
    "DocumentSource",
    "FileSource",
    "SourcePayload",
    "UrlSource",
]

AgOpaqueKind: TypeAlias = Literal["signature", "ciphertext", "encrypted", "redacted"]
"""What an opaque blob holds (spec §2 `AgOpaque`); ``encrypted`` is an accepted alias of ``ciphertext``."""


class SourcePayload:
    """What every arm of `AgSourcePayload` is an instance of (spec §2); never instantiated itself.

    The union mixes tagged and untagged arms, which no msgspec union can hold: a decoder meets this class as the type of
    the field and asks its hook, which picks the arm from `SOURCE_PAYLOAD_ARMS`, or `BareUrlSource` without a ``type``.
    """

    __slots__ = ()


class Base64Source(AgStruct, SourcePayload, frozen=True, kw_only=True, tag_field="type", tag="base64"):
    """Bytes carried inline (spec §2 `AgSource`).

    Attributes:
        media_type: the IANA media type; it must match the bytes.
        data: the bytes in standard base64.
    """

    type: ClassVar[Literal["base64"]] = "base64"
    media_type: str
    data: str


class UrlSource(AgStruct, SourcePayload, frozen=True, kw_only=True, tag_field="type", tag="url"):
    """Bytes to be fetched (spec §2 `AgSource`, §13.4).

    Attributes:
        url: where they are; untrusted when it comes from a client.
        media_type: the IANA media type, where known.
    """

    type: ClassVar[Literal["url"]] = "url"
    url: str
    media_type: Opt[str] = None


class FileSource(AgStruct, SourcePayload, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """A file that the provider already holds (spec §2 `AgSource`).

    Attributes:
        file_id: the provider's id of the file.
        media_type: the IANA media type, where known.
    """

    type: ClassVar[Literal["file"]] = "file"
    file_id: str
    media_type: Opt[str] = None


class BareUrlSource(AgStruct, SourcePayload, frozen=True, kw_only=True):
    """A grounding source that is a web page: the arm of `AgSourcePayload` without a ``type`` (spec §2).

    Attributes:
        url: the page's address.
        title: the page's title.
    """

    url: str
    title: Opt[str] = None


class DocumentSource(AgStruct, SourcePayload, frozen=True, kw_only=True, tag_field="type", tag="document"):
    """A grounding source that is a document without an address (spec §2 `AgSourcePayload`).

    Attributes:
        media_type: the IANA media type.
        title: the document's title.
        filename: its file name.
    """

    type: ClassVar[Literal["document"]] = "document"
    media_type: Opt[str] = None
    title: Opt[str] = None
    filename: Opt[str] = None


AgSource: TypeAlias = Base64Source | UrlSource | FileSource
"""Where the bytes of an image, audio, file or document block are (spec §2): narrows on ``type``."""

if TYPE_CHECKING:
    AgSourcePayload: TypeAlias = Base64Source | UrlSource | FileSource | BareUrlSource | DocumentSource
else:
    # The payload of a grounding source (spec §2); at run time the class that all its arms are instances of.
    AgSourcePayload = SourcePayload


SOURCE_PAYLOAD_ARMS: Mapping[str, type[AgSourcePayload]] = MappingProxyType(
    {"base64": Base64Source, "url": UrlSource, "file": FileSource, "document": DocumentSource}
)
"""The class of each tagged arm of `AgSourcePayload` by ``type`` (spec §2); without a ``type`` it is `BareUrlSource`."""


class AgOpaque(AgStruct, frozen=True, kw_only=True):
    """A provider-bound blob, echoed back byte-identical (spec §2 `AgOpaque`, §13.2).

    Attributes:
        kind: what the blob is.
        value: the blob as the provider sent it; never an empty signature.
        provider: the provider that issued it and the only one it may go back to.
    """

    kind: AgOpaqueKind
    value: str
    provider: Opt[str] = None


class AgAnnotations(AgStruct, frozen=True, kw_only=True):
    """MCP content annotations, carried through the fold unchanged (spec §2 `AgAnnotations`).

    Attributes:
        audience: whom the block is for.
        priority: display weight, 0 to 1 in MCP.
        last_modified: an ISO 8601 moment.
    """

    audience: Opt[ListOf[Literal["user", "assistant"]]] = None
    priority: Opt[Number] = None
    last_modified: Opt[str] = None


class AgEmbeddedResource(AgStruct, frozen=True, kw_only=True):
    """An MCP resource carried inline; a ``ui://`` resource is an MCP Apps surface (spec §2, §6 pattern 1a).

    Attributes:
        uri: the resource's address.
        mime_type: its media type, ``text/html;profile=mcp-app`` for a surface.
        text: the content of a text resource.
        blob: the content of a binary resource in base64.
        meta: host annotations; ``ui`` holds the surface's settings.
    """

    uri: str
    mime_type: Opt[str] = None
    text: Opt[str] = None
    blob: Opt[str] = None
    meta: Opt[AgMeta] = msgspec.field(name="_meta", default=None)


class AgPendingInput(AgStruct, frozen=True, kw_only=True):
    """What a result with outcome ``input_required`` still waits for (spec §2 `tool-result`, §7 MCP MRTR).

    Attributes:
        request_state: the server's opaque continuation, echoed byte-identical.
        input_keys: every request key that is still pending.
    """

    request_state: Opt[str] = None
    input_keys: Opt[list[str]] = None
