"""Torch's own memory snapshot at the first out-of-memory error, with the lines of code that allocated each block."""

from __future__ import annotations

import os
import sys
import threading

from ..torch import cuda
from .ranks import global_rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ..sinks.base import Sink

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
        draft = f"{self.path}.{os.getpid()}.part"
        if _quietly(lambda found: found.memory._dump_snapshot(draft)) and os.path.exists(draft):
            os.replace(draft, self.path)
            self._show(f"gpulse: out of memory; torch's memory snapshot is in {self.path} (open it at {VIEWER}).")

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


def snapshot_beside(sinks: Iterable[Sink], run: str, show: Callable[[str], None]) -> MemorySnapshot:
    """Return the snapshot of a run, to be written beside its files."""
    return MemorySnapshot(snapshot_path(sinks, run, global_rank(os.environ)), show)


def snapshot_path(sinks: Iterable[Sink], run: str, rank: int | None) -> str:
    """Return where the snapshot of a run goes: beside the first file of its sinks, else in the current folder."""
    folders = [
        os.path.dirname(os.path.abspath(path)) for sink in sinks if isinstance(path := getattr(sink, "path", None), str)
    ]
    name = "".join(char if char.isalnum() or char in "-_." else "_" for char in run)
    return os.path.join(
        folders[0] if folders else os.getcwd(), f"{name}{'' if rank is None else f'-rank{rank}'}-oom.pickle"
    )


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
