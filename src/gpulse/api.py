"""The Python API: one snapshot, a stream of them, the GPUs a program can see, and free GPUs."""

from __future__ import annotations

import os
import sys

from .errors import UsageError
from .model.select import EVERYTHING, Wanted, metric_named
from .sampling.sampler import Sampler
from .sources.registry import default_source, is_local, is_this_machine, make_source
from .torch import ordinals
from .units import parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from .analysis.waiting import Picked
    from .model.catalog import Gpu
    from .model.snapshot import Snapshot
    from .model.verdict import Diagnosis
    from .sampling.clock import SystemClock
    from .sampling.stream import Stream
    from .sources.base import Source


def snapshot(
    metrics: Sequence[str] | None = None, *, gpus: Sequence[str | int] | None = None, source: str | None = None
) -> Snapshot:
    """Return one snapshot of this machine, with all metrics and GPUs or only those named.

    Raises SourceUnavailable if no GPU can be read. Takes about 0.1 s if it includes activity (SM, tensor, DRAM).
    """
    return read_once(_open(metrics, gpus, source))


def read_once(sampler: Sampler) -> Snapshot:
    """Return one sample of an open sampler, with activity, and close it."""
    try:
        sampler.begin(rates=True)
        return sampler.complete()
    finally:
        sampler.close()


def gpus(metrics: Sequence[str] | None = None, *, source: str | None = None) -> tuple[Gpu, ...]:
    """Return the GPUs of this machine with their current values."""
    return snapshot(metrics, source=source).gpus


def visible_gpus(metrics: Sequence[str] | None = None, *, source: str | None = None) -> tuple[Gpu, ...]:
    """Return the GPUs that this program can see, in its own order: index 0 is cuda:0.

    If torch has initialized CUDA, torch provides the mapping; otherwise the environment does (CUDA_VISIBLE_DEVICES and the
    variables of other vendors). A MIG instance is returned as itself. Different GPU models are assumed to be in PCI bus order,
    which CUDA uses only with CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    return seen_by_program(snapshot(None if metrics is None else [*metrics, "mig_mode"], source=source))


def seen_by_program(taken: Snapshot) -> tuple[Gpu, ...]:
    """Return the GPUs of a snapshot that this program can see, in its own order."""
    from .model.select import by_uuid, visible

    there, uuids = taken.gpus, ordinals() or []
    found = by_uuid(there, uuids)
    return tuple(found if uuids and len(found) == len(uuids) else visible(there, os.environ))


def pick(
    n: int = 1,
    *,
    free_memory: float | str | None = None,
    utilization: float | None = None,
    window: float | None = None,
    gpus: Sequence[str | int] | None = None,
    wait: bool | float = False,
    claim: bool = True,
    share: bool = False,
    source: str | None = None,
) -> Picked:
    """Return `n` free GPUs, best first; raise NoFreeGpu with the reasons if there are fewer.

    A GPU is free if it has no compute process, no memory in use, and at most `utilization` percent utilization during `window`
    seconds (default: 2), which is also how long the call takes. `free_memory` is the minimum free memory, in bytes or as "40GiB".
    Only GPUs that the environment (CUDA_VISIBLE_DEVICES) leaves to this program are selected.

    The GPUs are claimed: no other call, in this program or another, returns them until this program ends or calls `release()`.
    With `claim=False` they are only looked for. `wait=True` waits in the queue until it is this program's turn, a number waits at
    most that many seconds. With `share=True` GPUs that others use count as free if they have `free_memory`.
    """
    from .analysis.free import WANTED, Requirement
    from .analysis.waiting import Waiting, allotted, with_claims
    from .present.queue import hold_text

    if n < 1:
        raise UsageError(f"cannot pick {n} GPUs;", "ask for 1 or more.")
    size = parse_size(free_memory) if isinstance(free_memory, str) else free_memory
    asked = Requirement(n, size, utilization, share)
    # the GPUs of a test exist in one process only: a lock file would outlast them and meet other tests; and the queue of
    # this computer is not that of a simulated or recorded machine
    name = source or default_source()
    here = is_this_machine(name)
    queued = here and not is_local(name)
    words = None if gpus is None else [str(gpu) for gpu in gpus]
    sampler = Sampler(_source(source), WANTED).open()
    try:
        if here and (given := allotted(sampler.identities(), n, words)) is not None:
            return with_claims(given)
        program = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
        waiting = Waiting(asked, hold_text, claims=claim and queued, queued=queued, program=program)
        found, locks = waiting.seek(sampler, words, window, _longest_wait(wait))
        return with_claims(found, (*locks, waiting.place))
    finally:
        sampler.close()


def _longest_wait(wait: bool | float) -> float | None:
    return None if wait is False else float("inf") if wait is True else float(wait)


def diagnose(
    recording: str | Iterable[Snapshot] | None = None,
    *,
    seconds: float = 30.0,
    interval: float = 0.5,
    gpus: Sequence[str | int] | None = None,
    source: str | None = None,
) -> Diagnosis:
    """Return what limits each GPU and the numbers that show it: of a recording (a file or snapshots), else of the next `seconds`.

    The diagnosis iterates over one verdict per GPU; `verdict.title` is the sentence, `verdict.evidence` the numbers.
    """
    from .analysis.diagnosis.running import diagnosis_of as judge
    from .analysis.diagnosis.window import WANTED
    from .present.verdicts import worded

    if isinstance(recording, str):
        from .store.recording import read_recording

        return worded(judge(read_recording(recording)))
    if recording is not None:
        return worded(judge(recording))
    sampler = Sampler(_source(source), WANTED, slow_every=max(1.0, interval)).open()
    try:
        if gpus is not None:
            sampler.choose([str(gpu) for gpu in gpus])
        sampler.settle()
        return worded(judge(_for(sampler.stream(interval), seconds)))
    finally:
        sampler.close()


def _for(samples: Iterator[Snapshot], seconds: float) -> Iterator[Snapshot]:
    """Yield samples until they cover `seconds`."""
    first: float | None = None
    for sample in samples:
        first = sample.time if first is None else first
        yield sample
        if sample.time - first >= seconds:
            return


def stream(
    interval: float = 1.0,
    metrics: Sequence[str] | None = None,
    *,
    gpus: Sequence[str | int] | None = None,
    source: str | None = None,
) -> Stream:
    """Return a stream of snapshots, one every `interval` seconds: `for snapshot in stream()`, or `async for` in an event loop.

    It ends when the caller stops; the driver is released when the stream is closed or forgotten. In an event loop sampling
    happens in a thread, and cancelling the task that waits for a snapshot closes the stream.
    """
    from .sampling.stream import Stream

    def samples(clock: SystemClock) -> Generator[Snapshot, None, None]:
        sampler = _open(metrics, gpus, source, clock)
        try:
            sampler.settle()
            yield from sampler.stream(interval)
        finally:
            sampler.close()

    return Stream(samples)


def _open(
    metrics: Sequence[str] | None,
    gpus: Sequence[str | int] | None,
    source: str | None,
    clock: SystemClock | None = None,
) -> Sampler:
    wanted = EVERYTHING if metrics is None else Wanted([metric_named(name).key for name in metrics], host=("name",))
    sampler = Sampler(_source(source), wanted, clock=clock).open()
    if gpus is not None:
        sampler.choose([str(gpu) for gpu in gpus])
    return sampler


def _source(name: str | None) -> Source:
    return make_source(name or default_source())
