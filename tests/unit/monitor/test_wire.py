"""What passes between agent and program survives the way, and garbage is nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import PROCESS_METRICS, Process
from gpulse.model.event import Event
from gpulse.model.metric import GAPS, Number
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.messages import AgentSample, Birth, Greeting, Request, Trouble, decode, encode
from tests.unit.snapshots import snapshots

_NUMBERS = st.dictionaries(
    st.sampled_from(sorted(key for key, metric in PROCESS_METRICS.items() if isinstance(metric, Number))),
    st.integers(0, 2**50) | st.floats(0, 1e12),
    max_size=5,
)
_GAPS = st.dictionaries(st.sampled_from(("tree_read", "tree_write")), st.sampled_from(GAPS), max_size=2)
_PROGRAMS = st.none() | st.builds(Process, _NUMBERS, _GAPS)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    "greeting",
                    "trouble",
                    "alerts",
                    "program",
                    "own",
                    "slow",
                    "at",
                    "uuids",
                    "certain",
                    "gaps",
                    "gpus",
                    "time",
                    "schema",
                )
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(
    at=st.floats(0, 1e9),
    snapshot=snapshots(believable=True),
    program=_PROGRAMS,
    own=st.none() | st.frozensets(st.integers(1, 1 << 22)),
    slow=st.booleans(),
)
def test_a_sample_survives(
    at: float, snapshot: Snapshot, program: Process | None, own: frozenset[int] | None, slow: bool
) -> None:
    line = encode(AgentSample(at, snapshot, program, own, slow))
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    found = decode(line)
    assert isinstance(found, AgentSample)
    assert (found.at, found.snapshot, found.own, found.slow) == (at, snapshot, own, slow)
    if program is None:
        assert found.program is None
    else:
        assert found.program is not None
        assert dict(found.program.items()) == dict(program.items())
        assert dict(found.program.gaps) == dict(program.gaps)


def test_alerts_survive() -> None:
    event = Event(
        5.0, "throttled", ("3",), uuids=("GPU-3",), reasons=("hw_slowdown",), values={"clock_sm": 345.0}, rule="throttled", alert="fire"
    )  # fmt: skip
    found = decode(encode(AgentSample(1.0, Snapshot(5.0), None, alerts=[event, event.replace(alert="clear")])))
    assert isinstance(found, AgentSample)
    assert found.alerts == (event, event.replace(alert="clear"))


@given(uuids=st.none() | st.lists(st.text(max_size=8), max_size=3), certain=st.booleans())
def test_a_greeting_survives(uuids: list[str] | None, certain: bool) -> None:
    found = decode(encode(Greeting(uuids, certain)))
    assert isinstance(found, Greeting)
    assert (found.uuids, found.certain) == (uuids, certain)


@given(message=st.text())
def test_trouble_survives(message: str) -> None:
    line = encode(Trouble(message))
    assert line.count(b"\n") == 1
    found = decode(line)
    assert isinstance(found, Trouble)
    assert found.message == message


@given(line=st.binary(max_size=60))
def test_any_bytes_are_no_message(line: bytes) -> None:
    assert decode(line) is None


@given(plain=_JSON)
def test_any_json_is_a_message_or_none(plain: object) -> None:
    found = decode(json.dumps(plain).encode())
    assert found is None or isinstance(found, (Birth, Greeting, AgentSample, Trouble))


@pytest.mark.parametrize(
    "line", [b"", b"[]", b'"greeting"', b"null", b"{}", b'{"at":1}', b'{"program":"x"}', b"[" * 99999]
)
def test_garbage_is_nothing(line: bytes) -> None:
    assert decode(line) is None


@given(snapshot=snapshots(), cut=st.integers(1, 10))
def test_a_line_cut_short_is_nothing(snapshot: Snapshot, cut: int) -> None:
    assert decode(encode(AgentSample(1.0, snapshot, None))[: -1 - cut]) is None


def test_a_request_is_made_again_from_what_it_is_started_with() -> None:
    request = Request(pid=7, interval=0.5, metrics=["power_draw"], gpus=["0", "2"], uuids=["GPU-1"], source="demo")
    again = Request(**json.loads(json.dumps(request.to_plain())))
    assert again == request
    assert again.asked == request.asked
    assert {"power_draw", "memory_total", "throttle_reasons"} <= again.asked
