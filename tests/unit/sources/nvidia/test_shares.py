"""Each process's share of a GPU over time, from a driver that answers as an H200 does."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.sources.base import Facts
from gpulse.sources.nvidia.nvml import NOT_FOUND, SUCCESS
from gpulse.sources.nvidia.processes import ProcessShares

KEYS = frozenset({"sm_utilization", "sm_time"})


class Driver:
    """A driver that returns the mean share since the time stamp it is passed; a sample is taken every 0.2 s."""

    def __init__(self, busy: tuple[float, float]) -> None:
        self.now = 1000.0
        self.busy = busy
        self.windows: list[float] = []

    def function(self, name: str) -> Any:
        assert name == "nvmlDeviceGetProcessUtilization"
        return self.answer

    def answer(self, handle: object, buffer: Any, count: Any, since: Any) -> int:
        start, newest = since.value / 1e6, self.now // 0.2 * 0.2
        self.windows.append(newest - start)
        if newest <= start:
            return NOT_FOUND
        ran = max(0.0, min(newest, self.busy[1]) - max(start, self.busy[0]))
        buffer[0].pid, buffer[0].timeStamp = 7, round(newest * 1e6)
        buffer[0].smUtil = round(100 * ran / (newest - start))
        count._obj.value = 1
        return SUCCESS


def read_every(seconds: float, driver: Driver, until: float, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setattr("gpulse.sources.nvidia.processes.time.time", lambda: driver.now)
    reader = ProcessShares(driver, None)  # type: ignore[arg-type]
    found = []
    while driver.now <= until:
        facts = Facts()
        reader.read({7: facts}, KEYS)
        found.append(dict(facts.values))
        driver.now += seconds
    return found


@pytest.mark.parametrize("seconds", [1.3, 5.0, 9.0])
def test_a_share_is_the_mean_since_the_previous_read(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver((1010.0, 1017.0))
    found = read_every(seconds, driver, 1060.0, monkeypatch)
    assert driver.windows[1:] == [pytest.approx(seconds, abs=0.21)] * (len(found) - 1)
    assert found[-1] == {"sm_utilization": 0, "sm_time": pytest.approx(7.0, rel=0.03)}
    idle_from = next(at for at in range(len(found)) if 1000 + at * seconds > 1017.2 + seconds)
    assert {values["sm_utilization"] for values in found[idle_from:]} == {0}


def test_reads_in_quick_succession_repeat_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver((900.0, 2000.0))
    found = read_every(0.05, driver, 1000.7, monkeypatch)
    assert {values["sm_utilization"] for values in found} == {100}


def test_no_process_with_a_context_is_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver((0.0, 1.0))
    driver.answer = lambda *_: NOT_FOUND  # type: ignore[method-assign]
    found = read_every(5.0, driver, 1010.0, monkeypatch)
    assert found == [{"sm_utilization": 0, "sm_time": 0.0}] * 3
