"""The token of a refusal that lets the host ask another model for less: kept from every stream (spec §13).

Whoever holds it can spend it, and the host alone can: it goes on the host's next request. So it is taken out at the
door, before an event can be carried anywhere whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agjson.jsonable import jsonable

__all__ = ["take_credit", "without_credit"]

_TOKEN = "fallback_credit_token"

# Where an event or a whole message has its stop details: in itself, or one level down.
_HOLDERS = ("delta", "message")


def take_credit(native: object) -> tuple[object, str | None]:
    """Take the token out of a native event or message.

    Args:
        native: an object of the provider's client, or plain data; anything else is handed back.

    Returns:
        The event without the token, as plain data if it had one, and the token. Of an object that cannot be looked into
        what can be read of it, without any token, and None.
    """
    try:
        return _take(native)
    except Exception:
        return _without_tokens(jsonable(native)), None


def _take(native: object) -> tuple[object, str | None]:
    holders = (native, *(_member(native, name) for name in _HOLDERS))
    if all(_member(_member(holder, "stop_details"), _TOKEN) is None for holder in holders):
        return native, None
    plain: Any = jsonable(native)
    tokens = [_member(_member(holder, "stop_details"), _TOKEN) for holder in holders]
    cleaned = {name: _cleaned(value) if name in _HOLDERS else value for name, value in _cleaned(plain).items()}
    return cleaned, next((token for token in tokens if isinstance(token, str) and token), None)


def without_credit(details: Any) -> Any:
    """Stop details without the token.

    Args:
        details: ``stop_details`` as plain data; what is no object is handed back.
    """
    if not isinstance(details, Mapping):
        return details
    return {name: value for name, value in details.items() if name != _TOKEN}


def _cleaned(holder: Any) -> Any:
    if not isinstance(holder, dict) or "stop_details" not in holder:
        return holder
    return {**holder, "stop_details": without_credit(holder["stop_details"])}


def _without_tokens(value: Any) -> Any:
    """A value without the token, however deep it lies."""
    if isinstance(value, dict):
        return {name: _without_tokens(held) for name, held in value.items() if name != _TOKEN}
    return [_without_tokens(held) for held in value] if isinstance(value, list) else value


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
