"""Playing recordings back: what is not there is said at once, and where the user looks."""

from __future__ import annotations

from pathlib import Path

import anthropic
import pytest
from vcr.errors import CannotOverwriteExistingCassetteException

from agjson.adapters.anthropic import AnthropicAgent
from agjson.testing.cassettes import replay
from agjson.types import AgMessage, StartInput, TextBlock, TurnDone, TurnError
from tests.support.corpus import ROOT

RECORDING = ROOT / "cassettes" / "anthropic" / "authored--thinking-only.yaml"


@pytest.mark.parametrize("name", ["nope.yaml", "."])
def test_a_file_that_is_not_there_is_no_recording(name: str, tmp_path: Path) -> None:
    entered = False
    with pytest.raises(FileNotFoundError, match="no such recording") as raised, replay(tmp_path / name):
        entered = True
    assert not entered
    assert raised.value.filename == str(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_request_past_the_end_names_the_recording_in_the_turn() -> None:
    def turn(number: int) -> TurnDone | TurnError:
        said = AgMessage(id=f"u{number}", role="user", content=[TextBlock(text="Hi")])
        *_, last = agent.run_sync(StartInput(thread_id=f"th{number}", turn_id="t", messages=[said]))
        assert isinstance(last, TurnDone | TurnError)
        return last

    with replay(RECORDING) as cassette:
        client = anthropic.Anthropic(api_key="dummy", max_retries=0)
        agent = AnthropicAgent(client, model="claude-sonnet-5-5")
        assert isinstance(turn(1), TurnDone)
        assert cassette.all_played
        failed = turn(2)
        with pytest.raises(anthropic.APIConnectionError) as raised:
            client.messages.create(model="m", max_tokens=1, messages=[])
    assert isinstance(failed, TurnError)
    assert failed.message == "Connection error. (from CannotOverwriteExistingCassetteException)"
    assert isinstance(raised.value.__cause__, CannotOverwriteExistingCassetteException)
