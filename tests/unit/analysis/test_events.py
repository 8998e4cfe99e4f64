"""What happened between samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.events import ClockWatch, EventDetector
from gpulse.model.catalog import Gpu, Process
from gpulse.model.condition import KINDS
from gpulse.model.event import Event
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.clock import ManualClock
from tests.unit.snapshots import snapshots

if TYPE_CHECKING:
    from gpulse.model.metric import Value

GIB = 1 << 30


def gpu(index: int = 0, *processes: Process, state: str = "ok", **values: Value) -> Gpu:
    there: dict[str, Value] = {"index": index, "uuid": f"GPU-{index}", "memory_total": 80 * GIB, **values}
    return Gpu(there, state=state, processes=processes)  # type: ignore[arg-type]


def process(pid: int = 7, **values: Value) -> Process:
    return Process({"pid": pid, "name": "python", "user": "ada", **values})


def watch(*samples: list[Gpu], every: float = 1.0) -> list[Event]:
    """Return all events of samples `every` seconds apart, each as it was last told."""
    detector = EventDetector()
    found: dict[tuple[object, ...], Event] = {}
    for at, gpus in enumerate(samples):
        found |= {event.key: event for event in detector.observe(Snapshot(at * every, tuple(gpus)))}
    return [*(found | {event.key: event for event in detector.finish()}).values()]


def told(events: list[Event]) -> list[tuple[float, str, tuple[str, ...]]]:
    return [(event.time, event.kind, event.gpus) for event in events]


def test_an_xid_is_told_also_if_its_sample_was_dropped_on_the_way() -> None:
    old = gpu(0, xids=(), xid_last=31.0)
    assert watch([old], [old]) == []  # reported before anybody watched
    events = watch([old], [gpu(0, xids=(), xid_last=79.0)], [gpu(0, xids=(), xid_last=79.0)])
    assert [(one.kind, one.value) for one in events] == [("xid", 79.0)]


def test_xids_of_one_sample_are_one_event_per_code_with_their_number() -> None:
    events = watch([gpu(0, xids=())], [gpu(0, xids=(94.0, 31.0, 94.0, 94.0))], [gpu(0, xids=(94.0,))])
    assert [(event.value, event.values.get("count")) for event in events] == [(94.0, 3.0), (31.0, None), (94.0, None)]
    assert len({event.key for event in events}) == 3


def test_what_is_there_at_the_first_sample_has_not_just_happened() -> None:
    assert watch([gpu(0, process())], [gpu(0, process())]) == []


def test_a_process_that_starts_and_ends() -> None:
    events = watch([gpu()], [gpu(0, process())], [gpu()])
    assert told(events) == [(1.0, "process-start", ("0",)), (2.0, "process-end", ("0",))]
    assert [event.process and event.process.pid for event in events] == [7, 7]


def test_a_process_on_several_gpus_is_one_event() -> None:
    empty, used = [gpu(0), gpu(1)], [gpu(0, process()), gpu(1, process())]
    assert told(watch(empty, used, empty)) == [
        (1.0, "process-start", ("0", "1")),
        (2.0, "process-end", ("0", "1")),
    ]


def test_a_list_that_cannot_be_read_says_nothing_about_its_processes() -> None:
    unread = Gpu({"index": 0, "uuid": "GPU-0"}, {"processes": "denied"})
    assert watch([gpu(0, process())], [unread], [gpu(0, process())]) == []


def test_processes_of_a_lost_gpu_have_not_ended() -> None:
    events = watch([gpu(0, process())], [gpu(0, state="lost", xid_last=79)], [gpu(0, process(), xid_last=79)])
    assert told(events) == [(1.0, "lost", ("0",)), (1.0, "xid", ("0",)), (2.0, "back", ("0",))]


def test_a_process_that_ends_on_a_full_gpu_ran_out_of_memory() -> None:
    samples = [[gpu(0, process(memory_used=size * GIB), memory_percent=98.0)] for size in (70, 78)]
    events = watch(*samples, [gpu(0)])
    assert [(event.kind, event.value) for event in events] == [("out-of-memory", 78 * GIB)]


def test_a_process_that_filled_the_gpu_for_long_and_ends_has_ended() -> None:
    held = [gpu(0, process(memory_used=78 * GIB), memory_percent=98.0)]
    assert [event.kind for event in watch(held, held, held, [gpu(0)])] == ["process-end"]


def test_a_process_that_ends_after_a_steep_rise_ran_out_of_memory() -> None:
    samples = [[gpu(0, process(memory_used=size * GIB), memory_percent=50.0)] for size in (5, 15, 30)]
    assert [event.kind for event in watch(*samples, [gpu(0)])] == ["out-of-memory"]


def test_a_rise_of_long_ago_is_no_reason() -> None:
    samples = [[gpu(0, process(memory_used=size * GIB), memory_percent=50.0)] for size in (5, *[30] * 8)]
    assert [event.kind for event in watch(*samples, [gpu(0)])] == ["process-end"]


def test_throttling_lasts_from_the_first_sample_to_the_last() -> None:
    hot, cool = [gpu(throttle_reasons=("hw_thermal_slowdown",))], [gpu(throttle_reasons=())]
    (event,) = watch(cool, hot, hot, cool, hot, *[cool] * 15)
    assert (event.time, event.kind, event.until) == (1.0, "throttled", 4.0)


def test_throttling_that_goes_on_has_no_end() -> None:
    hot = [gpu(throttle_reasons=("hw_slowdown",))]
    (event,) = watch(hot, hot)
    assert event.until is None
    (more,) = watch(hot, [gpu(throttle_reasons=("hw_slowdown", "hw_power_brake_slowdown"))])
    assert more.reasons == ("hw_slowdown", "hw_power_brake_slowdown")


def test_throttling_after_a_calm_is_another() -> None:
    hot, cool = [gpu(throttle_reasons=("sw_thermal_slowdown",))], [gpu(throttle_reasons=())]
    assert told(watch(hot, *[cool] * 12, hot)) == [(0.0, "throttled", ("0",)), (13.0, "throttled", ("0",))]


def test_the_power_cap_of_a_busy_gpu_is_no_event() -> None:
    assert watch([gpu(throttle_reasons=("sw_power_cap", "gpu_idle"))]) == []


def test_errors_are_counted_from_the_first_sample_on() -> None:
    events = watch(
        [gpu(ecc_uncorrected=4)], [gpu(ecc_uncorrected=4)], [gpu(ecc_uncorrected=6)], [gpu(ecc_uncorrected=0)]
    )
    assert [(event.time, event.kind, event.value) for event in events] == [(2.0, "memory-errors", 2)]


def test_gpus_that_come_and_go() -> None:
    assert told(watch([gpu(0)], [gpu(0), gpu(1)], [gpu(1)])) == [(1.0, "added", ("1",)), (2.0, "removed", ("0",))]


def test_the_worst_comes_first() -> None:
    events = watch([gpu(0), gpu(1)], [gpu(0, process()), gpu(1, xid_last=79)])
    assert [event.severity for event in events] == ["critical", "info"]


@given(st.lists(snapshots(), max_size=5))
def test_any_snapshots_can_be_watched(samples: list[Snapshot]) -> None:
    watching = EventDetector()
    for sample in samples:
        assert all(event.kind in KINDS for event in watching.observe(sample))


@pytest.mark.parametrize(("percent", "kind"), [(97.0, "out-of-memory"), (96.9, "process-end")])
def test_how_full_a_gpu_must_be_for_a_process_to_have_run_out(percent: float, kind: str) -> None:
    samples = [[gpu(0, process(memory_used=size * GIB), memory_percent=percent)] for size in (69, 70)]
    assert [event.kind for event in watch(*samples, [gpu(0)])] == [kind]


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [
        ((5, 8, 17), "out-of-memory"),
        ((5, 8, 16.9), "process-end"),  # less than 15 % of the memory
        ((5, 5, 30), "process-end"),  # one step: as when a program loads its weights
        ((5, 8, 17, 17, 17, 17), "out-of-memory"),
        ((5, 8, 17, 17, 17, 17, 17), "process-end"),  # 4 s ago
    ],
)
def test_how_steep_a_rise_must_be(sizes: tuple[float, ...], kind: str) -> None:
    samples = [[gpu(0, process(memory_used=size * GIB), memory_percent=30.0)] for size in sizes]
    assert [event.kind for event in watch(*samples, [gpu(0)])] == [kind]


def test_throttling_is_as_bad_as_its_worst_reason() -> None:
    limited, hot = ("current_limit",), ("current_limit", "hw_thermal_slowdown")
    (event,) = watch([gpu(throttle_reasons=limited)], [gpu(throttle_reasons=hot)])
    assert (event.reasons, event.severity) == (hot, "critical")


def test_a_pid_used_again_in_a_gap_is_another_process_even_if_it_is_older() -> None:
    old, new = process(running_time=100.0), process(running_time=3000.0)
    assert [event.kind for event in watch([gpu(0, old)], [gpu(0, new)], every=7200.0)] == [
        "process-end",
        "process-start",
    ]


def test_processes_live_on_when_the_clock_is_set_forward() -> None:
    clock = ManualClock(1e9)
    detector = EventDetector(ClockWatch(clock))
    detector.observe(Snapshot(1e9, (gpu(0, process(running_time=100.0)),)))
    clock.sleep(1.0)
    (event,) = detector.observe(Snapshot(1e9 + 3601, (gpu(0, process(running_time=101.0)),)))
    assert (event.kind, event.value) == ("clock", 3600.0)


@pytest.mark.parametrize(("calm", "count"), [(9, 1), (10, 2)])
def test_how_long_it_must_be_calm_before_throttling_is_another(calm: int, count: int) -> None:
    hot, cool = [gpu(throttle_reasons=("sw_thermal_slowdown",))], [gpu(throttle_reasons=())]
    assert len(watch(hot, *[cool] * calm, hot)) == count


def test_a_process_that_ends_says_what_it_held_at_most() -> None:
    samples = [[gpu(0, process(memory_used=size * GIB), memory_percent=20.0)] for size in (5, 9, 9, 9, 9, 9, 9, 9, 6)]
    (event,) = watch(*samples, [gpu(0)])
    assert (event.kind, event.value) == ("process-end", 9 * GIB)


def test_a_pid_that_is_used_again_is_another_process() -> None:
    old, new = process(running_time=100.0), process(running_time=0.5)
    assert [event.kind for event in watch([gpu(0, old)], [gpu(0, new)])] == ["process-end", "process-start"]
    assert watch([gpu(0, old)], [gpu(0, process(running_time=96.5))]) == []  # two readings of one start, a little apart


def test_a_gpu_that_comes_back_ends_its_loss() -> None:
    lost, back = watch([gpu()], [gpu(state="lost")], [gpu(state="lost")], [gpu()])
    assert (lost.kind, lost.time, lost.until) == ("lost", 1.0, 3.0)
    assert (back.kind, back.time) == ("back", 3.0)


def test_events_survive_being_written_down() -> None:
    held = process(memory_used=78 * GIB)
    for event in watch([gpu(0, held, memory_percent=98.0)], [gpu(0, throttle_reasons=("hw_slowdown",), xid_last=31)]):
        again = Event.from_plain(event.to_plain())
        assert (again, again.key, again.severity) == (event, event.key, event.severity)
