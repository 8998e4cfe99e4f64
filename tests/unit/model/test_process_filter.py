"""The filter language, finished and half typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.errors import UsageError
from gpulse.model.catalog import Process
from gpulse.model.process_filter import FILTER_HELP, ProcessFilter, parse_filter

_VECTORS = json.loads((Path(__file__).parents[3] / "web/test/filter.json").read_text())  # the page passes the same
_ROWS = [(Process(row["process"]), (row["gpu"], row["instance"])) for row in _VECTORS["processes"]]


def test_the_page_gets_the_same_metrics() -> None:
    catalog = [{"key": metric.key, "unit": metric.unit.name} for metric in Process.metrics()]
    assert all(metric in catalog for metric in _VECTORS["metrics"])


def found(find: ProcessFilter) -> list[int]:
    return [int(process.pid or 0) for process, place in _ROWS if find.fits(process, place)]


@pytest.mark.parametrize(("text", "pids", "note"), _VECTORS["cases"])
def test_words(text: str, pids: list[int], note: str) -> None:
    find = ProcessFilter(text)
    assert found(find) == pids
    assert find.note == note


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", set()),
        ("gpu:0", set()),
        ("mem>1G !time<1h", {"memory_used", "running_time"}),
        ("train", {"user", "name", "command", "container", "pod", "project", "job"}),
    ],
)
def test_the_metrics_that_it_needs(text: str, keys: set[str]) -> None:
    assert ProcessFilter(text).keys == keys


def test_a_wrong_word_on_the_command_line_is_an_error() -> None:
    assert parse_filter("user:ada").text == "user:ada"
    with pytest.raises(UsageError, match="unknown field 'usr'; write it as"):
        parse_filter("usr:ada")


def test_every_example_of_the_help_is_understood() -> None:
    for example_of, _ in FILTER_HELP:
        assert ProcessFilter(example_of).note == ""


def test_nothing_typed_is_false() -> None:
    assert not ProcessFilter(" ")
    assert ProcessFilter("a")


_WORDS = st.lists(
    st.builds(
        lambda sign, name, operator, value: f"{sign}{name}{operator}{value}",
        st.sampled_from(["", "!", "-", '"', "'"]),
        st.sampled_from(["gpu", "pid", "user", "mem", "time", "sm", "type", "x", ""]),
        st.sampled_from([":", "=", ">", "<", ">=", "<=", "!=", "==", "!", ""]),
        st.text(max_size=6) | st.from_regex(r"[0-9,:.\-]{0,8}[GhK%]?", fullmatch=True),
    ),
    max_size=4,
).map(" ".join)


@given(st.text() | _WORDS)
@example("pid:" + "9" * 5000)
@example("gpu:0-" + "9" * 30)
@example("sm>nan")
@example("sm>1e999")
@example("mem>" + "1" * 400)
@example("!")
@example("--")
@example("'")
def test_any_text_can_be_applied(text: str) -> None:
    find = ProcessFilter(text)
    assert set(found(find)) <= {11, 22, 33}
    negated = [word for word in text.split() if word[0] in "!-"]
    if not find.note and text.split() and not negated and not set(text) & set("'\""):
        both = ProcessFilter(f"{text} pid>11")
        assert found(both) == [pid for pid in found(find) if pid > 11]
    assert isinstance(find.note, str)


@given(_WORDS)
def test_every_beginning_of_a_filter_can_be_applied(text: str) -> None:
    for end in range(len(text) + 1):
        found(ProcessFilter(text[:end]))
