"""Random machines that change in steps, through every surface: means, sums and hours are those of the exact integral."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulse.model.catalog import Process
from gpulse.model.select import Wanted
from gpulse.monitor.ledger import Ledger
from gpulse.monitor.messages import AgentSample
from gpulse.sampling.clock import ManualClock
from gpulse.sources.base import Counter, DeviceSample
from gpulse.store.history import HistoryReader, HistoryWriter
from gpulse.surfaces.exporter.families import Counters
from gpulse.surfaces.history.tables import over_time
from gpulse.surfaces.report.account import account
from gpulse.surfaces.report.recorded_samples import RecordedSample, remembered
from tests.unit.scripted import ScriptedDevice, ScriptedMachine, process, sample, sampler_of
from tests.unit.store.history.ticks import TurnedClock

if TYPE_CHECKING:
    from gpulse.model.snapshot import Snapshot

UUID, OTHER = "GPU-00000000", "GPU-00000001"
USERS = {1: "ada", 2: "bob"}
WANTED = Wanted(
    gpu=("utilization", "power_draw", "energy", "nvlink_rx", "memory_used", "memory_total"),
    process=("pid", "name", "user", "memory_used", "sm_utilization", "sm_time"),
)
STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "samples": st.integers(5, 40),
            "slower": st.sampled_from([1, 1, 1, 4]),  # times the interval
            "suspend": st.sampled_from([0, 0, 0, 5000]),  # seconds before it
            "utilization": st.sampled_from([0, 10, 60, 100]),
            "other": st.sampled_from([0, 50, 100, None]),  # the utilization of the second GPU; None while it is lost
            "watts": st.sampled_from([80, 300, 700]),
            "rate": st.sampled_from([0, 10**6, 10**10]),
            "cpu": st.sampled_from([0.0, 1.0, 6.5]),
            "shares": st.sampled_from([{}, {1: 0}, {1: 90}, {1: 0, 2: 0}, {1: 60, 2: 20}, {2: 5}]),
        }
    ),
    min_size=1,
    max_size=6,
)


def ran_by(pid: int) -> Callable[[dict[str, Any]], float]:
    """Return what gives the part of a step in which a process ran kernels."""
    return lambda step: float(step["shares"].get(pid, 0) / 100)


def held_by(pid: int) -> Callable[[dict[str, Any]], float]:
    """Return what gives the part of the GPU that a process held in a step."""
    return lambda step: (pid in step["shares"]) / max(1, len(step["shares"]))


class SteppedMachine:
    """A machine whose values are constant within each step; time in which it is suspended does not exist for it."""

    def __init__(self, steps: list[dict[str, Any]], interval: float) -> None:
        steps[0]["suspend"] = 0  # nobody knows the interval of a recorder after one sample
        self.steps = steps
        self.interval = interval
        self.clock = ManualClock()
        self.device = ScriptedDevice(0, self.answer)
        self.second = ScriptedDevice(1, self.answer_of_second)
        self.known = ScriptedMachine({pid: {"name": "python", "user": user} for pid, user in USERS.items()})
        self._read = 0.0

    def integral(self, of: Callable[[dict[str, Any]], float], start: float, end: float) -> float:
        """Return the exact integral over time."""
        total = begun = 0.0
        for step in self.steps:
            ended = begun + self.lasts(step)
            total += of(step) * max(0.0, min(end, ended) - max(start, begun))
            begun = ended
        return total

    def lasts(self, step: dict[str, Any]) -> float:
        return float(step["samples"] * step["slower"] * self.interval)

    def came(self, pid: int, at: float) -> float:
        """Return when a process last came: a source counts anew for one that left."""
        begun, came = 0.0, None
        for step in self.steps:
            if begun >= at - 1e-6:
                break
            came = (begun if came is None else came) if pid in step["shares"] else None
            begun += self.lasts(step)
        return at if came is None else came

    def now(self) -> dict[str, Any]:
        """Return the step that has just passed: a sample at the border of two belongs to the first."""
        left = self.clock.monotonic()
        for step in self.steps:
            left -= self.lasts(step)
            if left <= 1e-6:
                return step
        return self.steps[-1]

    def answer(self, number: int, keys: frozenset[str]) -> DeviceSample:
        """Answer as a driver does: means since the previous read, and counters."""
        at, step = self.clock.monotonic(), self.now()
        passed = self.integral(lambda one: one["utilization"], self._read, at)
        values = {
            "utilization": passed / (at - self._read) if at > self._read else step["utilization"],
            "power_draw": step["watts"],
            "energy": self.integral(lambda one: one["watts"], 0.0, at),
            "memory_used": 10 << 30,
            "memory_total": 80 << 30,
        }
        self._read = at
        count = self.integral(lambda one: one["rate"], 0.0, at)
        found = sample({key: value for key, value in values.items() if key in keys}, {"nvlink_rx": Counter(count, at)})
        due = self.device.asked_of_processes[-1] or frozenset()
        for pid, share in step["shares"].items():
            found.processes[pid] = process(pid=pid, memory_used=1 << 30)
            if "sm_time" in due:
                ran = self.integral(ran_by(pid), self.came(pid, at), at)
                found.processes[pid].values.update(sm_time=ran, sm_utilization=share)
        return found

    def answer_of_second(self, number: int, keys: frozenset[str]) -> DeviceSample:
        """Answer for the GPU that comes and goes."""
        share = self.now()["other"]
        found = sample({} if share is None else {"utilization": share})
        if share is None:
            found.state = "lost"
            found.gaps.update(dict.fromkeys(keys, "lost"))
        return found

    def program(self, slow: bool) -> Process:
        """Return what is known of the program; its tree is read now and then."""
        used = self.integral(lambda one: one["cpu"], 0.0, self.clock.monotonic())
        return Process({"pid": 1, "cpu_time": used, **({"tree_cpu_time": used} if slow else {})})

    def run(self) -> list[tuple[float, Snapshot, Process]]:
        """Sample from the beginning to the end."""
        sampler = sampler_of(self.device, self.second, wanted=WANTED, machine=self.known, clock=self.clock)
        found = [(0.0, sampler.read(), self.program(True))]
        for step in self.steps:
            self.clock.suspend(float(step["suspend"]))
            for number in range(step["samples"]):
                self.clock.sleep(step["slower"] * self.interval)
                if step is self.steps[-1] and number + 1 == step["samples"]:
                    sampler.hurry()
                slow = sampler.slow_is_due
                found.append((self.clock.monotonic(), sampler.read(), self.program(slow)))
        return found


@pytest.mark.parametrize("interval", [0.1, 1.0, 5.0, 60.0])
@settings(deadline=None, max_examples=6, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_every_surface_has_the_exact_integral(
    interval: float,
    steps: list[dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    machine = SteppedMachine(steps, interval)
    samples = machine.run()
    end = samples[-1][0]

    def exact(of: Callable[[dict[str, Any]], float]) -> float:
        return machine.integral(of, 0.0, end)

    holes = sum(1 for step in steps if step["suspend"])
    slowest = max(5.0, 4 * interval)  # seconds between two readings of slow counters
    mean = exact(lambda step: step["utilization"]) / end
    near_mean = pytest.approx(mean, rel=0.01, abs=0.1 + 100 * holes * 4 * interval / end)
    there = exact(lambda step: step["other"] is not None)
    of_second = exact(lambda step: step["other"] or 0) / there if there else 0.0
    near_second = pytest.approx(of_second, rel=0.01, abs=0.1 + 100 * (1 + holes) * 4 * interval / (there or 1.0))
    joules = exact(lambda step: step["watts"])
    near_joules = pytest.approx(joules, rel=0.01, abs=700 * slowest * (1 + holes))

    # the summary of Monitor and run
    diary = Ledger(lambda: None)
    diary.watched = True
    diary._whole.start = diary.started = 0.0
    for at, snapshot, program in samples:
        diary.add(AgentSample(at, snapshot, program))
    diary.ended = end
    summary = diary.summary()
    assert summary.gpus[0].stats["utilization"].mean == near_mean
    assert not there or summary.gpus[1].stats["utilization"].mean == near_second
    assert summary.gpus[0].energy == near_joules or end < 1
    cpu = 100 * exact(lambda step: step["cpu"]) / end
    assert summary.program["cpu_percent"].mean == pytest.approx(cpu, rel=0.01, abs=0.1)
    assert summary.program["tree_cpu_percent"].mean == pytest.approx(cpu, rel=0.01, abs=650 * slowest / end)

    # the report
    report = account((RecordedSample(snapshot) for _, snapshot, _ in samples), "it").summary
    assert report.gpus[0].stats["utilization"].mean == near_mean
    assert not there or report.gpus[1].stats["utilization"].mean == near_second
    assert report.seconds == pytest.approx(end, abs=4 * interval * (1 + holes))
    assert report.gpus[0].energy == near_joules or end < 1

    # /metrics
    counters = Counters()
    for _, snapshot, _ in samples:
        counters.add(snapshot)
    passed = exact(lambda step: step["rate"])
    assert counters.bytes.get((UUID, "nvlink_rx"), 0.0) == pytest.approx(
        passed, rel=0.01, abs=1e10 * 4 * interval * (1 + holes)
    )

    # the history, at every resolution, and who used what
    path = str(tmp_path_factory.mktemp("h") / "h.db")
    turned = TurnedClock()
    with HistoryWriter(path, clock=turned) as writer:
        for _, snapshot, _ in samples:
            turned.now = snapshot.time
            writer.add(snapshot)
    first, last = samples[0][1].time, samples[-1][1].time + 1
    with HistoryReader(path) as reader:
        for points in (100_000, 500, 20, 1):
            (series,) = reader.series(["utilization"], [UUID], first - 1, last, points)
            found = over_time(series)
            assert found is not None
            assert found.mean == near_mean, points
            second = [over_time(one) for one in reader.series(["utilization"], [OTHER], first - 1, last, points)]
            assert not there or [one.mean for one in second if one is not None] == [near_second], points
        usage = {use.owner: use for use in reader.usage(first - 1, last)}
    again = account(remembered(first - 1, last, path), "it").summary
    assert again.gpus[0].stats["utilization"].mean == near_mean
    assert sum(use.energy or 0.0 for use in usage.values()) == near_joules
    for pid, user in USERS.items():
        held = exact(held_by(pid))
        ran = exact(ran_by(pid))
        one = usage.get(user)
        slack = 4 * interval * (1 + len(steps))
        assert (one.gpu_hours * 3600 if one else 0.0) == pytest.approx(held, abs=slack)
        busy = (one.busy_hours or 0.0) * 3600 if one else 0.0
        assert busy == pytest.approx(ran, abs=slowest * (1 + len(steps)))
