"""Where the adapter keeps what AgJSON has no field for, so that it goes back to the provider as it came.

The normalizer writes these keys and `messages_to_native` reads them; nothing else may.
"""

from __future__ import annotations

VENDOR = "anthropic"
"""The provider's name in ``opaque.provider``, ``provider`` and ``provider-raw`` blocks."""

NATIVE_BLOCK = "anthropic/block"
"""The native block, whole. In providerMetadata: of a server tool's result (its ``encrypted_*`` fields must echo), of an
upload to the container, of a document in chunks. In ``_meta``: of a search result that a request offers."""

CITATIONS = "anthropic/citations"
"""providerMetadata of a text block: the native citations, whole, in order."""

COMPACTION = "anthropic/compaction"
"""``_meta`` of a compaction block, which has no providerMetadata: the native block, whole."""

CALLER = "caller"
"""providerMetadata of a tool call: who called it (directly, or code under execution); must echo."""

TOOLSET = "toolset_name"
"""providerMetadata of a tool call: the toolset it belongs to; must echo."""

DELTAS = "anthropic/deltas"
"""``_meta`` of a ``provider-raw`` block: deltas of an unknown kind that the block took, whole, in order."""

ESTIMATED_TOKENS = "anthropic/estimatedTokens"
"""``_meta`` of a `reasoning.delta`: how many tokens of thought the provider counts so far, as a guess; live only."""

STOP_REASON = "anthropic/stopReason"
"""Metadata of a message: the native stop reason, which the finish reason of the turn may not tell."""

STOP_SEQUENCE = "anthropic/stopSequence"
"""Metadata of a message: the stop sequence that ended it."""

STOP_DETAILS = "anthropic/stopDetails"
"""Metadata of a message: why it was refused and what may be done, whole but for the host's credit token."""

USAGE = "anthropic/usage"
"""Metadata of a message: the native usage, whole, merged from every report."""

CONTAINER = "anthropic/container"
"""Metadata of a message: the container its code ran in, whole; its ``id`` lets the next request go on in it."""

DIAGNOSTICS = "anthropic/diagnostics"
"""Metadata of a message: why the cache was missed, whole."""

CONTEXT_MANAGEMENT = "anthropic/contextManagement"
"""Metadata of a message: the context edits that were applied, whole."""

INPUT_TRANSFORMATIONS = "anthropic/inputTransformations"
"""Metadata of a message: what the provider changed in the request, such as dropped thinking, whole."""

SERVED_BY = "anthropic/servedBy"
"""Metadata of a message: the model that wrote the rest after a fallback."""

FIELDS = "anthropic/fields"
"""providerMetadata of any block that a native history held: native fields without a neutral form (``cache_control``,
a document's ``context``), which go back beside what the block says."""

STRING = "anthropic/string"
"""providerMetadata of a text block: true where the text was the whole content, as a string and not as a block."""

MESSAGE = "anthropic/message"
"""Metadata of a system message that stood among the others in a native history: its fields beside role and content."""

CONTAINER_ID = "anthropic/containerId"
"""Metadata of an input: the id of the container that code goes on in."""

TOOL = "anthropic/tool"
"""``_meta`` of a tool definition that the provider runs: the native definition, whole."""
