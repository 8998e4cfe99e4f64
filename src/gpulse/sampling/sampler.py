"""The sampler: reads the wanted metrics from a source, as often as each changes, and builds snapshots."""

from __future__ import annotations

import os
from functools import partial

from ..errors import DriverTimeout
from ..model.catalog import HOST_METRICS, PROCESS_METRICS, Gpu, Host
from ..model.select import choose_parts
from ..model.snapshot import Problem, Snapshot
from .assemble import Rates, SampledGpu, check, settle_rates
from .clock import SystemClock
from .driver_threads import DriverThreads
from .plan import Plan, SourceAnswer, list_job, machine_job, prime_job, read_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..model.select import Wanted
    from ..serving.watch import MachineServing
    from ..sources.base import Device, DeviceSample, Facts, Source
    from .driver_threads import Job

_SUSPENDED = 1.0  # seconds of suspend between two samples after which counts cannot be compared
_POLL = 0.01
_RATES_APART = 0.06  # seconds between the two counts of a rate of CPU time, which the kernel counts in hundredths
_NOT_LISTED = object()  # the process list did not respond
_MANY = 8  # GPUs from which a single sample is read by several threads
_WIDEST = 8  # threads at most
_NEARLY = 0.98  # a sample that comes a little early is the one that was meant, or "every 5 s" would be every 6 s
_POWER_TRACED = 1.0  # minimum seconds between two reads of power traces; the driver's buffer reaches back 2.4 s
_SELDOM = 2.0  # traces of utilization, in slow periods: they cost 2 ms, and the buffer reaches back 14 s
_SHORTEST = 0.001  # minimum seconds between two samples; with less, the sampler would do nothing else
_VERSIONS = {"version": "its version", "cuda": "the CUDA version", "nvml": "the NVML version"}
_NO_VERSION = "the driver does not respond when asked for {}."
_FOREIGN = Problem(
    "processes",
    "names and users of processes cannot be shown: the driver reports ids of the host, not of this container.",
    "Start the container with --pid=host (hostPID: true in Kubernetes).",
)


class Sampler:
    """Reads one source for one set of wanted metrics. Used by one thread; the caller that opens it closes it.

    Static metrics are read once, slow ones every `slow_every` seconds, fast ones with every sample. Activity counters and
    process lists, which cost the GPU most, are read at most every `costly_every` seconds; a sample without them has no values
    for them. `lists_every`, unless None, is that of the lists alone. Traces of power are read at most once per second, those
    of utilization every `2 * slow_every`; a trace is only in the sample that read it. `dropped` counts values outside their
    range, by key; `missed` counts samples that a stream skipped because it was late. A GPU that does not respond within
    `patience` seconds is `timeout` in that snapshot.
    """

    def __init__(
        self,
        source: Source,
        wanted: Wanted,
        *,
        clock: SystemClock | None = None,
        patience: float = 1.0,
        slow_every: float = 5.0,
        costly_every: float = 0.0,
    ) -> None:
        self.source = source
        self.clock = clock or SystemClock()
        self.dropped: dict[str, int] = {}
        self.missed = 0
        self._plan = Plan(wanted)
        self._rates_at = float("-inf")  # when `begin_rates` is long enough ago
        self._next_plan: Plan | None = None
        self._slow_every = slow_every
        self._slow_at = float("-inf")
        self.costly_every = costly_every
        self.lists_every: float | None = None
        self._read_at: dict[str, float] = {}  # when the counters, the lists and each trace were last read
        self._threads = DriverThreads(patience, self.clock)
        self._rates = Rates()
        self._sampled_gpus: dict[int, SampledGpu] = {}
        self._chosen: list[tuple[int, str]] | None = None  # positions, and UUIDs of MIG instances
        self._asleep = self.clock.asleep()
        self._versions: list[str] = []
        self._serving: MachineServing | None = None

    def open(self) -> Sampler:
        """Open the source; raise SourceUnavailable, or DriverTimeout if the driver does not respond."""
        usual, self._threads.patience = self._threads.patience, max(self._threads.patience, self.source.patience)
        results = self._threads.run([("source", self.source.open)])
        self._threads.patience = usual
        if "source" not in results:
            raise DriverTimeout(f"{self.source.name}: {self.source.late[0]}", self.source.late[1])
        if isinstance(results["source"], Exception):
            raise results["source"]
        self._ask_versions()
        self._threads.run([(position, device.attach) for position, device in self._devices()])
        return self

    def _ask_versions(self) -> None:
        """Ask for the versions of the driver; a call that hangs costs its own version and no GPU."""
        calls = self.source.versions()
        self._versions = list(calls)
        self._threads.run([(("version", word), call) for word, call in calls.items()])

    def choose(self, words: Sequence[str], environ: Mapping[str, str] = os.environ) -> None:
        """Read only the GPUs and MIG instances with these names from now on; raise UnknownGpu if one matches none."""
        self._chosen = choose_parts(self.identities(), words, environ)

    def identities(self) -> list[Gpu]:
        """Return the identities of all GPUs and their MIG instances, without reading values."""
        devices = list(enumerate(self.source.devices))
        parts = self._threads.run([(position, device.parts) for position, device in devices])
        return [
            Gpu(device.identity, instances=tuple(map(Gpu, found if isinstance(found := parts.get(at), list) else ())))
            for at, device in devices
        ]

    def hurry(self, slow: bool = True) -> None:
        """Include everything in the next sample; without `slow`, everything but the slow metrics."""
        for what in ("counters", "lists", "power_trace", *(["utilization_trace"] if slow else [])):
            self._read_at.pop(what, None)
        if slow:
            self._slow_at = float("-inf")

    @property
    def slow_is_due(self) -> bool:
        """Whether the next sample includes the slow metrics."""
        return self.clock.monotonic() - self._slow_at >= _NEARLY * self._slow_every

    def want(self, wanted: Wanted) -> None:
        """Read other metrics from the next sample on; may be called by any thread."""
        self._next_plan = Plan(wanted)

    def prime(self) -> None:
        """Take the first of the two readings that some metrics need, so that a sample 0.1 s later has their values."""
        keys = self._plan.fast | self._plan.slow
        self._threads.run_wide([(position, prime_job(device, keys)) for position, device in self._devices()])

    def begin_rates(self) -> None:
        """Count for the rates of the host and of processes, so that a sample after `settle` has their values at no extra wait."""
        if not self.source.machine.real or (self._plan.host is None and not self._plan.describes):
            return
        seen: dict[Hashable, Collection[int]] = {}
        jobs: list[Job] = []
        for position, device in self._devices() if self._plan.lists else []:
            if self._threads.waits_for(position):
                continue  # it hangs already: its list would cost the time once more
            where = (position, "processes")
            jobs.append((where, list_job(device, frozenset(), seen, where)))
        ask = machine_job(self.source.machine, self._plan, True, seen)
        answer = self._threads.run([*jobs, ("machine", ask)]).get("machine")
        self._host(self._know(answer, [])[1])
        self._rates_at = self.clock.monotonic() + _RATES_APART

    def settle(self, most: float = 0.12) -> None:
        """Wait at most `most` seconds until the values started by `prime` and `begin_rates` can be read; call `prime` if necessary."""
        self.prime()
        devices = self._devices()
        end = self.clock.monotonic() + most
        while self.clock.monotonic() < end and not any(self._threads.waits_for(position) for position, _ in devices):
            results = self._threads.run_wide([(position, device.settled) for position, device in devices])
            devices = [(position, device) for position, device in devices if results.get(position) is False]
            if not devices and self.clock.monotonic() >= self._rates_at:
                return
            self.clock.sleep(_POLL)

    def stay(self) -> None:
        """Tell the source that more samples will follow, so that it records what only shows over time: XIDs."""
        self._threads.run([("source", self.source.stay)])

    def read(self) -> Snapshot:
        """Take one sample of everything wanted; StopIteration if the source is a recording that has ended."""
        if (recorded := self.source.recorded()) is not None:
            return self._only_chosen(recorded)
        self._notice_suspend()
        self._adopt_plan()
        now, slow = self.clock.now(), self._turn_slow()
        costly = self._turn("counters", 0.0 if slow else self.costly_every)
        lists = self._plan.lists and self._turn_lists(slow, costly)
        process_keys = self._plan.process(slow) if lists else None
        due = self._turn_traced() | (self._plan.costly if costly else frozenset())
        before = self.source.devices
        seen: dict[Hashable, Collection[int]] = {}
        ask = machine_job(self.source.machine, self._plan, slow, seen)
        jobs = self._read_jobs(slow, due, process_keys, seen)
        results = self._results(jobs, ask)
        if self.source.devices is not before:  # the source was reopened: the GPUs may have changed
            self._ask_versions()
            again = self._threads.run([*self._read_jobs(slow, due, process_keys, seen), ("machine", ask)])
            results = {"source": results.get("source"), **again}
        elif len(results) < len(jobs) + 2:  # a call hangs, so the host may have been read before all GPUs were
            results.update(self._threads.run([("machine", ask)]))
        problems = [*self.source.problems, *self._troubles(), *_raised(results.values())]
        known, facts = self._know(asked := results.pop("machine", None), problems)
        results.pop("source", None)
        gpus: dict[int, Gpu] = {}
        for position, device in self._devices():
            sampled, answer = self._sampled(position), results.get(position)
            if answer is None or isinstance(answer, Exception):
                gpus[position] = sampled.silent(device, now, "timeout" if answer is None else "failed")
            else:
                _add_processes(answer, results.get((position, "processes"), _NOT_LISTED), process_keys)
                if isinstance(asked, SourceAnswer):
                    asked.add_owners(answer, device.identity)
                gpus[position] = sampled.answered(device, answer, now, known, lists)
        host = self._host(facts)
        self._rates.next_sample()
        return self.with_servers(Snapshot(now, self._parts(gpus), host, self.source.driver, tuple(problems)), 0.0)

    def with_servers(self, snapshot: Snapshot, most: float = 0.8) -> Snapshot:
        """Return a single sample with the figures of model servers; waits only if there are some, and at most `most` seconds."""
        if not self._plan.serving:
            return snapshot
        if self._serving is None:
            from ..serving.watch import MachineServing

            self._serving = MachineServing(self.source.machine)
        return self._serving.added_to(snapshot, self.clock.monotonic(), most)

    def _results(self, jobs: list[Job], ask: Callable[[], SourceAnswer]) -> dict[Hashable, Any]:
        """Run the jobs of one sample: the source first, the machine last, because it needs the processes that GPUs listed."""
        if self._threads.width <= 1:
            return self._threads.run([("source", self.source.refresh), *jobs, ("machine", ask)])
        results = self._threads.run([("source", self.source.refresh)])
        return results | self._threads.run_wide(jobs) | self._threads.run([("machine", ask)])

    def widen(self) -> None:
        """Read several GPUs at the same time from now on: one sample takes less time, but not less CPU."""
        count = len(self._devices())
        if count >= _MANY:
            self._threads.width = max(1, min(_WIDEST, os.cpu_count() or 1, count // (_MANY // 2)))

    def read_ahead(self) -> None:
        """Read now what rarely changes, so that the next sample does not; useful while activity is being measured."""
        jobs: list[Job] = [
            (position, partial(device.read, self._sampled(position).ahead(), None))
            for position, device in self._devices()
        ]
        answers = self._threads.run_wide(jobs)
        for position, _ in self._devices():
            answer = answers.get(position)
            if answer is not None and not isinstance(answer, Exception):
                self._sampled(position).keep(answer)

    def stream(self, interval: float) -> Iterator[Snapshot]:
        """Yield a snapshot every `interval` seconds at a steady rate: a late sample does not delay the following ones."""
        self.stay()
        interval = max(interval, _SHORTEST)
        start, tick = self.clock.monotonic(), 0
        while True:
            try:
                snapshot = self.read()
            except StopIteration:
                return
            yield snapshot
            passed = self.clock.monotonic() - start
            due = max(tick + 1, int(passed / interval))
            self.missed += due - tick - 1
            tick = due
            self.clock.sleep(start + tick * interval - self.clock.monotonic())

    def close(self) -> None:
        """Close the source, unless one of its calls hangs: then the driver must not be touched."""
        if self._serving is not None:
            self._serving.close()
        if not self._threads.hanging:
            self._threads.run([("source", self.source.close)])
        self._threads.close()

    def _read_jobs(
        self,
        slow: bool,
        also: frozenset[str],
        process_keys: frozenset[str] | None,
        seen: dict[Hashable, Collection[int]],
    ) -> list[Job]:
        jobs: list[Job] = []
        for position, device in self._devices():
            due = (self._sampled(position).due(slow) - self._plan.costly) | also
            jobs.append((position, read_job(device, due, process_keys, seen, position)))
            if process_keys is not None and not self._threads.waits_for(position):
                jobs.append(((position, "processes"), list_job(device, process_keys, seen, (position, "processes"))))
        return jobs

    def _troubles(self) -> list[Problem]:
        silent = [word for word in self._versions if self._threads.waits_for(("version", word))]
        return [
            *(Problem(self.source.name, device.trouble) for _, device in self._devices() if device.trouble),
            *(
                Problem(self.source.name, _NO_VERSION.format(_VERSIONS.get(word, word)), self.source.late[1])
                for word in silent
            ),
        ]

    def _devices(self) -> list[tuple[int, Device]]:
        devices = list(enumerate(self.source.devices))
        if self._chosen is None:
            return devices
        return [devices[at] for at in dict.fromkeys(at for at, _ in self._chosen) if at < len(devices)]

    def _sampled(self, position: int) -> SampledGpu:
        if position not in self._sampled_gpus:
            self._sampled_gpus[position] = SampledGpu(position, self._plan, self._rates, self.dropped)
        return self._sampled_gpus[position]

    def _adopt_plan(self) -> None:
        plan, self._next_plan = self._next_plan, None
        if plan is not None:
            self._plan = plan
            self._slow_at = float("-inf")
            for sampled in self._sampled_gpus.values():
                sampled.adopt(plan)

    def _turn_slow(self) -> bool:
        due = self.slow_is_due
        if due:
            self._slow_at = self.clock.monotonic()
        return due

    def _turn(self, what: str, every: float) -> bool:
        """Return whether something is due that is read at most every `every` seconds; if so, it counts as read."""
        now = self.clock.monotonic()
        due = now - self._read_at.get(what, float("-inf")) >= _NEARLY * every
        if due:
            self._read_at[what] = now
        return due

    def _turn_lists(self, slow: bool, costly: bool) -> bool:
        return costly if self.lists_every is None else self._turn("lists", 0.0 if slow else self.lists_every)

    def _turn_traced(self) -> frozenset[str]:
        every = {"power_trace": _POWER_TRACED, "utilization_trace": _SELDOM * self._slow_every}
        return frozenset().union(*(keys for key, keys in self._plan.traced.items() if self._turn(key, every[key])))

    def _only_chosen(self, snapshot: Snapshot) -> Snapshot:
        if self._chosen is None:
            return snapshot
        return snapshot.with_gpus(self._parts(dict(enumerate(snapshot.gpus))))

    def _parts(self, gpus: dict[int, Gpu]) -> tuple[Gpu, ...]:
        """Return the chosen GPUs, in the order chosen, and for a chosen MIG instance the instance instead of its GPU."""
        if self._chosen is None:
            return tuple(gpus.values())
        return tuple(_part(gpus[at], uuid) if uuid else gpus[at] for at, uuid in self._chosen if at in gpus)

    def _notice_suspend(self) -> None:
        asleep = self.clock.asleep()
        if asleep - self._asleep > _SUSPENDED:
            self._rates.restart()
        self._asleep = asleep

    def _know(self, answer: Any, problems: list[Problem]) -> tuple[dict[int, Facts], Facts | None]:
        """Return the details of processes and of the host; either may be missing, with a problem."""
        if answer is None:
            problems.append(Problem("machine", "the kernel does not respond to reads of process and host information."))
        if not isinstance(answer, SourceAnswer):
            return {}, None
        if answer.foreign:
            problems.append(_FOREIGN)
        for pid, facts in answer.processes.items():
            settle_rates(("process", pid), facts, self._rates)
            check(facts, PROCESS_METRICS, self.dropped)
        return answer.processes, answer.host

    def _host(self, facts: Facts | None) -> Host:
        if self._plan.host is None:
            return Host({})
        if facts is None:
            return Host({}, dict.fromkeys(self._plan.host, "failed"))
        settle_rates("host", facts, self._rates)
        check(facts, HOST_METRICS, self.dropped)
        return Host(facts.values, facts.gaps)


def _add_processes(sample: DeviceSample, listing: Any, process_keys: frozenset[str] | None) -> None:
    if process_keys is None or listing is None or sample.state != "ok":
        return  # not asked for, or read together with the metrics
    if isinstance(listing, Exception):
        sample.gaps["processes"] = "failed"
    elif listing is _NOT_LISTED:
        sample.gaps["processes"] = "timeout"
    else:
        listing.add_to(sample)


def _part(gpu: Gpu, uuid: str) -> Gpu:
    """Return a MIG instance of a GPU; if the GPU does not respond, only the UUID of the instance and the GPU's state."""
    for instance in gpu.instances:
        if instance.uuid == uuid:
            return instance
    gaps = {key: gap for key, gap in gpu.gaps.items() if key != "uuid"}
    return Gpu({"uuid": uuid, "vendor": "nvidia"}, gaps, state=gpu.state, since=gpu.since)


def _raised(answers: Iterable[object]) -> list[Problem]:
    """Describe an unexpected exception of a source: a bug of ours, reported instead of hidden."""
    return [Problem("gpulse", f"{type(error).__name__}: {error}") for error in answers if isinstance(error, Exception)]
