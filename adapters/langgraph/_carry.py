"""Where the adapter keeps what AgJSON has no field for, so that it goes back to LangChain as it came.

The readers of native messages write these keys and `messages_to_native` reads them; nothing else may. What Claude said
is kept under the keys of the Anthropic adapter, whichever of the two has read it.
"""

from __future__ import annotations

VENDOR = "langgraph"
"""The vendor of ``provider-raw`` blocks that come from no provider that is known."""

FIELDS = "langgraph/fields"
"""providerMetadata of any block: native fields without a neutral form (``cache_control``, the ``id`` and
``annotations`` of a text, ``extras``), which go back beside what the block says; never ``type`` or ``index``."""

BLOCK = "langgraph/block"
"""The native block, whole, where the neutral form says a part of it: a call that the provider ran, a refusal, a
generated image (without its bytes). In ``_meta`` where the block has no providerMetadata: code and its result."""

PARTS = "langgraph/parts"
"""providerMetadata of reasoning: the lengths of its summary parts in characters, where there are several."""

FROM = "langgraph/from"
"""providerMetadata of reasoning that stood beside the content: ``additional_kwargs``."""

INVALID = "langgraph/invalid"
"""providerMetadata of a call whose arguments are no JSON object: what LangChain said of them, or true. The input is the
text as it came."""

RESPONSE = "langgraph/responseMetadata"
"""Metadata of a message: its ``response_metadata``, whole."""

KWARGS = "langgraph/additionalKwargs"
"""Metadata of a message: what of its ``additional_kwargs`` no block says."""

NAME = "langgraph/name"
"""Metadata of a message: its ``name``, where it is not the name of an agent."""

COMMITTED = "langgraph/committed"
"""Metadata of a message: false where no node has put it into the state, as with a router's call of its model. Such a
message does not go back if its turn has another answer."""

RESULT = "agjson/result"
"""``response_metadata`` of a tool message that `messages_to_native` made: the fields of the result that LangChain
has no place for. No chat model sends it."""

SIGNATURES = "__gemini_function_call_thought_signatures__"
"""``additional_kwargs`` of an answer of Gemini: the signatures of its calls by call id."""

_PROVIDERS = {"google_genai": "google", "google_vertexai": "google", "bedrock_converse": "bedrock", "azure": "openai"}

MODEL_PROVIDERS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "google_genai",
    "bedrock": "bedrock_converse",
}
"""What LangChain calls a provider in ``response_metadata.model_provider``, by its name here."""


def provider_name(model_provider: object) -> str | None:
    """The provider's name in ``opaque.provider``, ``provider`` and ``provider-raw`` blocks.

    Args:
        model_provider: what LangChain calls it in ``response_metadata.model_provider``.
    """
    if not isinstance(model_provider, str) or not model_provider:
        return None
    return _PROVIDERS.get(model_provider, model_provider)
