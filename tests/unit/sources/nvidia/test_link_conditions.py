"""A scripted driver whose links fail: what is read is also said, as events with a begin and one sentence."""

from __future__ import annotations

from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario

# Values that change slowly are read every few seconds only, so each moment has a sampler of its own.
WATCHED = """
from gpulse.analysis.events import EventDetector
from gpulse.model.condition import CONDITIONS
from gpulse.model.select import Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.present.events import event_text
from gpulse.sampling.sampler import Sampler

names = ("nvlink_down", "fabric_not_ready", "slower_than_peers")
wanted = Wanted(("index", "uuid", *(key for name in names for key in CONDITIONS[name].needs if key != "state")))
detector, told = EventDetector(), []
for moment in (0.0, 2.0, 12.0):
    at(moment)
    sampler = Sampler(NvidiaSource(), wanted)
    sampler.open()
    found = sampler.read()
    sampler.close()
    for event in detector.observe(Snapshot(1e9 + moment, found.gpus, found.host)):
        told.append([moment, event.kind, event.severity, event_text(event)])
say(told)
"""


def test_links_that_fail_are_told(lab: Lab) -> None:
    assert lab.see(Scenario.load("links-down"), WATCHED) == [
        [
            0.0,
            "fabric-not-ready",
            "critical",
            "GPU 2: the NVLink fabric is not ready (not started); CUDA may not start",
        ],
        [
            2.0,
            "nvlink-down",
            "critical",
            "GPU 1: 4 of 18 NVLinks are up; check the bridge, the switch and the kernel log",
        ],
        [12.0, "slower-than-peers", "warn", "GPU 3: PCIe width is 8 (16 on other GPUs of the same model)"],
        [
            12.0,
            "slower-than-peers",
            "warn",
            "GPU 4: Memory clock is 1310 MHz (2619 MHz on other GPUs of the same model)",
        ],
    ]


def test_a_machine_whose_links_are_well_tells_nothing(lab: Lab) -> None:
    assert lab.see(Scenario.load("dgx-h100x8"), WATCHED) == []
