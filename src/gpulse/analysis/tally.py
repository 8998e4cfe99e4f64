"""Tallies: what GPUs, machine, program and model servers did over one window of time, added up sample by sample."""

from __future__ import annotations

from ..model.catalog import COSTLY
from ..model.identity import GpuIdentities, rename
from .energy import TELLING
from .own_use import OwnTally
from .readings import HARMLESS, POWER_CAP
from .summary import GpuSummary, Stats, StepTimes, Summary, WeightedSeries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from ..model.catalog import Gpu, Process, Server
    from ..model.metric import Reading
    from ..model.snapshot import Snapshot
    from .own_use import EnergyShare

IDLE = 5.0  # per cent of utilisation below which a GPU does nothing worth the name


_gauges: dict[str, bool] = {}


def _varying() -> dict[str, bool]:
    """Return the keys worth statistics, and whether each is read at one moment instead of covering some time.

    Found at the first sample, since the catalog costs the start of a program 10 ms.
    """
    global _gauges
    if not _gauges:
        from ..model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
        from ..model.metric import Number

        metrics = (*GPU_METRICS.items(), *HOST_METRICS.items(), *PROCESS_METRICS.items())
        _gauges = {
            key: not metric.window
            for key, metric in metrics
            if isinstance(metric, Number) and metric.kind == "gauge" and metric.cost != "static"
        }
    return _gauges


class Tally:
    """Everything about one window; `energy` is put in from outside, where the counter's steps are known."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.samples = 0
        self.steps = 0
        self.items = 0.0
        self.waited = 0.0
        self.tokens = 0.0
        self.step_times = StepTimes()
        self._identities = GpuIdentities()
        self.gpus: dict[str, GpuTally] = {}
        self._host: dict[str, WeightedSeries] = {}
        self._program: dict[str, WeightedSeries] = {}
        self._cpu: dict[str, tuple[float, float]] = {}

    def begin(self, snapshot: Snapshot, own: Collection[int] | None = None) -> None:
        """Take a sample from just before the window; nothing is made of it here."""

    def add(
        self,
        snapshot: Snapshot,
        program: Process | None,
        seconds: float,
        within: bool = True,
        own: Collection[int] | None = None,
    ) -> None:
        """Add a sample that represents `seconds` of the window; `within` is false for one taken just after its end.

        `own` are the PIDs of the program whose window it is; None if nobody knows.
        """
        self.samples += 1
        names = self._identities.keys(snapshot.gpus)
        rename(self.gpus, self._identities.renamed)
        for name, gpu in zip(names, snapshot.gpus, strict=True):
            tally = self.gpus[name] = self.gpus.get(name) or GpuTally(gpu)
            tally.add(gpu, seconds, within)
            tally.own.add(gpu, own, seconds, within)
        _gather(self._host, snapshot.host, seconds, within)
        if program is not None:
            _gather(self._program, program, seconds, within)
        self.added(snapshot, program, own, within)

    def added(self, snapshot: Snapshot, program: Process | None, own: Collection[int] | None, within: bool) -> None:
        """Take what else a tally keeps of a sample that was just added; nothing here."""

    def add_energy(self, uuid: str, joules: float, share: EnergyShare | None = None) -> None:
        """Add what a GPU used within this window, of which the program has a share."""
        if uuid in self.gpus:
            tally = self.gpus[uuid]
            tally.energy = (tally.energy or 0.0) + joules
            if share is not None:
                tally.own.charge(joules, share)

    def add_shares(self, snapshot: Snapshot, own: Collection[int], seconds: float) -> None:
        """Let the SM shares of the processes stand for `seconds`: they were read now, and cover the time since they were last read."""
        for name, gpu in zip(self._identities.keys(snapshot.gpus), snapshot.gpus, strict=True):
            if (tally := self.gpus.get(name)) is not None:
                tally.own.add_shares(gpu, own, seconds)

    def add_activity(self, snapshot: Snapshot, seconds: float) -> None:
        """Let the activity values of the sample that was added last stand for `seconds` more, since they are read less often."""
        for name, gpu in zip(self._identities.keys(snapshot.gpus), snapshot.gpus, strict=True):
            if (tally := self.gpus.get(name)) is not None:
                _gather(tally.series, gpu, seconds, among=COSTLY)

    def raise_peaks(self, key: str, peaks: Mapping[str, float]) -> None:
        """Take the highest value of a metric by UUID from a source that knows it better: samples may be means."""
        for uuid, peak in peaks.items():
            if uuid in self.gpus and key in (series := self.gpus[uuid].series):
                series[key].highest = max(series[key].highest, peak)

    def add_cpu(self, key: str, used: float, seconds: float) -> None:
        """Add CPU time that the program used in a number of seconds of this window; `key` is the metric it is the mean of."""
        before, watched = self._cpu.get(key, (0.0, 0.0))
        self._cpu[key] = (before + used, watched + seconds)

    def summary(self, name: str, seconds: float) -> Summary:
        """Return the figures of the window, which lasted `seconds`, as a value."""
        return Summary(
            name,
            seconds,
            samples=self.samples,
            steps=self.steps,
            items=self.items,
            waited=self.waited,
            tokens=self.tokens,
            gpus=tuple(tally.summary(seconds >= TELLING) for tally in self.gpus.values()),
            host=_stats(self._host),
            program=self._program_stats(),
            step_time=self.step_times.stats,
        )

    def _program_stats(self) -> dict[str, Stats]:
        """Return the statistics of the program; the mean of its CPU usage is its CPU time divided by the time."""
        found = _stats(self._program)
        for key, (used, watched) in self._cpu.items():
            if watched > 0:
                mean = 100.0 * used / watched
                found[key] = found[key].with_mean(mean) if key in found else Stats(mean, mean, mean, mean, mean)
        return found


class GpuTally:
    """One GPU over one window."""

    def __init__(self, gpu: Gpu) -> None:
        self.latest = gpu
        self.own = OwnTally()
        self.series: dict[str, WeightedSeries] = {}
        self.energy: float | None = None
        self.counted = False  # whether the GPU has an energy counter
        self.drawn: float | None = None  # joules by power, for a GPU without one
        self.idle_drawn: float | None = None
        self.idle = 0.0
        self.watched = 0.0
        self.slowed = 0.0
        self.throttled: dict[str, float] = {}

    def add(self, gpu: Gpu, seconds: float, within: bool = True) -> None:
        """Add the state of the GPU over `seconds`."""
        self.latest = gpu
        _gather(self.series, gpu, seconds, within)
        if gpu.utilization is not None:
            self.watched += seconds
            self.idle += seconds if gpu.utilization < IDLE else 0.0
        self.counted = self.counted or gpu.energy is not None
        if gpu.power_draw is not None:
            joules = gpu.power_draw * seconds
            self.drawn = (self.drawn or 0.0) + joules
            if gpu.utilization is not None:
                self.idle_drawn = (self.idle_drawn or 0.0) + (joules if gpu.utilization < IDLE else 0.0)
        reasons = gpu.throttle_reasons or ()
        self.slowed += 0.0 if HARMLESS.issuperset(reasons) else seconds
        for reason in reasons:
            self.throttled[reason] = self.throttled.get(reason, 0.0) + seconds

    @property
    def model(self) -> str:
        """The name of the model, with a word that tells a GPU in parts from a whole one."""
        return f"{self.latest.name or 'GPU'}{' MIG' if self.latest.instances else ''}"

    @property
    def charged(self) -> float | None:
        """Joules so far: the program's share, or those of all where its processes are not known; None if unknown."""
        if self.own.used is not None:
            return self.own.use(self.counted, True).energy
        return self.energy if self.counted else self.drawn

    def summary(self, telling: bool) -> GpuSummary:
        """Return the figures as a value; without the energy where the window was too short to be `telling`."""
        gpu = self.latest
        estimated = not self.counted and self.drawn is not None
        device = (self.drawn if estimated else self.energy) if telling else None
        own = self.own.use(self.counted, telling)
        energy = device if own.used is None else own.energy
        return GpuSummary(
            index=None if gpu.index is None else int(gpu.index),
            uuid=gpu.uuid,
            name=gpu.name,
            memory_total=gpu.memory_total,
            stats=_stats(self.series),
            energy=energy,
            energy_estimated=estimated and telling if own.used is None else own.energy_estimated,
            device_energy=energy if device is None else device,
            own=own,
            idle_energy=self.idle_drawn,
            idle_share=100.0 * self.idle / self.watched if self.watched else None,
            throttled_seconds=self.slowed,
            throttled={reason: seconds for reason, seconds in self.throttled.items() if reason not in HARMLESS},
            power_capped=self.throttled.get(POWER_CAP, 0.0),
            state=gpu.state,
        )


def _gather(
    series: dict[str, WeightedSeries],
    reading: Reading,
    seconds: float,
    within: bool = True,
    among: frozenset[str] | None = None,
) -> None:
    gauges = _varying()
    for key, value in reading.items():
        if key in gauges and (among is None or key in among) and isinstance(value, (int, float)):
            if key not in series:
                series[key] = WeightedSeries()
            series[key].add(value, seconds, within or not gauges[key])


def _stats(series: Mapping[str, WeightedSeries]) -> dict[str, Stats]:
    return {key: Stats.from_series(one) for key, one in series.items() if one.seconds}


_MEANS = ("generation_rate", "prompt_rate", "running", "waiting", "kv_cache", "first_token_p95", "inter_token_p95")


class ServedRun:
    """One server over a run. Tokens are its rates times the seconds; joules those of its GPUs while it answered."""

    __slots__ = ("_joules", "_means", "gpus", "highest", "seconds", "server")

    def __init__(self, server: Server) -> None:
        self.server = server  # as it last answered
        self.gpus: tuple[str, ...] = ()
        self.seconds = 0.0
        self.highest: dict[str, float] = {}
        self._means = {key: WeightedSeries() for key in _MEANS}
        self._joules: float | None = 0.0

    def add(self, server: Server, gpus: Sequence[Gpu], seconds: float) -> None:
        """Add a sample that stands for some seconds."""
        self.server = server
        self.gpus = server.gpus or self.gpus
        self.seconds += seconds
        for key, series in self._means.items():
            if isinstance(value := server.get(key), (int, float)):
                series.add(value, seconds)
                self.highest[key] = max(value, self.highest.get(key, value))
        powers = [gpu.power_draw for gpu in gpus if gpu.uuid in self.gpus]
        known = powers and len(powers) == len(self.gpus) and None not in powers
        if self._joules is not None:
            self._joules = self._joules + seconds * sum(power or 0.0 for power in powers) if known else None

    def mean(self, key: str) -> float | None:
        """Return the mean of a metric over the time in which it is known."""
        return self._means[key].mean

    @property
    def tokens(self) -> float | None:
        """Tokens generated."""
        rate = self._means["generation_rate"]
        return None if rate.mean is None else rate.mean * rate.seconds

    @property
    def joules(self) -> float | None:
        """Energy of its GPUs by their power; None where it is not known for all of them all the time."""
        return self._joules if self.gpus else None

    @property
    def tokens_per_joule(self) -> float | None:
        """Tokens generated per joule."""
        tokens, joules = self.tokens, self.joules
        return tokens / joules if tokens is not None and joules else None

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        names = {key: self.server.get(key) for key in ("server", "model", "endpoint")}
        means = {key: self.mean(key) for key in _MEANS}
        figures = {"tokens": self.tokens, "energy": self.joules, "tokens_per_joule": self.tokens_per_joule}
        return {**names, "gpus": list(self.gpus), "seconds": self.seconds, **means, **figures}


class ServingTally:
    """All servers of a run, by what tells them apart."""

    def __init__(self) -> None:
        self._runs: dict[str, ServedRun] = {}

    def add(self, snapshot: Snapshot, seconds: float) -> None:
        """Add a snapshot that stands for some seconds."""
        for server in snapshot.serving:
            if server.key not in self._runs:
                self._runs[server.key] = ServedRun(server)
            self._runs[server.key].add(server, snapshot.gpus, seconds)

    def sorted(self) -> list[ServedRun]:
        """Return the servers, the one with most tokens first."""
        return sorted(self._runs.values(), key=lambda run: -(run.tokens or 0.0))


def together(runs: Iterable[ServedRun], key: str) -> float | None:
    """Return a figure of all servers of a run: rates add up, latencies are the highest, tokens per joule of those with both."""
    found = list(runs)
    if key == "tokens_per_joule":
        both = [(one.tokens, one.joules) for one in found if one.tokens is not None and one.joules]
        return _rounded(sum(tokens for tokens, _ in both) / sum(joules for _, joules in both)) if both else None
    known = [value for one in found if (value := one.mean(key)) is not None]
    if not known:
        return None
    return _rounded(max(known) if key.endswith("p95") or key == "kv_cache" else sum(known))


def _rounded(value: float) -> float:
    """Return four digits: two runs that differ by less are alike."""
    return float(f"{value:.4g}")
