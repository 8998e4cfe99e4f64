"""The page: every one parses, nothing unknown is a number, and many scrapers cost what one does."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, Gpu, Host, Process
from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Diagnosis
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.surfaces.exporter.exporter import Exporter, prefers_openmetrics, wanted
from gpulse.surfaces.exporter.families import Owners
from gpulse.surfaces.exporter.tenants import Bound
from tests.unit.analysis.diagnosis import machines
from tests.unit.snapshots import snapshots
from tests.unit.surfaces.exporter.pages import WHO, exporter_of, gpu, samples, values, without

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


@given(st.lists(snapshots(believable=True), max_size=3), st.booleans(), st.booleans(), st.booleans())
def test_any_course_is_a_page_that_parses_with_each_series_once(
    course: list[Snapshot], openmetrics: bool, processes: bool, dcgm: bool
) -> None:
    exporter = Exporter()
    for snapshot in course:
        exporter.add(snapshot)
    found = samples(exporter, openmetrics=openmetrics, processes=processes, dcgm=dcgm)
    assert all(math.isfinite(sample.value) for sample in found)
    keys = [(sample.name, *sorted(sample.labels.items())) for sample in found]
    assert len(set(keys)) == len(keys)
    assert all(sample.timestamp is None for sample in found)
    assert not {label for sample in found for label in sample.labels} & {"job", "instance"}


@given(st.text(max_size=20))
def test_a_text_comes_back_as_it_was_or_written_out(text: str) -> None:
    process = Process({"pid": 7, "name": text, "user": "ada", "memory_used": 5})
    exporter = exporter_of(Gpu(WHO, processes=(process,)))
    for openmetrics in (False, True):
        (name,) = values(
            samples(exporter, openmetrics=openmetrics, processes=True), "gpulse_process_memory_bytes", "name"
        )
        if text.isprintable():
            assert name == (text,)
        assert name[0].isprintable()


def test_before_the_first_sample_the_page_says_that_there_is_none() -> None:
    found = {sample.name: sample.value for sample in samples(Exporter())}
    assert found["gpulse_up"] == 0
    assert "gpulse_last_sample_timestamp_seconds" not in found
    assert not [name for name in found if name.startswith("gpulse_gpu")]


def test_a_page_is_written_once_a_sample_and_anew_for_the_next() -> None:
    exporter = exporter_of(gpu(utilization=5))
    page = exporter.text()
    assert exporter.text() is page
    assert exporter.text(dcgm=True) is not page
    exporter.add(Snapshot(1010.0, (gpu(utilization=50),)))
    assert values(samples(exporter), "gpulse_gpu_utilization_ratio", "gpu") == {("0",): 0.5}
    assert values(samples(exporter), "gpulse_last_sample_timestamp_seconds") == {(): 1010.0}
    assert values(samples(exporter), "gpulse_samples_total") == {(): 2}


def test_what_the_server_costs_is_on_the_page() -> None:
    exporter = Exporter()
    exporter.add(Snapshot(1.0), seconds=0.25)
    exporter.text(openmetrics=True)
    found = {sample.name: sample.value for sample in samples(exporter)}
    assert found["gpulse_sample_duration_seconds"] == 0.25
    assert found["gpulse_scrape_duration_seconds"] > 0
    assert found["process_cpu_seconds_total"] > 0
    assert found["process_resident_memory_bytes"] > 1 << 20


def test_values_are_in_base_units_and_nought_is_a_value() -> None:
    found = samples(
        exporter_of(gpu(utilization=0, clock_sm=1980, energy=12.5, memory_percent=50, persistence_mode=True))
    )
    told = {sample.name: sample.value for sample in found if sample.labels == {"gpu": "0", "uuid": "GPU-1"}}
    assert told == {
        "gpulse_gpu_up": 1,
        "gpulse_gpu_utilization_ratio": 0,
        "gpulse_gpu_clock_sm_hertz": 1.98e9,
        "gpulse_gpu_energy_joules_total": 12.5,
        "gpulse_gpu_memory_ratio": 0.5,
        "gpulse_gpu_persistence_mode": 1,
        "gpulse_gpu_processes": 0,
    }


@pytest.mark.parametrize("state", ["lost", "timeout"])
def test_a_gpu_that_does_not_answer_has_no_series_but_up_and_its_errors(state: str) -> None:
    part = Gpu({"index": 0, "uuid": "MIG-1", "memory_used": 5})
    gone = Gpu(
        {**WHO, "xid_last": 79, "utilization": 3, "throttle_reasons": ("gpu_idle",), "pcie_rx": 5},
        state="lost" if state == "lost" else "timeout",
        processes=(Process({"pid": 1, "user": "ada", "memory_used": 5}),),
        instances=(part,),
    )
    found = samples(exporter_of(gone, gone), processes=True, dcgm=True)
    mine = {sample.name: sample.value for sample in found if sample.labels.keys() & {"uuid", "UUID"}}
    told = {"DCGM_FI_DEV_XID_ERRORS": 79, "DCGM_EXP_XID_ERRORS_COUNT": 1, "DCGM_EXP_GPU_HEALTH_STATUS": 20}
    assert mine == {"gpulse_gpu_up": 0, "gpulse_gpu_xid_errors_total": 1, **told}


def test_a_gpu_that_sleeps_is_not_lost() -> None:
    found = samples(exporter_of(Gpu(WHO, {"utilization": "asleep"}, state="asleep")))
    assert values(found, "gpulse_gpu_up", "uuid") == {("GPU-1",): 1}
    assert not values(found, "gpulse_gpu_processes", "uuid")


def test_what_is_missing_is_absent_and_counted_by_reason() -> None:
    found = samples(exporter_of(*[without(fan_speed="unsupported", power_draw="denied", xid_last="pending")] * 3))
    assert not [sample for sample in found if "fan" in sample.name or "power" in sample.name]
    assert values(found, "gpulse_gaps_total", "metric", "reason") == {
        ("fan_speed", "unsupported"): 3,
        ("power_draw", "denied"): 3,
    }


def test_an_instance_is_told_from_its_gpu() -> None:
    part = Gpu({"index": 2, "uuid": "MIG-1", "name": "MIG 1g.10gb", "memory_used": 5, "gpu_instance": 7})
    found = samples(exporter_of(Gpu({**WHO, "memory_used": 9, "driver_version": "580"}, instances=(part,))))
    used = values(found, "gpulse_gpu_memory_used_bytes", "gpu", "uuid", "mig")
    assert used == {("0", "GPU-1", ""): 9, ("0", "MIG-1", "2"): 5}
    infos = values(found, "gpulse_gpu_info", "uuid", "name", "parent", "gpu_instance", "driver_version")
    assert infos.keys() == {("GPU-1", "A", "", "", "580"), ("MIG-1", "MIG 1g.10gb", "GPU-1", "7", "580")}
    assert values(found, "gpulse_gpu_up", "uuid") == {("GPU-1",): 1}


def test_one_owner_a_gpu_the_one_that_holds_the_most_in_all() -> None:
    processes = (
        Process({"pid": 1, "user": "ada", "memory_used": 6}),
        Process({"pid": 2, "user": "grace", "job": "slurm:48213", "memory_used": 5}),
        Process({"pid": 3, "user": "grace", "job": "slurm:48213", "memory_used": 4}),
        Process({"pid": 4, "memory_used": 90}),
    )
    found = samples(exporter_of(Gpu(WHO, processes=processes)), processes=True)
    owners = values(found, "gpulse_gpu_job_info", "uuid", "user", "scheduler", "job_id", "container")
    assert owners.keys() == {("GPU-1", "grace", "slurm", "48213", "")}
    assert values(found, "gpulse_gpu_processes", "uuid") == {("GPU-1",): 4}
    held = values(found, "gpulse_process_memory_bytes", "pid", "user")
    assert held == {("1", "ada"): 6, ("2", "grace"): 5, ("3", "grace"): 4, ("4", ""): 90}


def test_the_series_of_a_gpu_have_the_labels_of_its_owner_on_request() -> None:
    job = Process({"pid": 2, "user": "grace", "job": "slurm:48213", "container": "c0ffee", "memory_used": 5})
    busy = Gpu({**WHO, "power_draw": 300.0, "xid_last": 31}, processes=(job,))
    exporter = Exporter(owners=Owners(labelled=True))
    exporter.add(Snapshot(1000.0, (busy,)))
    found = samples(exporter, dcgm=True, processes=True)
    labels = ("uuid", "user", "scheduler", "job_id", "container")
    assert values(found, "gpulse_gpu_power_draw_watts", *labels) == {
        ("GPU-1", "grace", "slurm", "48213", "c0ffee"): 300
    }
    assert values(found, "gpulse_gpu_job_info", *labels) == {("GPU-1", "grace", "slurm", "48213", "c0ffee"): 1}
    assert values(found, "DCGM_FI_DEV_POWER_USAGE", "user", "hpc_job") == {("grace", "48213"): 300}
    # an alert about a GPU does not end because its owner changes
    assert values(found, "gpulse_gpu_up", "user") == {("",): 1}
    assert values(found, "gpulse_gpu_xid_errors_total", "user") == {("",): 1}
    assert not values(samples(exporter_of(busy)), "gpulse_gpu_power_draw_watts", "user").keys() - {("",)}


def test_owners_and_processes_beyond_the_limit_have_no_labels_of_their_own() -> None:
    exporter = Exporter(owners=Owners(labelled=True, most=2))
    for number in range(5):
        job = Process({"pid": number, "user": "ada", "job": f"slurm:{number}", "memory_used": 5})
        exporter.add(Snapshot(1000.0 + number, (Gpu({**WHO, "power_draw": 300.0}, processes=(job,)),)))
        found = samples(exporter, processes=True)
        (owner,) = values(found, "gpulse_gpu_power_draw_watts", "user", "job_id")
        assert owner == (("ada", f"{number}") if number < 2 else ("(other)", ""))
        assert len(values(found, "gpulse_process_memory_bytes", "pid")) == int(number < 2)
        assert values(found, "gpulse_processes_left_out") == {(): int(number >= 2)}


def test_a_limit_makes_room_for_others_after_two_hours() -> None:
    clock = ManualClock()
    bound = Bound(1, clock.monotonic)
    assert [bound.admits("a"), bound.admits("b"), bound.admits("a")] == [True, False, True]
    clock.sleep(7200.0)
    assert [bound.admits("b"), bound.admits("a")] == [True, False]


def test_a_label_of_a_program_has_a_limit() -> None:
    exporter = exporter_of(Gpu(WHO, processes=(Process({"pid": 1, "user": "ada", "pod": "x" * 5000}),)))
    ((pod,),) = values(samples(exporter), "gpulse_gpu_job_info", "pod")
    assert len(pod) == 120


def test_without_a_list_of_processes_nobody_counts_them() -> None:
    found = samples(exporter_of(without(processes="denied")))
    assert not values(found, "gpulse_gpu_processes", "uuid")


def test_processes_are_there_only_when_asked() -> None:
    exporter = exporter_of(Gpu(WHO, processes=(Process({"pid": 1, "memory_used": 5}),)))
    assert not [sample for sample in samples(exporter) if "pid" in sample.labels]
    assert [sample for sample in samples(exporter, processes=True) if "pid" in sample.labels]


def test_the_machine_is_told() -> None:
    exporter = Exporter()
    host = Host({"cpu_percent": 25, "load": (1.5, 2.0, 3.0), "disk_read": 100, "name": "box"}, {"iowait": "pending"})
    for at in (0.0, 3.0):
        exporter.add(Snapshot(at, (), host))
    found = samples(exporter)
    told = {
        sample.name: sample.value for sample in found if sample.name.startswith("gpulse_host") and not sample.labels
    }
    assert told == {"gpulse_host_cpu_ratio": 0.25, "gpulse_host_disk_read_bytes_total": 300}
    assert values(found, "gpulse_host_load", "minutes") == {("1",): 1.5, ("5",): 2.0, ("15",): 3.0}
    assert values(found, "gpulse_gaps_total", "metric", "reason") == {("host.iowait", "pending"): 2}


def test_openmetrics_says_the_same_in_its_own_types() -> None:
    exporter = exporter_of(gpu(utilization=7, energy=5, pcie_rx=9, xid_last=3))
    lines = exporter.text(openmetrics=True).decode().splitlines()
    assert lines[-1] == "# EOF"
    assert "# TYPE gpulse_gpu info" in lines
    assert "# TYPE gpulse_gpu_energy_joules counter" in lines
    classic = {sample[:3] for sample in _told(exporter, False)}
    assert {sample[:3] for sample in _told(exporter, True)} == classic


def _told(exporter: Exporter, openmetrics: bool) -> list[tuple[str, str, float]]:
    found = samples(exporter, openmetrics=openmetrics)
    return [
        (one.name, str(sorted(one.labels.items())), one.value) for one in found if one.name.startswith("gpulse_gpu")
    ]


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        (PROMETHEUS, True),
        ("", False),
        ("*/*", False),
        ("text/html,application/xhtml+xml", False),
        ("text/plain;version=0.0.4;q=0.9,application/openmetrics-text;q=0.1", False),
        ("application/openmetrics-text; version=1.0.0; q=0", False),
        ("application/openmetrics-text;q=x", False),
        ("Application/OpenMetrics-Text", True),
    ],
)
def test_who_asks_for_openmetrics_gets_it(accept: str, openmetrics: bool) -> None:
    assert prefers_openmetrics(accept) is openmetrics


def test_everything_that_is_wanted_exists_and_the_demo_has_it() -> None:
    asked = wanted(processes=True, dcgm=True)
    assert asked.gpu <= GPU_METRICS.keys()
    assert asked.host is not None
    assert asked.host <= HOST_METRICS.keys()
    assert wanted().gpu - {"throttle_reasons_supported"} <= EVERYTHING.gpu
    clock = ManualClock()
    sampler = Sampler(SimulatedSource(clock=clock.monotonic), asked, clock=clock).open()
    exporter = Exporter()
    for _ in range(3):
        exporter.add(sampler.read())
        clock.sleep(1.0)
    names = {sample.name for sample in samples(exporter, processes=True, dcgm=True)}
    assert {"gpulse_gpu_pcie_rx_bytes_total", "gpulse_gpu_job_info", "gpulse_process_memory_bytes"} <= names
    assert {"gpulse_host_net_rx_bytes_total", "DCGM_FI_DEV_GPU_TEMP", "gpulse_gpu_throttle_seconds_total"} <= names
    sampler.close()


def test_the_verdict_of_each_gpu_is_a_label() -> None:
    taken = machines.samples({"tensor_active": 0, "dram_active": 88}, seconds=20, interval=1.0)
    exporter = Exporter(lambda: diagnose(taken))
    exporter.add(taken[-1])
    lines = [line for line in exporter.text().decode().splitlines() if line.startswith("gpulse_diagnosis")]
    assert len(lines) == 1
    assert 'verdict="memory_bandwidth"' in lines[0]
    assert 'confidence="high"' in lines[0]
    assert lines[0].endswith(" 1")


def test_the_verdict_of_a_mig_instance_has_its_label() -> None:
    whole = machines.samples({}, seconds=20, interval=1.0)
    taken = [
        Snapshot(one.time, (Gpu({"uuid": "GPU-0", "index": 0}, instances=(part,)),), one.host)
        for one in whole
        for part in [Gpu({**dict(one.gpus[0].items()), "uuid": "MIG-1"}, processes=one.gpus[0].processes)]
    ]
    exporter = Exporter(lambda: diagnose(taken))
    exporter.add(taken[-1])
    assert values(samples(exporter), "gpulse_diagnosis", "uuid", "mig", "verdict") == {("MIG-1", "0", "healthy"): 1.0}


def test_a_family_that_fails_is_left_out_and_counted_and_the_rest_is_there() -> None:
    def judged() -> Diagnosis:
        raise ZeroDivisionError("no samples")

    said: list[str] = []
    exporter = Exporter(judged, say=said.append)
    bad = {**WHO, "utilization": 5, "throttle_reasons": ("hw_slowdown",)}
    exporter.add(Snapshot(1000.0, (Gpu(bad),)))
    exporter._counters.throttled.clear()  # as a mistake would
    for openmetrics in (False, True):
        found = samples(exporter, openmetrics=openmetrics)
        assert values(found, "gpulse_gpu_utilization_ratio", "uuid") == {("GPU-1",): 0.05}
        assert values(found, "gpulse_gpu_processes", "uuid") == {("GPU-1",): 0}
        assert not values(found, "gpulse_gpu_throttle_seconds_total", "uuid")
    failures = values(samples(exporter, openmetrics=True), "gpulse_failed_families_total", "family")
    assert failures == {("gpulse_gpu_throttle_seconds_total",): 2, ("gpulse_diagnosis",): 2}
    assert said == [
        "gpulse_gpu_throttle_seconds_total is missing in /metrics: KeyError('GPU-1').",
        "gpulse_diagnosis is missing in /metrics: ZeroDivisionError('no samples').",
    ]
