"""``agjson schema``."""

from __future__ import annotations

import json

from agjson.schema import json_schema, schema_names
from tests.support.cli import agjson


def test_it_prints_the_schema_of_a_name() -> None:
    done = agjson("schema", "AgEvent")
    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out) == json_schema("AgEvent")


def test_list_prints_every_name_on_its_line() -> None:
    assert agjson("schema", "--list").out.splitlines() == schema_names()


def test_an_unknown_name_gets_near_ones() -> None:
    done = agjson("schema", "agmesage")
    assert (done.status, done.out) == (2, "")
    assert "did you mean AgMessage" in done.err
    assert "agjson schema --list" in done.err


def test_a_name_like_no_other_gets_none() -> None:
    done = agjson("schema", "xyzzy\x1b[2J")
    assert done.status == 2
    assert "did you mean" not in done.err
    assert "\x1b" not in done.err


def test_without_a_name_it_says_what_it_needs() -> None:
    done = agjson("schema")
    assert (done.status, done.out) == (2, "")
    assert "NAME" in done.err
