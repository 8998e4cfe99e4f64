"""The sampler: reads the wanted metrics from a source, as often as each changes, and builds snapshots."""

from __future__ import annotations

import os
from functools import partial

from ..errors import DriverTimeout
from ..model.catalog import HOST_METRICS, PROCESS_METRICS, Gpu, Host
from ..model.snapshot import Problem, Snapshot
from .assemble import NOT_LISTED, Rates, SampledGpu, add_processes, check, raised, settle_rates, troubles
from .clock import SystemClock, Turns
from .driver_threads import DriverThreads
from .plan import FOREIGN, ChosenGpus, Plan, SourceAnswer, StartedSample, list_job, machine_job, prime_job, read_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from ..model.select import Wanted
    from ..serving.watch import MachineServing
    from ..sources.base import Device, Facts, Source
    from .driver_threads import Job

_SUSPENDED = 1.0  # seconds of suspend between two samples after which counts cannot be compared
_POLL = 0.01
_RATES_APART = 0.06  # seconds between the two counts of a rate of CPU time, which the kernel counts in hundredths
_MANY = 8  # GPUs from which a single sample is read by several threads
_WIDEST = 8  # threads at most
_POWER_TRACED = 1.0  # minimum seconds between two reads of power traces; the driver's buffer reaches back 2.4 s
_SELDOM = 2.0  # traces of utilization, in slow periods: they cost 2 ms, and the buffer reaches back 14 s
_SHORTEST = 0.001  # minimum seconds between two samples; with less, the sampler would do nothing else


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
        self._rates_at = float("-inf")  # when what `begin` counted is long enough ago
        self._next_plan: Plan | None = None
        self._slow_every = slow_every
        self.costly_every = costly_every
        self.lists_every: float | None = None
        self._turns = Turns(self.clock)
        self._threads = DriverThreads(patience, self.clock)
        self._rates, self._gpu_rates = Rates(), Rates()
        self._sampled_gpus: dict[int, SampledGpu] = {}
        self._chosen: ChosenGpus | None = None
        self._listed: Sequence[Device] = ()  # the devices that were last seen
        self._asleep = self.clock.asleep()
        self._reading = StartedSample(0.0, False, False, False, None)  # the sample that `begin` has started
        self._recorded: Snapshot | None = None  # that of a recording
        self._versions: list[str] = []
        self._serving: MachineServing | None = None

    def open(self, primed: bool = False) -> Sampler:
        """Open the source; raise SourceUnavailable, or DriverTimeout if the driver does not respond.

        `primed`: first of all start to measure activity, which takes 0.1 s, on all GPUs; it is for a single sample of all.
        """
        usual, self._threads.patience = self._threads.patience, max(self._threads.patience, self.source.patience)
        results = self._threads.run([("source", self.source.open)])
        self._threads.patience = usual
        if "source" not in results:
            raise DriverTimeout(f"{self.source.name}: {self.source.late[0]}", self.source.late[1])
        if isinstance(results["source"], Exception):
            self._threads.close()
            raise results["source"]
        self._attach(self._plan.activity if primed else frozenset())
        return self

    def _attach(self, primed: frozenset[str] = frozenset()) -> None:
        """Ask for the versions of the driver, where a call that hangs costs no GPU, and for the identities; start to measure `primed`."""
        calls, devices = self.source.versions(), list(enumerate(self.source.devices))
        self._versions, self._listed = list(calls), self.source.devices
        jobs: list[Job] = [(("version", word), call) for word, call in calls.items()]
        if primed:
            jobs = [*(((at, "activity"), prime_job(device, primed, early=True)) for at, device in devices), *jobs]
        # all in one run, so that a GPU that hangs at all of them costs its time once
        self._threads.run([*jobs, *((position, device.attach) for position, device in devices)])
        for position, _ in devices:
            self._threads.blame((position, "activity"), position)

    def choose(self, words: Sequence[str], environ: Mapping[str, str] = os.environ) -> None:
        """Read only the GPUs and MIG instances with these names from now on; raise UnknownGpu if one matches none."""
        self._chosen = ChosenGpus(self.identities(), words, environ)

    def _reopened(self) -> bool:
        """Return whether the source was reopened: the GPUs may be others, or in another order, and nothing kept of them applies."""
        if self.source.devices is self._listed:
            return False
        self._gpu_rates.restart()
        for sampled in self._sampled_gpus.values():
            sampled.forget()
        self._attach()
        if self._chosen is not None:
            self._chosen.find(self._listed)
        return True

    def identities(self) -> list[Gpu]:
        """Return the identities of all GPUs and their MIG instances, without reading values."""
        devices = list(enumerate(self._listed))
        parts = self._threads.run([(position, device.parts) for position, device in devices])
        return [
            Gpu(device.identity, instances=tuple(map(Gpu, found if isinstance(found := parts.get(at), list) else ())))
            for at, device in devices
        ]

    def hurry(self, slow: bool = True) -> None:
        """Include everything in the next sample; without `slow`, everything but the slow metrics."""
        self._turns.hurry("counters", "lists", "power_trace", *(["utilization_trace", "slow"] if slow else []))

    @property
    def slow_is_due(self) -> bool:
        """Whether the next sample includes the slow metrics."""
        return self._turns.is_due("slow", self._slow_every)

    def want(self, wanted: Wanted) -> None:
        """Read other metrics from the next sample on; may be called by any thread."""
        self._next_plan = Plan(wanted)

    def prime(self) -> None:
        """Take the first of the two readings that some metrics need, so that a sample 0.1 s later has their values."""
        keys = self._plan.fast | self._plan.slow
        self._threads.run_wide([(position, prime_job(device, keys)) for position, device in self._devices()])

    def settle(self, most: float = 0.12) -> None:
        """Wait at most `most` seconds until the values started by `prime` and `begin` can be read; call `prime` if necessary."""
        self.prime()
        self._wait(most)

    def _wait(self, most: float = 0.12) -> None:
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
        reading, hanging = self._start_reading(), self._threads.hanging
        due = self._turn_traced() | (self._plan.costly if reading.costly else frozenset())
        # in one run, since each takes three changes of threads; a source that is reopened by it has other devices
        jobs = ((owner, partial(self._unless_reopened, call)) for owner, call in self._sample_jobs(reading, due))
        reading.results = self._threads.run([("source", self.source.refresh), *jobs])
        if self._reopened():
            reading.results = self._threads.run(self._sample_jobs(reading, due))
        if self._threads.hanging - hanging:
            self._ask_machine(reading)  # a call has begun to hang, so the host may have been read before all GPUs were
        return self.with_servers(self._snapshot(reading), 0.0)

    def begin(self, rates: bool = False, activity: bool = False) -> None:
        """Start a single sample: read everything but activity, which takes 0.1 s to measure and is left to `complete`.

        `rates`: also begin to measure the rates of the host and of processes. `activity`: also read activity, as far as known.
        """
        self._recorded = self.source.recorded()
        if self._recorded is not None:
            return
        refreshed = self._threads.run([("source", self.source.refresh)])
        self._reopened()
        self.prime()
        reading = self._reading = self._start_reading()
        reading.counts = rates and self.source.machine.real and (self._plan.host is not None or self._plan.describes)
        left: frozenset[str] = frozenset() if activity else self._plan.activity
        if reading.counts:
            reading.results = self._threads.run_wide(self._list_jobs(reading, self._devices()))
            self._begin_rates(reading)
        counted = reading.pids
        jobs = self._read_jobs(reading, self._turn_traced(), left, not reading.counts)
        reading.results |= self._threads.run_wide(jobs)
        if not reading.counts:
            self._ask_machine(reading)
        elif reading.pids != counted:  # of GPUs whose processes are read together with their metrics
            self._begin_rates(reading)
        reading.results |= refreshed
        if self._plan.serving:
            self._servers().look_among(reading.pids, self.clock.monotonic())

    def begun(self) -> Snapshot:
        """Return what `begin` has read."""
        if self._recorded is not None:
            return self._only_chosen(self._recorded)
        return self.with_servers(self._snapshot(self._reading), 0.0)

    def is_pending(self, snapshot: Snapshot) -> bool:
        """Return whether activity is missing in what `begun` returned, of a GPU or a MIG instance, that `complete` would add."""
        parts = (part for gpu in snapshot.gpus for part in (gpu, *gpu.instances))
        return any(part.gaps.get(key) == "pending" for part in parts for key in self._plan.activity)

    def complete(self) -> Snapshot:
        """Wait for what `begin` has left out, and return the whole sample, with model servers."""
        if self._recorded is not None:
            return self.with_servers(self._only_chosen(self._recorded))
        self._wait()
        reading = self._reading
        if self._plan.activity:
            jobs = [(at, read_job(device, self._plan.activity, None, {}, at)) for at, device in self._devices()]
            more = self._threads.run_wide(jobs)
            for position, _ in self._devices():
                reading.add(position, more.get(position), self._plan.activity)
        if reading.counts:
            self._ask_machine(reading)
        return self.with_servers(self._snapshot(reading))

    def _begin_rates(self, reading: StartedSample) -> None:
        self._ask_machine(reading)
        self._host(self._know(reading.results["machine"], [])[1])
        self._rates_at = self.clock.monotonic() + _RATES_APART

    def _ask_machine(self, reading: StartedSample) -> None:
        jobs = [("machine", machine_job(self.source.machine, self._plan, reading))]
        reading.results["machine"] = self._threads.run(jobs).get("machine")

    def _start_reading(self) -> StartedSample:
        """Decide what is due now, and count it as read."""
        self._notice_suspend()
        self._adopt_plan()
        now, slow = self.clock.now(), self._turns.take("slow", self._slow_every)
        costly = self._turns.take("counters", 0.0 if slow else self.costly_every)
        apart = None if self.lists_every is None else self._turns.take("lists", 0.0 if slow else self.lists_every)
        lists = self._plan.lists and (costly if apart is None else apart)
        return StartedSample(now, slow, costly, lists, self._plan.process(slow) if lists else None)

    def _snapshot(self, reading: StartedSample) -> Snapshot:
        """Build the snapshot of what was read."""
        results, gpus = reading.results, dict[int, Gpu]()
        silent = [word for word in self._versions if self._threads.waits_for(("version", word))]
        problems = [*troubles(self.source, self._devices(), silent), *raised(results.values())]
        asked = results.get("machine")
        known, facts = self._know(asked, problems)
        for position, device in self._devices():
            sampled, answer = self._sampled(position), results.get(position)
            if answer is None or isinstance(answer, Exception):
                gpus[position] = sampled.silent(device, reading.now, "timeout" if answer is None else "failed")
            else:
                add_processes(answer, results.get((position, "processes"), NOT_LISTED), reading.process_keys)
                if isinstance(asked, SourceAnswer):
                    asked.add_owners(answer, device.identity)
                gpus[position] = sampled.answered(device, answer, reading.now, known, reading.lists)
        host = self._host(facts)
        self._rates.next_sample(self.clock.monotonic())
        shown = tuple(gpus.values()) if self._chosen is None else self._chosen.of(gpus)
        return Snapshot(reading.now, shown, host, self.source.driver, tuple(problems))

    def with_servers(self, snapshot: Snapshot, most: float = 0.8) -> Snapshot:
        """Return a single sample with the figures of model servers; waits only if there are some, and at most `most` seconds."""
        if not self._plan.serving:
            return snapshot
        whole = None if self._chosen is None else self._chosen.whole
        return self._servers().added_to(snapshot, self.clock.monotonic(), most, whole)

    def _servers(self) -> MachineServing:
        if self._serving is None:
            from ..serving.watch import MachineServing

            self._serving = MachineServing(self.source.machine)
        return self._serving

    def widen(self) -> None:
        """Read several GPUs at the same time from now on: one sample takes less time, but not less CPU."""
        if (count := len(self._devices())) >= _MANY:
            self._threads.width = max(1, min(_WIDEST, os.cpu_count() or 1, count // (_MANY // 2)))

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

    def _unless_reopened(self, call: Callable[[], Any]) -> Any:
        return call() if self.source.devices is self._listed else None

    def _sample_jobs(self, reading: StartedSample, due: frozenset[str]) -> list[Job]:
        """Return the jobs of a whole sample; the machine is last, because it needs the processes that GPUs listed."""
        ask = machine_job(self.source.machine, self._plan, reading)
        return [*self._read_jobs(reading, due, self._plan.costly), ("machine", ask)]

    def _read_jobs(
        self, reading: StartedSample, also: frozenset[str], without: frozenset[str], lists: bool = True
    ) -> list[Job]:
        jobs: list[Job] = []
        for position, device in self._devices():
            due = (self._sampled(position).due(reading.slow) - without) | also
            jobs.append((position, read_job(device, due, reading.process_keys, reading.seen, position)))
            if lists:
                jobs += self._list_jobs(reading, [(position, device)])
        return jobs

    def _list_jobs(self, reading: StartedSample, devices: list[tuple[int, Device]]) -> list[Job]:
        if (keys := reading.process_keys) is None:
            return []
        # a GPU that hangs already is left out: its list would cost the time once more
        owners = [((at, "processes"), device) for at, device in devices if not self._threads.waits_for(at)]
        return [(owner, list_job(device, keys, reading.seen, owner)) for owner, device in owners]

    def _devices(self) -> list[tuple[int, Device]]:
        devices = list(enumerate(self._listed))
        return devices if self._chosen is None else [devices[at] for at in self._chosen.positions if at < len(devices)]

    def _sampled(self, position: int) -> SampledGpu:
        if position not in self._sampled_gpus:
            self._sampled_gpus[position] = SampledGpu(position, self._plan, self._gpu_rates, self.dropped)
        return self._sampled_gpus[position]

    def _adopt_plan(self) -> None:
        plan, self._next_plan = self._next_plan, None
        if plan is not None:
            self._plan = plan
            self._turns.hurry("slow")
            for sampled in self._sampled_gpus.values():
                sampled.adopt(plan)

    def _turn_traced(self) -> frozenset[str]:
        every = {"power_trace": _POWER_TRACED, "utilization_trace": _SELDOM * self._slow_every}
        due = (keys for key, keys in self._plan.traced.items() if self._turns.take(key, every[key]))
        return frozenset().union(*due)

    def _only_chosen(self, snapshot: Snapshot) -> Snapshot:
        return snapshot if self._chosen is None else snapshot.with_gpus(self._chosen.of(dict(enumerate(snapshot.gpus))))

    def _notice_suspend(self) -> None:
        asleep = self.clock.asleep()
        if asleep - self._asleep > _SUSPENDED:
            self._rates.restart()
            self._gpu_rates.restart()
        self._asleep = asleep

    def _know(self, answer: Any, problems: list[Problem]) -> tuple[dict[int, Facts], Facts | None]:
        """Return the details of processes and of the host; either may be missing, with a problem."""
        if answer is None:
            problems.append(Problem("machine", "the kernel does not respond to reads of process and host information."))
        if not isinstance(answer, SourceAnswer):
            return {}, None
        if answer.foreign:
            problems.append(FOREIGN)
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
