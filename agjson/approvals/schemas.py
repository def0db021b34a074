"""JSON Schemas of forms and of edited arguments, checked by the optional package `jsonschema`."""

from __future__ import annotations

from typing import Any, cast

from agjson.errors import MissingExtraError

__all__ = ["fault", "schema_fault"]


def schema_fault(schema: object) -> str | None:
    """Why something is no JSON Schema; None: it is one.

    Args:
        schema: plain data.

    Raises:
        MissingExtraError: `jsonschema` is not installed.
    """
    kind = _validator_class(schema)
    from jsonschema.exceptions import SchemaError

    if not isinstance(schema, (dict, bool)):
        return "a JSON Schema is an object or a boolean"
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        return error.message
    return None


def fault(value: object, schema: object) -> tuple[str, str] | None:
    """Where a value does not fit a schema: what is wrong, and the JSON path of it; None: it fits.

    What a schema refers to is looked up in the schema alone; nothing is fetched.

    Args:
        value: plain data.
        schema: a JSON Schema.

    Raises:
        MissingExtraError: `jsonschema` is not installed.
    """
    kind = _validator_class(schema)
    import referencing
    from referencing.exceptions import Unresolvable

    # Empty, so that nothing is fetched.
    registry: Any = cast("Any", referencing).Registry()

    try:
        error = next(iter(kind(schema, registry=registry).iter_errors(value)), None)
    except Unresolvable:
        return "the schema refers to another one, which is not fetched", ""
    except RecursionError:
        return "nested too deep", ""
    if error is None:
        return None
    # The message of an error quotes the value, which may be a secret: the rule alone is told.
    return f"it breaks the rule {error.validator!r} of the schema", error.json_path.removeprefix("$")


def _validator_class(schema: object) -> Any:
    try:
        from jsonschema.validators import Draft202012Validator, validator_for
    except ImportError:
        raise MissingExtraError("approvals", "jsonschema") from None
    known = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    return validator_for(known, default=Draft202012Validator)
