"""Any snapshot the catalog allows, for property tests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, SERVER_METRICS, Gpu, Host, Process, Server
from gpulse.model.metric import GAPS, Flag, Metric, Number, Numbers, Text
from gpulse.model.plausible import drop_implausible
from gpulse.model.snapshot import Problem, Snapshot

if TYPE_CHECKING:
    from gpulse.model.catalog import State
    from gpulse.model.metric import Gap, Value

    _Parts = tuple[dict[str, Value], dict[str, Gap]]

_FINITE = st.floats(-1e299, 1e299)
_ANY_NUMBER = st.one_of(st.integers(-(2**64), 2**64), _FINITE)
_ANY_TEXT = st.text(max_size=12)  # control characters, wide ones and lone surrogates among them
TIMES = st.integers(0, 4_000_000_000_000_000).map(lambda micros: micros / 1_000_000)


# Strategies are made once: to make and to check them takes longer than to draw from them.
_GAP = st.sampled_from(GAPS)
_STATE: st.SearchStrategy[State] = st.sampled_from(("ok", "lost", "timeout", "asleep"))
_SINCE = st.none() | TIMES


def _believable(metric: Metric) -> st.SearchStrategy[float | int]:
    low, high = metric.low, metric.high
    return st.one_of(st.integers(int(low), int(high)), st.floats(low, high), st.just(low))


@cache
def _value(metric: Metric, believable: bool) -> st.SearchStrategy[Value]:
    number = _believable(metric) if believable else _ANY_NUMBER
    if isinstance(metric, Number):
        return number
    if isinstance(metric, Text):
        return _ANY_TEXT
    if isinstance(metric, Flag):
        return st.booleans()
    if isinstance(metric, Numbers):
        return st.lists(number, max_size=4).map(tuple)
    return st.lists(_ANY_TEXT, max_size=3).map(tuple)


def _parts(metrics: Mapping[str, Metric], believable: bool) -> st.SearchStrategy[_Parts]:
    some = st.lists(st.sampled_from(sorted(metrics)), unique=True, max_size=12)
    numbers = [st.integers(0, most) for most in range(13)]

    @st.composite
    def parts(draw: st.DrawFn) -> _Parts:
        keys = draw(some)
        there = draw(numbers[len(keys)])
        values = {key: draw(_value(metrics[key], believable)) for key in keys[:there]}
        if believable:
            drop_implausible(values, {}, metrics)  # more memory in use than there is
        return values, {key: draw(_GAP) for key in keys[there:]}

    return parts()


def _gpus(believable: bool, divided: bool) -> st.SearchStrategy[Gpu]:
    known = _parts(GPU_METRICS, believable)
    processes = st.lists(_parts(PROCESS_METRICS, believable).map(lambda parts: Process(*parts)), max_size=3).map(tuple)
    instances = st.lists(_gpus(believable, False), max_size=2).map(tuple) if divided else st.just(())

    @st.composite
    def gpu(draw: st.DrawFn) -> Gpu:
        values, gaps = draw(known)
        state, since = draw(_STATE), draw(_SINCE)
        return Gpu(values, gaps, state=state, since=since, processes=draw(processes), instances=draw(instances))

    return gpu()


@cache
def snapshots(believable: bool = False) -> st.SearchStrategy[Snapshot]:
    """Return a strategy for snapshots; `believable` keeps every number inside its metric's range."""
    return st.builds(
        Snapshot,
        time=TIMES,
        gpus=st.lists(_gpus(believable, True), max_size=3).map(tuple),
        host=_parts(HOST_METRICS, believable).map(lambda parts: Host(*parts)),
        driver=st.dictionaries(st.sampled_from(("version", "cuda", "nvml")) | _ANY_TEXT, _ANY_TEXT, max_size=3),
        problems=st.lists(st.builds(Problem, _ANY_TEXT, _ANY_TEXT, _ANY_TEXT), max_size=2).map(tuple),
        serving=st.lists(_parts(SERVER_METRICS, believable).map(lambda parts: Server(*parts)), max_size=2).map(tuple),
    )
