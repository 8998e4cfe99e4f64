"""What a GPU that does nothing waits for: told by the thread that feeds it, its workers, and what they read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .load import Load

READ = 50e6  # bytes per second from storage or network
IOWAIT = 0.30  # cores that wait for disks
WORKER = 0.5  # cores of each worker from which the workers are what the program waits for
_SOME = 0.2  # cores of each worker that show it at work where nothing else explains the wait
_THREADS = 1.3  # cores of a process whose main thread waits: its other threads prepare something
_IDLE = 5.0  # per cent of activity below which a sample shows the GPU waiting
_FULL = 95.0  # per cent above which it shows nothing of a wait
_WAITS = 0.7  # of the samples in which a main thread may run while other threads of the program are the limit


def wait_causes(load: Load) -> dict[str, float]:
    """Return what the GPU waits for when it does nothing, as shares that sum to 1: thread, workers, storage, network, outside.

    `unexplained` is the share for which nothing that was read tells.
    """
    main = load.main
    moments = [] if main is None else _moments(load)
    if not moments:
        return {"unexplained": 1.0}
    thread = _running(moments)
    if (each := load.cpu_workers / load.workers if load.workers >= 1 else 0.0) >= WORKER and each > _own(moments):
        return {"workers": 1.0}  # of two stages that feed the GPU, the one that never rests is the limit
    if (load.cpu_main or 0.0) >= _THREADS and load.states and load.states.get("running", 0.0) < _WAITS:
        return {"workers": 1.0}  # threads of the program, which the main thread waits for
    causes: dict[str, float] = {}
    total = sum(one.weight for one in moments)
    for one in moments:
        causes[one.cause] = causes.get(one.cause, 0.0) + one.weight / total
    found = {part: (1.0 - thread) * share for part, share in causes.items()}
    found["thread"] = found.get("thread", 0.0) + thread
    return {part: share for part, share in found.items() if share > 0}


class _Moment:
    """One sample: how idle the GPU was, whether the thread that feeds it ran, and what else explains a wait."""

    __slots__ = ("cause", "idle", "running", "seconds", "weight")

    def __init__(self, seconds: float, idle: float, running: float | None, cause: str) -> None:
        self.seconds = seconds
        self.idle = idle
        self.running = running
        self.cause = cause
        # a wait is seen best where the thread does not run and the GPU does nothing
        self.weight = seconds * (0.02 + idle) * (0.05 + 1.0 - (running or 0.0))


def _moments(load: Load) -> list[_Moment]:
    main, gpu = load.main, load.gpu
    if main is None:
        return []
    sm, use = gpu.columns["sm_active"], gpu.columns["utilization"]
    found = []
    for place, at in enumerate(main.at):
        if not load.first <= at < load.end:
            continue
        activity = use[at] if use[at] is not None else sm[at]
        idle = 1.0 - min(100.0, activity or 0.0) / 100.0
        cpu, state = main.values["cpu_percent"][place], main.states[place]
        # CPU time first: while autograd runs backward in a thread of its own, the main thread waits for a lock
        own = min(1.0, cpu / 100.0) if cpu is not None else None if state is None else float(state == "running")
        found.append(_Moment(gpu.weights[at], idle, own, _cause(load, place, state)))
    return found


def _running(moments: Sequence[_Moment]) -> float:
    """Return the share of the waits in which the thread itself runs.

    A thread spins while the GPU computes, so where a sample holds both, only what runs beyond that time counts.
    """
    waited = ran = 0.0
    empty = [one for one in moments if one.idle > 1 - _IDLE / 100 and one.running is not None]
    mixed = [one for one in moments if 1 - _FULL / 100 <= one.idle <= 1 - _IDLE / 100 and one.running is not None]
    full = [one for one in moments if one.idle < 1 - _FULL / 100 and one.running is not None]
    for group in (empty, mixed or full):
        seconds = sum(one.seconds for one in group)
        if seconds <= 0:
            continue
        idle = sum(one.seconds * one.idle for one in group) / seconds
        running = sum(one.seconds * (one.running or 0.0) for one in group) / seconds
        wait = max(idle, 1e-6)
        waited += seconds * wait
        ran += seconds * wait * min(1.0, max(0.0, (running - (1.0 - idle)) / wait))
    return ran / waited if waited > 0 else 0.0


def _own(moments: Sequence[_Moment]) -> float:
    """Return how much of the time the thread runs, whatever the GPU does."""
    known = [(one.seconds, one.running) for one in moments if one.running is not None]
    seconds = sum(weight for weight, _ in known)
    return sum(weight * running for weight, running in known) / seconds if seconds > 0 else 0.0


def _cause(load: Load, place: int, state: str | None) -> str:
    """Return what a thread that does not run waits for at one sample."""
    main = load.main
    assert main is not None

    def value(key: str) -> float | None:
        return main.values[key][place]

    at = main.at[place]
    own, tree, workers = value("cpu_percent"), value("tree_cpu_percent"), value("children")
    running, blocked, reads = value("workers_running"), value("workers_blocked"), value("tree_read")
    if own is None and tree is None and state is None:
        return "unexplained"
    if state == "disk":
        return "storage"
    beside = None if tree is None or own is None else max(0.0, tree - own) / 100.0
    each = None if beside is None or not workers else beside / workers
    if each is not None and each >= WORKER:
        return "workers"
    iowait, cores = load.gpu.host["iowait"][at], load.cores
    waiting = iowait is not None and cores is not None and iowait * cores / 100.0 >= IOWAIT
    if (reads or 0.0) >= READ or (waiting and (reads or 0.0) > 1e6) or (blocked and not running):
        return "storage"
    if running or (each is not None and each >= _SOME):
        return "workers"
    if state == "network" or (load.gpu.host["net_rx"][at] or 0.0) >= READ:
        return "network"
    if workers is None and tree is None:
        return "unexplained"  # its workers were not read: they may be what it waits for
    if (own or 0.0) / 100.0 >= _THREADS:
        return "workers"
    if state == "running":
        return "thread"  # ready to run without a CPU to run on
    return "thread" if (own or 0.0) / 100.0 >= 0.8 and state is None else "outside"
