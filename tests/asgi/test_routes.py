"""Paths and what they name: ids of any characters, at any place where the app is mounted."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agjson.middleware.asgi.routes import METHODS, Route, find_route

IDS = st.text(min_size=1, max_size=20)
PREFIXES = st.sampled_from(["", "/agent", "/api/v1/agent", "/threads", "/threads/x/events", "/é"])


def scope(raw: str, root: str = "", *, has_root: bool = True, has_raw: bool = True) -> dict[str, object]:
    whole = quote(root) + raw if has_root else raw
    found: dict[str, object] = {"type": "http", "path": unquote(whole), "root_path": root}
    return found | {"raw_path": whole.encode()} if has_raw else found


def escaped(id: str) -> str:
    return quote(id, safe="")


@given(thread=IDS, turn=IDS, root=PREFIXES, slash=st.sampled_from(["", "/"]))
def test_every_id_comes_back(thread: str, turn: str, root: str, slash: str) -> None:
    base = f"/threads/{escaped(thread)}"
    for raw, route in [
        (base, Route("thread", thread)),
        (f"{base}/events", Route("events", thread)),
        (f"{base}/turns/{escaped(turn)}/stop", Route("stop", thread, turn)),
    ]:
        assert find_route(scope(raw + slash, root)) == route


@given(root=PREFIXES)
def test_the_root_is_where_the_app_is_mounted(root: str) -> None:
    assert find_route(scope("/", root)) == Route("root")
    assert find_route(scope("/capabilities", root)) == Route("capabilities")
    if root:
        assert find_route(scope("", root)) == Route("root")


@pytest.mark.parametrize("root", ["/proxied", "/a/b"])
def test_a_server_may_leave_the_root_path_out_of_the_path(root: str) -> None:
    assert find_route(scope("/threads/x", root, has_root=False)) == Route("thread", "x")


def test_a_server_without_raw_paths_serves_ids_without_slashes() -> None:
    assert find_route(scope("/threads/a%20b/events", has_raw=False)) == Route("events", "a b")


@pytest.mark.parametrize("raw", ["/threads", "/threads/", "/threads/a/b", "/threads/a/turns/b", "/Threads/a", "/x"])
def test_other_paths_name_nothing(raw: str) -> None:
    assert find_route(scope(raw)) is None


def test_every_route_says_what_goes() -> None:
    assert {name: methods[-1] for name, methods in METHODS.items()} == dict.fromkeys(METHODS, "OPTIONS")
