"""The wire: JSON text to typed values and back (spec §0.2, §2-§4, §12)."""

from agjson.wire._extras import declared_class, extra_fields
from agjson.wire.answering import answer_to
from agjson.wire.reading import (
    decode_answer,
    decode_ask,
    decode_block,
    decode_event,
    decode_input,
    decode_message,
    decode_result,
    from_dict,
    ingest_event,
    match_answer,
)
from agjson.wire.writing import encode, to_dict

__all__ = [
    "answer_to",
    "declared_class",
    "decode_answer",
    "decode_ask",
    "decode_block",
    "decode_event",
    "decode_input",
    "decode_message",
    "decode_result",
    "encode",
    "extra_fields",
    "from_dict",
    "ingest_event",
    "match_answer",
    "to_dict",
]
