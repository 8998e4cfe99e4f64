"""How a process begins and ends, and when a notebook runs a cell again: what a monitor must know to start and stop in time."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from ..torch import is_data_worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .monitor import Monitor

_REPLACED = (
    "gpulse: this monitor replaces one that an earlier cell left running; call stop() or use `with` to end a monitor."
)
_said = False
_released: list[Callable[[], None]] = []
_FIRST = 100  # priority among multiprocessing's finalizers: before those that end the children


def is_helper() -> bool:
    """Return whether this process only helps a program: a worker of a data loader, or one that multiprocessing is still preparing.

    The latter imports the program's main module again, and all that it pickles: a Monitor made there was not meant for it.
    """
    module = sys.modules.get("multiprocessing.process")
    preparing = module is not None and getattr(module.current_process(), "_inheriting", False)
    return preparing or is_data_worker()


def forget_half_imported() -> None:
    """Remove modules that a thread of the parent was importing, so that the child can import them itself.

    That thread does not exist in the child: without this, the child would wait forever for its lock, or get half a module.
    gpulse imports in a thread, so that a program does not wait for it, and thus owes its children this.
    """
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    for name, reference in [*locks.items()]:
        owner = getattr(reference(), "owner", None)
        if owner is not None and owner != threading.get_ident():
            del locks[name]
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]


def at_fork(release: Callable[[], None]) -> None:
    """Call a function in forked children; registers it once per process."""
    if release not in _released:
        _released.append(release)
        os.register_at_fork(after_in_child=release)


def at_end(stop: Callable[[], object]) -> None:
    """Call `stop` when this process ends: at exit, and at the end of a process that multiprocessing started."""
    atexit.register(stop)
    if _is_multiprocessing_child():  # one that was forked ends with os._exit, which skips atexit
        from multiprocessing.util import Finalize

        Finalize(None, stop, exitpriority=_FIRST)


def forget_end(stop: Callable[[], object]) -> None:
    """Undo `at_end`; a finalizer that stays calls `stop`, which then does nothing."""
    atexit.unregister(stop)


def cell_number() -> int | None:
    """Return the number of the notebook cell, or of the line in IPython, that runs now; None outside of IPython."""
    module = sys.modules.get("IPython")
    try:
        shell = None if module is None else module.get_ipython()
        return None if shell is None else int(shell.execution_count)
    except Exception:  # noqa: BLE001  # another shell, or a half-imported one
        return None


def replace_earlier_cells(running: list[Monitor], cell: int | None, say: Callable[[str], None]) -> None:
    """In a notebook, stop the monitors that earlier cells left running: a cell that is run again would add one each time.

    `say` is called once in a process, and not for a monitor that nobody would miss.
    """
    global _said
    earlier = [one for one in running if one._cell is not None and one._cell != cell]
    for one in earlier:
        one.stop()
    if not _said and any(one._sinks or one._report for one in earlier):
        _said = True
        say(_REPLACED)


def reap(pid: int, seconds: float = 1.0) -> None:
    """Collect an ended process if it is a child of this one, as orphans of process 1 are; wait at most this long."""
    import time

    end = time.monotonic() + seconds
    try:
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < end:
            time.sleep(0.005)
    except OSError:
        pass  # somebody else's child, or already collected


def _is_multiprocessing_child() -> bool:
    module = sys.modules.get("multiprocessing.process")
    return module is not None and module.parent_process() is not None
