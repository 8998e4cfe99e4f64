"""The past of the simulated machine, for commands that look back: a night of history, a recording of some minutes."""

from __future__ import annotations

from ..analysis.diagnosis.window import WANTED
from ..analysis.events import EventDetector
from ..model.catalog import TRAINING, Gpu, Process
from ..model.select import EVERYTHING, Wanted
from ..sampling.clock import ManualClock
from ..sampling.sampler import Sampler
from ..sources.simulated.source import SimulatedSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.metric import Gap
    from ..model.snapshot import Snapshot

HOURS = 10.0
_EVERY = 120.0  # seconds between samples: a night is simulated in about a second
_SWEEP_ENDS, _LOST, _RESET = 6.2, 6.2, 6.75  # hours after the start
_IDENTITY = ("index", "uuid", "name", "vendor", "serial", "pci_bus_id", "topology")
# with all that a diagnosis uses, so that the same minute gets the same answer live and recorded
_WANTED = WANTED | Wanted(
    (*TRAINING, *_IDENTITY, "memory_total", "power_limit", "throttle_reasons", "xid_last"),
    EVERYTHING.process,
    EVERYTHING.host,
    serving=True,
)
_TRAIN = "python train_vision.py --data /data/imagenet --arch vit_b_16 --batch-size 256 --workers 24"
_SWEEP = "python sweep.py --grid configs/grid.yaml --parallel 2"


def write_history(path: str, now: float) -> None:
    """Write the last ten hours of the simulated machine to a new history.

    In them a sweep of hyperparameters ends when its second GPU falls off the bus; the GPU is reset half an hour later.
    """
    from ..store.history import HistoryWriter

    detector = EventDetector()
    with HistoryWriter(path) as writer:  # not a Recorder, which drops samples that come faster than it writes
        for snapshot in night(now):
            writer.add(snapshot, detector.observe(snapshot))


def write_recording(path: str, now: float, seconds: float = 180.0, interval: float = 1.0) -> None:
    """Write the last minutes of the simulated machine as a recording."""
    from ..model.codec import to_line

    with open(path, "w", encoding="utf-8") as file:
        for snapshot in simulated_samples(now, seconds, interval):
            file.write(to_line(snapshot) + "\n")


def write_runs(folder: str, now: float) -> None:
    """Keep three runs of one training, of which the last is slower because it waits for data."""
    from ..model.codec import time_text
    from ..store.runs import keep

    for days, step, wait, commit in (
        (2.2, 0.412, 0.04, "3f6c1d9"),
        (1.1, 0.409, 0.04, "3f6c1d9"),
        (0.2, 0.441, 0.11, "a81b02e"),
    ):
        seconds, start = 4000 * step, now - days * 86400.0
        keep(
            {
                "schema": 1, "id": f"demo-{days:g}", "state": "ended", "start": time_text(start), "seconds": seconds, "exit_code": 0,
                "command": _TRAIN, "folder": "/home/grace/vision", "host": "demo",
                "git": {"commit": commit, "branch": "main", "dirty": False},
                "gpus": [{"index": 4, "uuid": "GPU-demo-4", "name": "NVIDIA H100 80GB HBM3"}],
                "budget": {"seconds": seconds, "shares": {"tensor": 0.55, "compute": 0.38 - wait, "launch": 0.07, "workers": wait}},
                "throughput": {"steps": 4000, "steps_per_second": 1.0 / step, "data_wait": 100.0 * wait, "energy": 470.0 * seconds},
                "peak_memory": 23_907_532_800, "step_time": {"p50": step, "p95": 1.08 * step, "max": 1.9 * step},
                "step_blocks": [step * (1.0 + 0.004 * ((7 * block) % 5 - 2)) for block in range(40)],
            },
            folder,
        )  # fmt: skip


def night(now: float) -> Iterator[Snapshot]:
    """Yield the samples of the night that ends now."""
    start = now - HOURS * 3600.0
    held: Gpu | None = None  # GPU 5 when it last had a process
    for snapshot in simulated_samples(now, HOURS * 3600.0, _EVERY):
        hour = (snapshot.time - start) / 3600.0
        gpus = list(snapshot.gpus)
        if hour < _SWEEP_ENDS:
            gpus[2], gpus[3] = (
                _swept(gpus[at], gpus[at - 2], 58100 + at, 7200.0 + snapshot.time - start) for at in (2, 3)
            )
        elif _LOST <= hour < _RESET:
            gpus[3] = _lost(gpus[3], start + _LOST * 3600.0)
        held = gpus[5] if gpus[5].processes or held is None else held
        gpus[5] = _lasting(held, 52817, 3.5 * 3600.0 + snapshot.time - start)
        yield snapshot.replace(gpus=tuple(gpus))


def _lasting(gpu: Gpu, pid: int, age: float) -> Gpu:
    """Return a GPU with one process that lasts: the demo's leak starts again every five minutes, too often for a night."""
    found = tuple(process.replace(pid=pid, running_time=age) for process in gpu.processes)
    return gpu.replace(processes=found)


def _lost(gpu: Gpu, since: float) -> Gpu:
    known = {key: value for key, value in gpu.items() if key in _IDENTITY}
    gaps: dict[str, Gap] = dict.fromkeys(("utilization", "memory_used"), "lost")
    return Gpu(known | {"xid_last": 79.0}, gaps, state="lost", since=since)


def simulated_samples(
    now: float, seconds: float, interval: float, wanted: Wanted = _WANTED, mixed: bool = False
) -> Iterator[Snapshot]:
    """Yield the last seconds of the simulated machine, without waiting."""
    clock = ManualClock(now - seconds)
    sampler = Sampler(SimulatedSource(clock=clock.monotonic, mixed=mixed), wanted, clock=clock).open()
    try:
        while clock.now() < now:
            yield sampler.read()
            clock.sleep(interval)
    finally:
        sampler.close()


def _swept(gpu: Gpu, like: Gpu, pid: int, age: float) -> Gpu:
    """Return a GPU with the load of another, of a process of its own."""
    own = {key: value for key, value in gpu.items() if key in _IDENTITY}
    process = Process(
        {"pid": pid, "name": "python", "command": _SWEEP, "user": "tove", "type": "C", "memory_used": 31 << 30,
         "sm_utilization": 88.0, "cpu_percent": 99.0, "running_time": age}
    )  # fmt: skip
    return like.replace(**own, processes=(process,))
