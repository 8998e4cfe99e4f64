"""A snapshot written and read again is the same snapshot; what is wrong in a line costs no more than itself."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import RecordingError
from gpulse.model.catalog import GPU_METRICS, Gpu, Host
from gpulse.model.codec import from_line, from_plain, parse_time, time_text, to_line, to_plain
from gpulse.model.metric import GAPS, Flag, Number, Text
from gpulse.model.snapshot import Snapshot
from gpulse.store.recording import read_recording
from tests.unit.snapshots import TIMES, snapshots

_TRACES = Path(__file__).resolve().parents[3] / ".." / "shared" / "h200" / "traces"
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _line(**gpu: Any) -> Gpu:
    """Return the one GPU of a line with these keys."""
    return from_plain({"schema": 1, "time": "2026-11-15T06:00:00Z", "gpus": [gpu]}).gpus[0]


@given(snapshot=snapshots(believable=True))
def test_any_snapshot_survives_being_written_and_read(snapshot: Snapshot) -> None:
    assert from_line(to_line(snapshot)) == snapshot


@given(snapshot=snapshots())
def test_a_line_is_one_line_of_ascii(snapshot: Snapshot) -> None:
    line = to_line(snapshot)
    assert line.isascii()
    assert line.isprintable()


@given(snapshot=snapshots())
def test_every_missing_value_is_null_and_has_its_gap(snapshot: Snapshot) -> None:
    for gpu in to_plain(snapshot)["gpus"]:
        nulls = {key for key, value in gpu.items() if value is None}
        assert nulls == set(gpu["gaps"])


def test_why_a_host_value_is_missing_survives() -> None:
    snapshot = Snapshot(0.0, host=Host({"name": "box"}, {"load": "unsupported"}))
    assert from_line(to_line(snapshot)).host.gap("load") == "unsupported"


def test_a_process_list_that_could_not_be_read_stays_known_as_such() -> None:
    snapshot = Snapshot(0.0, gpus=(Gpu({"index": 0}, {"processes": "denied"}),))
    assert from_line(to_line(snapshot)).gpus[0].gap("processes") == "denied"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_json_has_no_number_for_is_never_written(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_line(Snapshot(0.0, gpus=(Gpu({"power_draw": value}),)))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400])
def test_a_number_that_is_none_becomes_a_gap(word: str) -> None:
    line = f'{{"schema": 1, "time": "2026-11-15T06:00:00Z", "gpus": [{{"power_draw": {word}, "temperature": 40}}]}}'
    gpu = from_line(line).gpus[0]
    assert (gpu.power_draw, gpu.gap("power_draw"), gpu.temperature) == (None, "failed", 40)


def test_a_real_zero_stays_zero() -> None:
    gpu = _line(pstate=0, utilization=0, power_draw=0.0, memory_unified=False, throttle_reasons=[], name="")
    assert (gpu.pstate, gpu.utilization, gpu.power_draw) == (0, 0, 0)
    assert (gpu.memory_unified, gpu.throttle_reasons, gpu.name) == (False, (), "")
    assert not gpu.gaps


def test_a_stated_gap_keeps_its_reason() -> None:
    gpu = _line(fan_speed=None, gaps={"fan_speed": "unsupported", "temperature": "denied"})
    assert (gpu.gap("fan_speed"), gpu.gap("temperature")) == ("unsupported", "denied")


def test_a_null_without_a_gap_has_failed_and_an_absent_key_was_not_asked() -> None:
    gpu = _line(fan_speed=None)
    assert (gpu.gap("fan_speed"), gpu.gap("temperature")) == ("failed", "skipped")


def test_a_gap_with_an_unknown_reason_has_failed() -> None:
    assert _line(fan_speed=None, gaps={"fan_speed": "vacation"}).gap("fan_speed") == "failed"


def test_unknown_keys_are_ignored() -> None:
    assert _line(index=1, warp_drive=9, gaps={"warp_drive": "failed"}) == Gpu({"index": 1})


@given(key=st.sampled_from(sorted(GPU_METRICS)), plain=_JSON)
def test_a_value_of_the_wrong_type_becomes_a_gap_and_never_an_error(key: str, plain: Any) -> None:
    gpu = _line(**{key: plain})
    metric, value = GPU_METRICS[key], gpu.get(key)
    if value is None:
        assert gpu.gap(key) == "failed"
    else:
        kinds: dict[type, type | tuple[type, ...]] = {Number: (int, float), Text: str, Flag: bool}
        assert isinstance(value, kinds.get(type(metric), tuple))


@given(plain=st.dictionaries(st.sampled_from(("host", "driver", "gpus", "errors")), _JSON))
def test_parts_of_the_wrong_shape_are_left_out(plain: dict[str, Any]) -> None:
    snapshot = from_plain({**plain, "schema": 1, "time": "2026-11-15T06:00:00Z"})
    assert from_line(to_line(snapshot)) == snapshot


def test_an_unknown_state_counts_as_ok() -> None:
    assert [_line(state=state).state for state in ("confused", ["lost"], None, "lost")] == ["ok", "ok", "ok", "lost"]


def test_a_since_that_is_no_time_costs_only_itself() -> None:
    gpu = _line(index=3, state="lost", since="yesterday")
    assert (gpu.index, gpu.state, gpu.since) == (3, "lost", None)


@pytest.mark.parametrize("schema", [None, 0, 2, "1", [1]])
def test_another_schema_is_refused_with_its_number(schema: object) -> None:
    with pytest.raises(RecordingError, match="schema") as caught:
        from_plain({"schema": schema, "time": "2026-11-15T06:00:00Z"})
    assert repr(schema) in str(caught.value)


@pytest.mark.parametrize("line", ["", "{", "[]", "7", '"x"', "null", "[" * 100_000])
def test_a_line_that_is_no_snapshot_is_refused(line: str) -> None:
    with pytest.raises(RecordingError):
        from_line(line)


def test_instances_nested_without_end_are_refused_or_cut() -> None:
    nested: dict[str, Any] = {}
    for _ in range(600):
        nested = {"instances": [nested]}
    with contextlib.suppress(RecordingError):
        from_plain({"schema": 1, "time": "2026-11-15T06:00:00Z", "gpus": [nested]})


def test_a_time_is_always_written_with_six_digits() -> None:
    texts = [time_text(seconds) for seconds in (0.0, 1.5)]
    assert texts == ["1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:01.500000Z"]


@given(seconds=TIMES)
def test_a_time_survives_to_the_microsecond(seconds: float) -> None:
    assert parse_time(time_text(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("1970-01-01T00:00:01z", 1.0),
        ("1970-01-01T00:00:01.5Z", 1.5),
        ("1970-01-01T00:00:01.123456Z", 1.123456),
        ("1970-01-01T00:00:01.123456789Z", 1.123456),
        ("1970-01-01T02:00:00+02:00", 0.0),
        ("1969-12-31T19:30:00-04:30", 0.0),
        ("1970-01-01 00:00:02+00:00", 2.0),
        ("1970-01-01T00:00:03", 3.0),
    ],
)
def test_times_are_read_in_every_form_of_rfc_3339(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "now", "2026-13-01T00:00:00Z", "2026-11-15T25:00:00Z", None, 17, [], {}])
def test_what_is_no_time_is_refused(text: object) -> None:
    with pytest.raises(RecordingError, match="time"):
        parse_time(text)


def test_the_shape_is_the_contract() -> None:
    gpu = Gpu({"index": 0, "utilization": 3}, {"fan_speed": "unsupported"}, state="lost", since=1.5)
    assert json.loads(to_line(Snapshot(0.25, (gpu,), Host({"name": "box"}), {"version": "580.1"}))) == {
        "schema": 1,
        "time": "1970-01-01T00:00:00.250000Z",
        "host": {"name": "box"},
        "driver": {"version": "580.1"},
        "gpus": [
            {
                "index": 0,
                "utilization": 3,
                "fan_speed": None,
                "state": "lost",
                "since": "1970-01-01T00:00:01.500000Z",
                "gaps": {"fan_speed": "unsupported"},
                "processes": [],
            }
        ],
        "serving": [],
        "errors": [],
    }


def test_every_gap_word_can_be_read_back() -> None:
    for gap in GAPS:
        assert _line(fan_speed=None, gaps={"fan_speed": gap}).gap("fan_speed") == gap


def _series(trace: str, key: str) -> list[float]:
    values = [gpu.get(key) for frame in read_recording(str(_TRACES / f"{trace}.ndjson.gz")) for gpu in frame.gpus]
    return [value for value in values if isinstance(value, (int, float))]


@pytest.mark.skipif(not _TRACES.exists(), reason="no recordings of real hardware beside this checkout")
class TestRealRecordings:
    def test_every_line_is_read_and_survives_being_written(self) -> None:
        paths = sorted(_TRACES.glob("*.ndjson.gz"))
        assert paths
        for path in paths:
            frames = list(read_recording(str(path)))
            assert len(frames) > 100, path.name
            assert [from_line(to_line(frame)) for frame in frames[::10]] == frames[::10]

    def test_a_bf16_product_fills_sms_and_tensor_cores(self) -> None:
        assert max(_series("matmul_bf16", "sm_active")) > 90
        assert max(_series("matmul_bf16", "tensor_active")) > 90

    def test_fp32_leaves_the_tensor_cores_alone(self) -> None:
        assert max(_series("matmul_fp32", "sm_active")) > 90
        assert max(_series("matmul_fp32", "tensor_active")) < 5

    def test_small_kernels_look_busy_while_the_sms_do_nothing(self) -> None:
        assert 20 <= max(_series("launch", "utilization")) <= 60
        assert max(_series("launch", "sm_active")) < 5

    def test_a_leak_only_grows(self) -> None:
        used = _series("leak", "memory_used")
        grown = used[: used.index(max(used)) + 1]
        assert grown == sorted(grown)
        assert grown[-1] - grown[0] > 10 << 30

    def test_idle_memory_is_held_by_nothing_running(self) -> None:
        assert max(_series("idle_alloc", "memory_used")) > 80 << 30
        assert max(_series("idle_alloc", "sm_active")) < 5

    def test_contention_has_two_processes(self) -> None:
        frames = read_recording(str(_TRACES / "contention.ndjson.gz"))
        assert max(len(gpu.processes) for frame in frames for gpu in frame.gpus) == 2
