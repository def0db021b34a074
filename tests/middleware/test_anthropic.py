"""One line around code that calls the Messages API: streams, helper streams, tool runners (spec §8.0)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import beta_async_tool, beta_tool

from agjson.checker import check
from agjson.fold import reduce
from agjson.middleware.anthropic import AsyncEvents, Events, wrap, wrap_message_stream, wrap_tool_runner
from agjson.testing.cassettes import replay
from agjson.types import AgStreamEvent, TextBlock
from tests.support.anthropic_wire import (
    AUTHORED,
    START,
    Native,
    end,
    normalize,
    plain,
    read_recordings,
    sound,
    text,
    view,
)
from tests.support.corpus import require_corpus

CLIENT: dict[str, Any] = {"api_key": "dummy", "max_retries": 0}
REQUEST: dict[str, Any] = {"model": "claude-test", "max_tokens": 1024, "messages": [{"role": "user", "content": "x"}]}
ANSWER = [START, *text("Hel", "lo"), *end()]


def authored(name: str) -> Path:
    return AUTHORED / f"authored--{name}.yaml"


class Source:
    """A native stream that notes whether it was closed, and may fail on the way."""

    def __init__(self, natives: list[Any], error: BaseException | None = None) -> None:
        self.natives = natives
        self.error = error
        self.closed = 0

    def __iter__(self) -> Iterator[Any]:
        yield from self.natives
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed += 1


class AsyncSource:
    """The same for asynchronous streams; it may also never go on."""

    def __init__(self, natives: list[Any], error: BaseException | None = None, *, hangs: bool = False) -> None:
        self.natives = natives
        self.error = error
        self.hangs = hangs
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[Any]:
        for native in self.natives:
            yield native
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        self.closed += 1


async def gathered(events: AsyncEvents) -> list[AgStreamEvent]:
    return [event async for event in events]


def wrapped(source: Any, **settings: Any) -> Any:
    return wrap(source, turn_id="t1", thread_id="th", **settings)


# wrap


def test_a_stream_is_read_as_it_comes() -> None:
    source = Source(ANSWER)
    events = wrapped(source)

    assert isinstance(events, Events)
    assert plain(events) == plain(normalize(ANSWER))
    assert (events.error, source.closed) == (None, 1)


async def test_an_asynchronous_stream_is_read_as_it_comes() -> None:
    source = AsyncSource(ANSWER)
    events = wrapped(source)

    assert isinstance(events, AsyncEvents)
    assert plain(await gathered(events)) == plain(normalize(ANSWER))
    assert (events.error, source.closed) == (None, 1)


def test_events_come_before_the_stream_has_ended() -> None:
    seen: list[str] = []

    def natives() -> Iterator[Native]:
        for native in ANSWER:
            seen.append(native["type"])
            yield native

    events = wrapped(natives())
    while next(events).type != "text.delta":
        pass
    assert seen == ["message_start", "content_block_start", "content_block_delta"]
    events.close()


def test_ids_are_made_up_where_none_are_given() -> None:
    one, other = wrap(Source([])), wrap(Source([]))

    assert one.turn_id != other.turn_id
    assert one.thread_id != other.thread_id
    assert next(iter(wrap(Source(ANSWER), turn_id="mine"))).turn_id == "mine"


def test_several_messages_may_be_one_turn() -> None:
    second = {**START, "message": {**START["message"], "id": "msg_2"}}
    natives = [*ANSWER, second, *text("again"), *end()]

    assert plain(wrapped(natives, multi=True)) == plain(normalize(natives, multi=True))


class Loop(Source):
    """A tool runner that has nothing to run."""

    def generate_tool_call_response(self) -> None:
        return None


def test_what_is_no_setting_is_refused_at_once() -> None:
    for read, source in ((wrap, []), (wrap_message_stream, Source([])), (wrap_tool_runner, Loop([]))):
        untyped: Any = read
        with pytest.raises(TypeError, match="knwon_ids"):
            untyped(source, knwon_ids=())


def test_an_exception_ends_the_turn_and_stays_at_hand() -> None:
    error = ConnectionError("gone")
    events = wrapped(Source(ANSWER[:3], error))
    found = list(events)

    assert view(sound(found))["turns"][0]["outcome"] == {"type": "error", "message": "gone", "code": "ConnectionError"}
    assert events.error is error


async def test_an_exception_of_an_asynchronous_stream_ends_the_turn() -> None:
    error = ConnectionError("gone")
    events = wrapped(AsyncSource(ANSWER[:3], error))
    found = await gathered(events)

    assert found[-1].type == "turn.error"
    sound(found)
    assert events.error is error


def test_a_stream_that_breaks_off_is_aborted() -> None:
    for natives in ([], ANSWER[:4]):
        found = list(wrapped(Source(natives)))
        assert found[-1].type == "turn.abort"
        sound(found)


def test_closing_early_closes_the_stream() -> None:
    source = Source(ANSWER)
    events = wrapped(source)
    next(events)
    events.close()

    assert source.closed == 1
    assert list(events) == []


async def test_closing_an_asynchronous_stream_early_closes_it() -> None:
    source = AsyncSource(ANSWER)
    events = wrapped(source)
    await anext(events)
    await events.aclose()

    assert source.closed == 1


async def test_cancelling_closes_the_stream_and_goes_on() -> None:
    source = AsyncSource(ANSWER[:3], hangs=True)
    task = asyncio.ensure_future(gathered(wrapped(source)))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert source.closed == 1


def test_what_is_no_failure_of_the_stream_passes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        list(wrapped(Source(ANSWER[:3], KeyboardInterrupt())))


async def test_a_request_that_fails_is_an_error_of_the_turn() -> None:
    with replay(authored("error-of-request")):
        async with anthropic.AsyncAnthropic(**CLIENT) as client:
            events = wrapped(client.messages.create(**REQUEST, stream=True))
            found = await gathered(events)

    result = view(sound(found))
    assert result["turns"][0]["outcome"]["code"] == "overloaded_error"
    assert isinstance(events.error, anthropic.APIStatusError)


def test_an_error_inside_the_stream_of_the_client() -> None:
    with replay(authored("error-in-stream")), anthropic.Anthropic(**CLIENT) as client:
        events = wrapped(client.messages.create(**REQUEST, stream=True))
        found = list(events)

    (failed,) = [event for event in plain(found) if event["type"] == "turn.error"]
    assert (failed["code"], failed["retriable"]) == ("overloaded_error", True)
    assert view(sound(found))["messages"][0]["content"] == [{"type": "text", "text": "Tides are caused by the Moon"}]
    assert isinstance(events.error, anthropic.APIStatusError)
    assert events.error.status_code == 200


def test_a_truncated_stream_of_the_client() -> None:
    with replay(authored("truncated")), anthropic.Anthropic(**CLIENT) as client:
        found = list(wrapped(client.messages.create(**REQUEST, stream=True)))

    assert found[-1].type == "turn.abort"
    sound(found)


# wrap_message_stream


def test_a_helper_stream_keeps_its_final_message() -> None:
    with (
        replay(authored("interleaved")),
        anthropic.Anthropic(**CLIENT) as client,
        client.messages.stream(**REQUEST) as stream,
    ):
        found = list(wrap_message_stream(stream, turn_id="t1", thread_id="th"))
        final = stream.get_final_message()

    assert [block.type for block in final.content] == ["thinking", "tool_use"]
    assert plain(found) == plain(normalize(read_recordings(authored("interleaved"))[0].natives))


def test_the_context_manager_of_a_helper_stream_is_entered_and_left() -> None:
    with replay(authored("interleaved")), anthropic.Anthropic(**CLIENT) as client:
        events = wrap_message_stream(client.messages.stream(**REQUEST), turn_id="t1", thread_id="th")
        found = list(events)

        assert events.stream.get_final_message().id == "msg_authored_interleaved_1"
        assert events.stream.response.is_closed
    sound(found)


async def test_the_context_manager_of_an_asynchronous_helper_stream() -> None:
    with replay(authored("fallback")):
        async with anthropic.AsyncAnthropic(**CLIENT) as client:
            events = wrap_message_stream(client.beta.messages.stream(**REQUEST), turn_id="t1", thread_id="th")
            found = await gathered(events)

            assert (await events.stream.get_final_message()).model == "claude-sonnet-5-5"
            assert events.stream.response.is_closed
    assert plain(found) == plain(normalize(read_recordings(authored("fallback"))[0].natives))


def test_a_helper_that_cannot_be_entered_is_an_error_of_the_turn() -> None:
    with replay(authored("error-of-request")), anthropic.Anthropic(**CLIENT) as client:
        found = list(wrap_message_stream(client.messages.stream(**REQUEST)))

    assert found[-1].type == "turn.error"
    sound(found)


# wrap_tool_runner


class Rates:
    """A tool that counts how often it ran."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        rates = self

        @beta_tool
        def get_rate(pair: str) -> str:
            """The rate of a pair of currencies."""
            rates.asked.append(pair)
            return "0.92"

        @beta_async_tool
        async def get_rate_async(pair: str) -> str:
            """The rate of a pair of currencies."""
            rates.asked.append(pair)
            return "0.92"

        get_rate_async.name = "get_rate"
        self.tool, self.async_tool = get_rate, get_rate_async


def loop(found: list[AgStreamEvent]) -> Native:
    """The fold of a tool loop over the authored file."""
    result = view(sound(found))
    asked, result_message, answered = result["messages"]
    assert [each["type"] for each in asked["content"]] == ["reasoning", "tool-call"]
    assert result_message["id"] == "toolu_authored_rate_1:result"
    assert result_message["role"] == "tool"
    assert result_message["content"][0]["content"][0]["text"] == "0.92"
    assert answered["content"][-1]["text"] == "50 dollars are 46 euros 💶."
    return result


def test_a_tool_loop_is_one_turn() -> None:
    rates = Rates()
    with replay(authored("interleaved")) as cassette, anthropic.Anthropic(**CLIENT) as client:
        runner = client.beta.messages.tool_runner(**REQUEST, tools=[rates.tool], stream=True)
        found = list(wrap_tool_runner(runner, turn_id="t1", thread_id="th"))
        assert cassette.play_count == 2

    result = loop(found)
    assert rates.asked == ["USD/EUR"]
    assert result["turns"][0]["usage"]["outputTokens"] == 80
    assert result["turns"][0]["finishReason"] == "stop"


async def test_an_asynchronous_tool_loop_is_one_turn() -> None:
    rates = Rates()
    with replay(authored("interleaved")):
        async with anthropic.AsyncAnthropic(**CLIENT) as client:
            runner = client.beta.messages.tool_runner(**REQUEST, tools=[rates.async_tool], stream=True)
            found = await gathered(wrap_tool_runner(runner, turn_id="t1", thread_id="th"))

    loop(found)
    assert rates.asked == ["USD/EUR"]


async def test_closing_before_the_tool_has_run_leaves_it_unrun() -> None:
    rates = Rates()
    with replay(authored("interleaved")):
        async with anthropic.AsyncAnthropic(**CLIENT) as client:
            runner = client.beta.messages.tool_runner(**REQUEST, tools=[rates.async_tool], stream=True)
            events = wrap_tool_runner(runner)
            async for event in events:
                if event.type == "message.end":
                    break
            await events.aclose()
            del events, runner
            gc.collect()

    assert rates.asked == []


def test_a_tool_whose_arguments_were_cut_off_does_not_run() -> None:
    written: list[str] = []

    @beta_tool
    def write_file(path: str, text: str = "") -> str:
        """Write a file."""
        written.append(path)
        return "ok"

    with replay(authored("arguments-cut")), anthropic.Anthropic(**CLIENT) as client:
        runner = client.beta.messages.tool_runner(**REQUEST, tools=[write_file], stream=True)
        found = list(wrap_tool_runner(runner))

    assert written == []
    result = view(sound(found))
    assert result["turns"][0]["finishReason"] == "token_limit"
    assert set(result["messages"][0]["content"][0]["input"]) == {"INVALID_JSON"}


@pytest.mark.corpus
def test_a_tool_loop_that_does_not_stream() -> None:
    path = require_corpus() / "cassettes" / "anthropic" / "pydantic-ai--anthropic-tool-with-thinking.yaml"

    @beta_tool
    def get_user_country() -> str:
        """The user's country."""
        return "Mexico"

    with replay(path), anthropic.Anthropic(**CLIENT) as client:
        runner = client.beta.messages.tool_runner(**REQUEST, tools=[get_user_country])
        found = list(wrap_tool_runner(runner, turn_id="t1", thread_id="th"))

    result = view(sound(found))
    assert [each["role"] for each in result["messages"]] == ["assistant", "tool", "assistant"]
    assert result["messages"][1]["content"][0]["outcome"] == "ok"


@pytest.mark.corpus
async def test_parallel_calls_of_a_recorded_loop() -> None:
    path = require_corpus() / "cassettes" / "anthropic" / "llm--tools.yaml"
    names = iter(("Charles", "Sammy"))

    @beta_async_tool
    async def pelican_name_generator() -> str:
        """A name for a pelican."""
        return next(names)

    with replay(path) as cassette:
        async with anthropic.AsyncAnthropic(**CLIENT) as client:
            runner = client.beta.messages.tool_runner(**REQUEST, tools=[pelican_name_generator], stream=True)
            found = await gathered(wrap_tool_runner(runner))
        assert cassette.all_played

    result = view(sound(found))
    assert [each["role"] for each in result["messages"]] == ["assistant", "tool", "tool", "assistant"]
    assert [each["content"][0]["content"][0]["text"] for each in result["messages"][1:3]] == ["Charles", "Sammy"]


async def test_a_tool_that_raises_is_a_result_with_an_error() -> None:
    @beta_async_tool
    async def get_rate(pair: str) -> str:
        """The rate of a pair of currencies."""
        raise ValueError(f"no such pair: {pair}")

    with replay(authored("interleaved")):
        async with anthropic.AsyncAnthropic(**CLIENT) as client:
            runner = client.beta.messages.tool_runner(**REQUEST, tools=[get_rate], stream=True)
            found = await gathered(wrap_tool_runner(runner))

    (done,) = [event for event in plain(found) if event["type"] == "tool.done"]
    assert done["outcome"] == "error"
    assert "no such pair: USD/EUR" in str(done["content"])
    sound(found)


def test_a_whole_message_gives_the_events_of_its_stream() -> None:
    message = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "x",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    events = list(wrap(message, turn_id="t", thread_id="th"))
    assert list(check(events)) == []
    assert events[-1].type == "turn.done"
    [stored] = reduce(events).result.messages
    assert stored.content == [TextBlock(text="hi")]


@pytest.mark.parametrize("value", [None, 5])
def test_what_is_no_stream_is_refused_at_once(value: Any) -> None:
    with pytest.raises(TypeError, match="no stream"):
        wrap(value)


@pytest.mark.parametrize("read", [wrap, wrap_message_stream, wrap_tool_runner])
def test_a_client_is_no_stream_and_stays_open(read: Any) -> None:
    with anthropic.Anthropic(api_key="dummy") as client:
        with pytest.raises(TypeError, match=r"^Anthropic is no (stream|tool runner).*: wrap what client\."):
            read(client)
        assert not client.is_closed()
    assert client.is_closed()


@pytest.mark.parametrize("read", [wrap, wrap_message_stream, wrap_tool_runner])
async def test_an_asynchronous_client_is_no_stream_either(read: Any) -> None:
    async with anthropic.AsyncAnthropic(api_key="dummy") as client:
        with pytest.raises(TypeError, match=r"^AsyncAnthropic is no (stream|tool runner)"):
            read(client)
        assert not client.is_closed()


def test_a_stream_is_no_tool_runner() -> None:
    untyped: Any = wrap_tool_runner
    with replay(authored("interleaved")), anthropic.Anthropic(**CLIENT) as client:
        stream = client.messages.create(**REQUEST, stream=True)
        with pytest.raises(TypeError, match=r"Stream is no tool runner: wrap what client\.beta\."):
            untyped(stream)
        assert list(wrap(stream))[-1].type == "turn.done"


async def test_a_request_that_was_not_awaited_is_no_tool_runner_and_is_not_made() -> None:
    asked = False

    async def request() -> None:
        nonlocal asked
        asked = True

    untyped: Any = wrap_tool_runner
    with pytest.raises(TypeError, match="coroutine is no tool runner"):
        untyped(request())
    assert not asked


class Closable:
    """A native stream that is never read."""

    def __init__(self) -> None:
        self.closed = False

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def close(self) -> None:
        self.closed = True


def test_closing_before_the_first_event_closes_the_native_stream() -> None:
    native = Closable()
    wrap(native).close()
    assert native.closed


async def test_closing_before_the_first_event_gives_up_the_request() -> None:
    asked = False

    async def request() -> Any:
        nonlocal asked
        asked = True

    events = wrap(request())
    await events.aclose()
    assert not asked
