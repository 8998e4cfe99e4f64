"""Forks and processes: NVML is started once in each, and a child never touches what is its parent's."""

from __future__ import annotations

from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario

FORK = """
over = sampler(Wanted(["utilization", "sm_active", "power_draw"]))
over.settle(0)
at(1)
before = sample(over)["gpus"]
reader, writer = os.pipe()
if (child := os.fork()) == 0:
    at(2)
    sample(over)
    at(3)
    answer = sample(over)["gpus"]
    os.write(writer, repr([answer[0]["utilization"], answer[0]["sm_active"], len(answer)]).encode())
    over.close()
    os._exit(0)
os.waitpid(child, 0)
inside = eval(os.read(reader, 1000))
at(4)
after = sample(over)["gpus"]
over.close()
say([inside, before[0]["utilization"], after[0]["utilization"], after[0]["sm_active"]])
"""


def machine() -> Scenario:
    scenario = Scenario.load("boards/h100").driver(gpus=2, fork="error UNINITIALIZED")
    return scenario.gpu(None, **{"utilization.gpu": 50, "gpm.sm": 40, "gpm.latch": 0})


def test_a_child_opens_the_driver_for_itself_and_the_parent_is_not_disturbed(lab: Lab) -> None:
    assert lab.see(machine(), FORK) == [[50, 40.0, 2], 50, 50, 40.0]


def test_each_process_starts_and_ends_the_driver_once(lab: Lab) -> None:
    calls = lab.ask(machine(), FORK).calls
    assert calls["nvmlInit_v2"] == 2
    assert calls["nvmlShutdown"] == 2


def test_a_child_that_leaves_without_reading_frees_nothing_of_its_parents(lab: Lab) -> None:
    answer = lab.ask(
        machine(),
        """
over = sampler(Wanted(["utilization", "sm_active"]))
over.settle(0)
if (child := os.fork()) == 0:
    over.close()
    os._exit(0)
os.waitpid(child, 0)
at(1)
say(sample(over)["gpus"][0]["sm_active"])
over.close()
""",
    )
    assert answer.json == 40.0
    assert answer.calls["nvmlShutdown"] == 1
    assert answer.calls["nvmlGpmSampleFree"] == answer.calls["nvmlGpmSampleAlloc"] == 4


def test_a_source_can_be_opened_again_after_it_was_closed(lab: Lab) -> None:
    seen = lab.see(
        machine(),
        """
source = NvidiaSource()
counts = []
for _ in range(3):
    source.open()
    counts.append(len(source.devices))
    source.close()
    source.close()
say([counts, len(source.devices)])
""",
    )
    assert seen == [[2, 2, 2], 0]
