"""What `to_native` takes for an input: an object, the plain data of one, and nothing else."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agjson.adapters.anthropic import to_native
from agjson.errors import ValidationError
from agjson.types import AgMessage, StartInput, TextBlock
from agjson.wire import to_dict


def start(text: Any) -> StartInput:
    message = AgMessage(id="u", role="user", content=[TextBlock(text=text)])
    return StartInput(thread_id="th", turn_id="t", messages=[message])


def test_plain_data_asks_for_the_same_request_as_the_object() -> None:
    call = to_native(to_dict(start("hi")), model="m")
    assert call.params == to_native(start("hi"), model="m").params
    assert call.params["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        ({"messages": []}, "$", "required field `kind`: a new message goes in as StartInput("),
        ("hi", "$", "Expected an input, got `str`: a new message goes in as StartInput("),
        ({**to_dict(start("hi")), "messages": "hi"}, "$.messages", "Expected `array`, got `str`"),
        (start(None), "$.messages[0].content[0].text", "Expected `str`, got `null`"),
    ],
)
def test_what_is_no_input(given: Any, path: str, words: str) -> None:
    with pytest.raises(ValidationError) as raised:
        to_native(cast("Any", given), model="m")
    assert (raised.value.path, words in raised.value.message) == (path, True), raised.value.message
