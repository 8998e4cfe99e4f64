"""XID errors, heard from the moment the watch begins."""

from __future__ import annotations

from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario


def machine() -> Scenario:
    scenario = Scenario.load("boards/h100").driver(gpus=3)
    return scenario.xid(gpu=2, code=79, at="2s").xid(gpu=0, code=13, at="1s").xid(gpu=0, code=31, at="3s")


WATCH = """
over = sampler(Wanted(["xid_last", "utilization"]))
over.source.stay()
seen = []
for moment in (0, 1.5, 2.5, 4, 5):
    at(moment)
    seen.append([[gpu["xid_last"], gpu["gaps"].get("xid_last")] for gpu in sample(over)["gpus"]])
over.close()
say(seen)
"""
NONE = [None, "pending"]


def test_the_last_xid_of_each_gpu_is_kept(lab: Lab) -> None:
    assert lab.see(machine(), WATCH) == [
        [NONE, NONE, NONE],
        [[13, None], NONE, NONE],
        [[13, None], NONE, [79, None]],
        [[31, None], NONE, [79, None]],
        [[31, None], NONE, [79, None]],
    ]


def test_without_a_watch_no_xid_is_claimed(lab: Lab) -> None:
    seen = lab.see(machine(), WATCH.replace("over.source.stay()\n", ""))
    assert seen == [[NONE, NONE, NONE]] * 5


def test_a_driver_that_cannot_report_faults_is_read_all_the_same(lab: Lab) -> None:
    for function in ("nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait_v2"):
        seen = lab.see(machine().fault(function=function, code="NOT_SUPPORTED"), WATCH)
        assert seen == [[NONE, NONE, NONE]] * 5


def test_the_set_is_given_back(lab: Lab) -> None:
    calls = lab.ask(machine(), WATCH).calls
    assert calls["nvmlEventSetCreate"] == calls["nvmlEventSetFree"] == 1


def test_an_old_driver_without_the_newer_wait_is_read(lab: Lab) -> None:
    seen = lab.see(Scenario.load("k80-old").xid(gpu=0, code=48, at="1s"), WATCH)
    assert len(seen) == 5
    assert seen[0] == [NONE, NONE]


def test_a_watch_goes_on_after_the_driver_was_started_anew(lab: Lab) -> None:
    scenario = machine().fault(function="*", code="UNKNOWN", since="4s", until="6s").xid(gpu=1, code=94, at="9s")
    seen = lab.see(
        scenario,
        """
import gpulse.sources.nvidia.source as source
source._REOPEN_EVERY = 0.0
over = sampler(Wanted(["xid_last", "utilization"]))
over.source.stay()
for moment in (0, 5, 5.5, 7, 8, 10):
    at(moment)
    last = sample(over)
say([gpu["xid_last"] for gpu in last["gpus"]])
""",
    )
    assert seen[1] == 94


def test_a_lost_gpu_keeps_its_xid_while_it_is_lost(lab: Lab) -> None:
    for gpus in (1, 3):
        scenario = Scenario.load("boards/h100").driver(gpus=gpus).xid(gpu=0, code=79, at="2s").lose(0, since="2s")
        seen = lab.see(
            scenario,
            """
over = sampler(Wanted(["xid_last", "utilization"]))
over.source.stay()
seen = []
for moment in (1, 3, 4, 5):
    at(moment)
    gpu = sample(over)["gpus"][0]
    seen.append([gpu["state"], gpu["xid_last"]])
say(seen)
""",
        )
        assert seen == [["ok", None], ["lost", 79], ["lost", 79], ["lost", 79]]


def test_every_xid_is_told_once_however_often_a_code_comes(lab: Lab) -> None:
    scenario = Scenario.load("boards/h100").driver(gpus=1)
    for moment in ("1.1s", "1.2s", "1.3s", "4.5s"):
        scenario = scenario.xid(gpu=0, code=94, at=moment)
    scenario = scenario.xid(gpu=0, code=31, at="1.4s")
    code = """
over = sampler(Wanted(["xid_last", "xids"]))
over.source.stay()
seen = []
for moment in (0, 2, 3, 5):
    at(moment)
    seen.append(sample(over)["gpus"][0]["xids"])
say(seen)
"""
    assert lab.see(scenario, code) == [[], [94, 94, 94, 31], [], [94]]
