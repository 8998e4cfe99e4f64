"""Out-of-memory errors: `explain_oom(error)`, `with oom_report():`, and torch's own memory snapshot at the first one."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ContextDecorator

from ..analysis.out_of_memory import MemoryHolder, OutOfMemory, judge, largest_lines, read_message
from ..model.catalog import free_memory
from ..present.out_of_memory import account
from ..torch import cuda
from . import monitor as monitors
from .arguments import folder_beside
from .process import tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any, TextIO

    from typing_extensions import Self

    from ..model.catalog import Gpu
    from ..sinks.base import Sink

_DEPTH = 8  # causes of an exception to look through


def explain_oom(error: BaseException, *, source: str | None = None) -> OutOfMemory | None:
    """Return an account of an out-of-memory error: what was asked for, who holds the memory, and what to try.

    Understands torch (CUDA, HIP, XPU), JAX, TensorFlow, CuPy and plain CUDA errors, also as the cause of another exception.
    Returns None for any other exception. Never raises. `str()` of the result is the explanation as text.
    """
    try:
        report = _found(error)
        if report is None:
            return None
        if report.where == "gpu":
            _ask_torch(report)
            _ask_gpu(report, source)
        judge(report, os.environ)
        report.text = account(report)
        return report
    except Exception:  # noqa: BLE001  # the program's own error must stay the only one
        return None


class oom_report(ContextDecorator):  # noqa: N801  # used like a function: `with oom_report():`
    """Print an account of an out-of-memory error that leaves the block, and let the error pass.

    Also a decorator. `file` is where to print (default: stderr); afterwards `report` is the account, or None.
    """

    def __init__(self, file: TextIO | None = None, *, source: str | None = None) -> None:
        self.report: OutOfMemory | None = None
        self._file = file
        self._source = source

    def __enter__(self) -> Self:
        self.report = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        self.report = explain_oom(error, source=self._source)
        if self.report is not None:
            tell(self.report, self._file)


def _found(error: BaseException) -> OutOfMemory | None:
    """Return the first out-of-memory error among an exception and its causes."""
    current: BaseException | None = error
    for _ in range(_DEPTH):
        if current is None:
            return None
        kind = f"{type(current).__module__}.{type(current).__qualname__}"
        if (report := read_message(str(current), kind)) is not None:
            return report
        current = current.__cause__ or current.__context__
    return None


def _ask_torch(report: OutOfMemory) -> None:
    """Add what the message does not say: the current device and what torch's allocator holds on it."""
    found = cuda()
    if found is None or report.framework not in ("torch", "cuda"):
        return
    try:
        report.device = found.current_device() if report.device is None else report.device
        if report.allocated is None:
            report.allocated = float(found.memory_allocated(report.device))
            report.reserved_unused = float(found.memory_reserved(report.device)) - report.allocated
        if history_is_on():
            report.allocations = largest_lines(found.memory._snapshot(), report.device)
    except Exception:  # noqa: BLE001  # after some errors CUDA answers nothing more
        return


def _ask_gpu(report: OutOfMemory, source: str | None) -> None:
    """Add what the driver knows: the GPU, its other processes and, if a Monitor runs, the growth before."""
    from ..api import seen_by_program, snapshot
    from ..sampling.assemble import ProcessFamily

    try:
        taken = snapshot(source=source)
        gpus = seen_by_program(taken)
    except Exception:  # noqa: BLE001  # without a driver the message alone must do
        return
    at = report.device if report.device is not None else 0 if len(gpus) == 1 else None
    if at is None or not 0 <= at < len(gpus):
        return
    gpu = gpus[at]
    report.device, report.gpu_name = at, gpu.name
    report.total = gpu.memory_total if report.total is None else report.total
    if report.free is None and (free := free_memory(gpu)) is not None:
        report.free, report.free_is_now = free, True
    # in a container, the driver may report the PIDs of the host, of which one may be like ours
    report.others = _others(
        report, gpu, {os.getpid()} if ProcessFamily(os.getpid()).members(taken) is not None else set()
    )
    for monitor in monitors.running[-1:]:
        if (ledger := monitor.ledger) is not None:
            report.growth = ledger.trail.growth(gpu.uuid)


def _others(report: OutOfMemory, gpu: Gpu, own: set[int]) -> list[MemoryHolder]:
    """Return the other processes, largest first; names come from the driver's list, sizes from the message where it has them."""
    there = {int(process.pid): process for process in gpu.all_processes() if process.pid is not None}
    said = {other.pid: other for other in report.others}
    if report.used is None:
        report.used = next((there[pid].memory_used for pid in own if pid in there), None)
    found = []
    for pid in {*there, *said} - own:
        process, told = there.get(pid), said.get(pid)
        held = told.bytes if told is not None else process.memory_used if process is not None else None
        name, user = (None, None) if process is None else (process.name, process.user)
        found.append(MemoryHolder(pid, held, name, user))
    return sorted(found, key=lambda other: -(other.bytes or 0.0))


_ENTRIES = 100_000  # allocations that torch keeps, as its own documentation advises
_OFTEN = 0.05  # seconds between two questions whether CUDA has been initialized, until it is
VIEWER = "https://pytorch.org/memory_viz"


class MemorySnapshot:
    """Lets torch record allocations once the program has initialized CUDA, and writes one snapshot to `path` when memory runs out.

    `show` is called with a line for the user. A recording that the program has started itself is left as it is.
    """

    def __init__(self, path: str, show: Callable[[str], None]) -> None:
        self.path = path
        self._show = show
        self._recording = False
        self._written = False
        self._closed = threading.Event()
        if not self._begin():
            threading.Thread(target=self._wait, name="gpulse-memory", daemon=True).start()

    def close(self) -> None:
        """Stop recording."""
        self._closed.set()
        if self._recording:
            self._recording = False
            _quietly(lambda found: found.memory._record_memory_history(enabled=None))

    def write(self) -> None:
        """Write the snapshot, once."""
        if self._written or self._closed.is_set():
            return
        self._written = True
        if _quietly(self._dump):
            self._show(f"gpulse: out of memory; torch's memory snapshot is in {self.path} (open it at {VIEWER}).")

    def failed(self, error: BaseException) -> None:
        """Write the snapshot if an error says that memory ran out: an older torch does not tell before."""
        try:
            told = str(error)
        except Exception:  # noqa: BLE001  # whatever the program's class raises
            return
        if "out of memory" in told:
            self.write()

    def _dump(self, found: Any) -> None:
        draft = f"{self.path}.{os.getpid()}.part"
        found.memory._dump_snapshot(draft)
        os.replace(draft, self.path)

    def _wait(self) -> None:
        while not self._closed.wait(_OFTEN) and not self._begin():
            pass

    def _begin(self) -> bool:
        if cuda() is None:
            return False
        if not history_is_on():
            self._recording = _quietly(
                lambda found: found.memory._record_memory_history(stacks="python", max_entries=_ENTRIES)
            )
        attach = getattr(getattr(sys.modules.get("torch"), "_C", None), "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:  # torch calls it before it raises; there is no way to detach it again
            _quietly(lambda found: attach(lambda *_: self.write()))
        return True


def history_is_on() -> bool:
    """Return whether torch records which line allocates what."""
    torch = sys.modules.get("torch")
    try:
        return bool(getattr(torch, "_C")._cuda_isHistoryEnabled())  # noqa: B009  # not in the stubs of every version
    except Exception:  # noqa: BLE001  # another version of torch
        return False


def snapshot_path(sinks: Iterable[Sink], run: str, rank: int | None) -> str:
    """Return where the snapshot of a run goes."""
    name = "".join(char if char.isalnum() or char in "-_." else "_" for char in run)
    return os.path.join(folder_beside(sinks), f"{name}{'' if rank is None else f'-rank{rank}'}-oom.pickle")


def _quietly(call: Callable[[Any], object]) -> bool:
    """Return whether a call of torch worked; no error of torch may reach the program."""
    found = cuda()
    if found is None:
        return False
    try:
        call(found)
    except Exception:  # noqa: BLE001
        return False
    return True
