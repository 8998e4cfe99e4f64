"""The wire: any snapshot the catalog allows becomes one line of the stream."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings

from gpulse.live import wire
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from tests.unit.snapshots import snapshots


@given(snapshots())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_snapshot_is_one_message_of_ascii(snapshot: Snapshot) -> None:
    text = wire.message("sample", wire.sample(snapshot), "run-1") + wire.message("processes", wire.processes(snapshot))
    assert text.isascii()
    assert text.count(b"\n\n") == 2
    assert text.count(b"\n") == 7
    first = json.loads(text.split(b"\ndata: ")[1].partition(b"\n")[0])
    assert [gpu["state"] for gpu in first["gpus"]] == [gpu.state for gpu in snapshot.gpus]
    json.loads(wire.compact(wire.process_list(snapshot)))


@given(snapshots())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_snapshot_without_commands_is_otherwise_the_same(snapshot: Snapshot) -> None:
    bare = wire.without_commands(snapshot)
    for before, after in zip(snapshot.gpus, bare.gpus, strict=True):
        assert dict(before.items()) == dict(after.items())
        assert (before.state, before.since, before.gaps) == (after.state, after.since, after.gaps)
        kept = [process.replace(command=None) for process in before.all_processes()]
        assert kept == [*after.all_processes()]


def test_a_stream_has_no_traces() -> None:
    gpu = Gpu({"uuid": "GPU-a", "power_draw": 300.0, "power_trace": (299, 301), "utilization_trace": (50,)})
    (plain,) = wire.sample(Snapshot(1.0, (gpu,)))["gpus"]
    assert plain == {"uuid": "GPU-a", "power_draw": 300.0, "state": "ok"}


def test_a_gpu_has_the_words_of_the_terminal() -> None:
    gpus = (
        Gpu({"clock_sm": 1155.0, "throttle_reasons": ("hw_slowdown", "hw_thermal_slowdown"), "utilization": 90.0}),
        Gpu({"xid_last": 13.0, "utilization": 90.0, "pcie_width": 4, "pcie_width_max": 16}),
        Gpu({"xid_last": 79.0}, state="lost", since=90.0),
        Gpu({}, gaps=dict.fromkeys(("utilization", "memory_used", "temperature"), "denied")),
        Gpu({"utilization": 5.0}),
    )
    snapshot = Snapshot(100.0, gpus)
    first, second, lost, denied, calm = wire.sample(snapshot)["gpus"]
    assert first["notes"] == [["1155 MHz too hot", "critical"]]
    assert second["notes"] == [["XID 13", "warn"], ["PCIe x4 of x16", "warn"]], "an error of a program is no fault"
    assert lost["silence"] == ["lost for 10s (XID 79)", "critical"]
    assert denied["silence"] == ["no permission", "warn"]
    assert not {"notes", "silence"} & set(calm)
