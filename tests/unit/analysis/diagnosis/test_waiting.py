"""Time that the program says it waited for data."""

from __future__ import annotations

from typing import Any

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.analysis.diagnosis.running import with_wait
from gpulse.present.verdicts import title
from tests.unit.analysis.diagnosis.machines import judged, samples
from tests.unit.analysis.diagnosis.test_rules import working


def test_it_makes_an_inference_sure() -> None:
    found = diagnose(samples(working(2.0, 0.5)))
    sure = with_wait(found, 60.0)[0]
    assert (sure.key, sure.confidence) == ("host_bound", "high")
    assert sure.evidence[0].metric == "data_wait"


def test_it_explains_what_nothing_else_does() -> None:
    idle = {"processes": ({"cpu_percent": 10.0, "tree_cpu_percent": 10.0},)}
    found = diagnose(samples(working(4.0, 0.5) | idle))
    assert found[0].key == "waiting"
    told = with_wait(found, 70.0)[0]
    assert (told.key, told.values["kind"]) == ("input_bound_io", "data")  # storage would need evidence of its own
    assert with_wait(found, 5.0) == found


def test_a_thread_that_is_ready_to_run_but_does_not_is_short_of_cpu() -> None:
    starved = {"processes": ({"cpu_percent": 30.0, "tree_cpu_percent": 30.0, "thread_state": "running"},)}
    found = diagnose(samples(working(4.0, 0.5) | starved))[0]
    assert (found.key, found.values["short"], found.advice[0]) == ("host_bound", 1, "more_cores")
    assert title(found).startswith(
        "Short of CPU: the GPU waits 89 % of the time while ada's python (pid 4242, 20.0 GiB) is ready to run"
    )
    asleep = {"processes": ({"cpu_percent": 30.0, "tree_cpu_percent": 30.0, "thread_state": "sleep"},)}
    assert diagnose(samples(working(4.0, 0.5) | asleep))[0].key == "waiting"


def test_a_healthy_gpu_stays_healthy() -> None:
    assert with_wait(diagnose(samples({})), 40.0)[0].key == "healthy"


def test_samples_that_did_not_read_the_activity_of_a_mig_instance_do_not_show_it_idle() -> None:
    def instance(every: float) -> dict[str, Any]:
        known = {"sm_active": 60, "tensor_active": 20, "dram_active": 20}
        read = {key: (lambda at, value=value: value if at % every == 0 else None) for key, value in known.items()}
        waits = {"cpu_percent": 60.0, "tree_cpu_percent": 60.0, "thread_state": "sleep"}
        return {"utilization": None, "graphics_active": None, **read, "processes": (waits,)}

    often, seldom = (judged(instance(1.0), seconds=40, interval=interval) for interval in (0.25, 1.0))
    assert (often.key, often.values["kind"]) == (seldom.key, seldom.values["kind"]) == ("waiting", "outside")
