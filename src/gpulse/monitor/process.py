"""What this process is to its program, a rank of a job or a helper, and how it begins and ends."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from ..torch import is_data_worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TextIO

    from .messages import Greeting
    from .monitor import Monitor

_LOCAL = (  # the first is that of torchrun, accelerate, deepspeed and Lightning
    "LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID",
    "FLUX_TASK_LOCAL_ID",
)  # fmt: skip
_SIZE = ("LOCAL_WORLD_SIZE", "LOCAL_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")


def local_rank(environ: Mapping[str, str]) -> int:
    """Return the local rank of this process within its job; 0 if unknown."""
    rank = _first(_LOCAL, environ)
    if rank is not None:
        return rank
    rank = _first(("RANK", "PMI_RANK"), environ)
    if rank is None:
        rank = _of_torch("get_rank") or 0  # spawned by the program itself: only the framework knows the rank
    size = _first(_SIZE, environ)
    if size:
        return rank % size
    # whoever does not start on the machine of rank 0 may be the only one on its own
    return rank if _is_here(environ.get("MASTER_ADDR", "")) else 0


def global_rank(environ: Mapping[str, str]) -> int | None:
    """Return the rank of this process in its job; None if it belongs to none."""
    rank = _first(
        ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PALS_RANKID", "FLUX_TASK_RANK"), environ
    )
    return _of_torch("get_rank") if rank is None else rank


def world_size(environ: Mapping[str, str]) -> int:
    """Return the number of processes of the job on all machines; 1 if unknown."""
    size = _first(("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "FLUX_JOB_SIZE"), environ)
    if size is None:
        size = _of_torch("get_world_size")
    return 1 if size is None or global_rank(environ) is None else size


def job_id(environ: Mapping[str, str], shared: bool) -> str:
    """Return an id that all processes of a job have, on one machine or, `shared`, on all of them."""
    from hashlib import blake2s

    names = ("SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
    parts = [environ.get(name, "") for name in names]
    if not shared and not any(parts[1:3]):  # of what started them; under srun that may be a shell for each
        parts.append(str(os.getppid()))
    return blake2s("/".join(parts).encode(), digest_size=6).hexdigest()


def launcher(environ: Mapping[str, str]) -> int | None:
    """Return the PID of the process that started all ranks of this job on this machine; None if there is only this one."""
    alone = _first(_LOCAL, environ) is not None or (_first(("WORLD_SIZE", "PMI_SIZE"), environ) or 1) <= 1
    if local_size(environ) <= 1 and alone:
        return None
    parent = os.getppid()
    return parent if parent > 1 else None


def local_size(environ: Mapping[str, str]) -> int:
    """Return the number of processes of the job on this machine; 1 if unknown."""
    return _first(_SIZE, environ) or 1


def doubts(greeting: Greeting, every_rank: bool, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield what the user should know about the GPUs that are sampled, one sentence each."""
    listed = environ.get("CUDA_VISIBLE_DEVICES", "").strip()
    if greeting.uuids == [] and listed and not listed.startswith("-"):
        yield (
            f"CUDA_VISIBLE_DEVICES={listed!r} matches no GPU of this machine; only the host and this program are sampled."
        )
    if not greeting.certain:
        yield (
            "this machine has different GPU models, and CUDA puts the fastest first: gpu0 may not be cuda:0. "
            "Set CUDA_DEVICE_ORDER=PCI_BUS_ID, or start the monitor after initializing CUDA."
        )
    size = local_size(environ)
    if not every_rank and greeting.uuids is not None and max(1, len(greeting.uuids)) < size:
        yield (
            f"this process sees {len(greeting.uuids)} GPU(s) and samples for all {size} processes of its job on this "
            'machine. Use Monitor(gpus="all") or ranks="all" to see the others.'
        )


def _of_torch(figure: str) -> int | None:
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(getattr(distributed, figure)())
    except Exception:  # noqa: BLE001, S110  # a partially initialized framework has no rank
        pass
    return None


def _is_here(address: str) -> bool:
    """Return whether an address is one of this machine; a name is compared, not looked up, which could take long."""
    if address in ("", "localhost", "::1") or address.startswith("127."):
        return True
    if address.partition(".")[0] == os.uname().nodename.partition(".")[0]:
        return True
    import socket

    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.inet_pton(kind, address)
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))  # possible with a machine's own addresses only; sends nothing
    except (OSError, ValueError):
        return False
    return True


def _first(names: tuple[str, ...], environ: Mapping[str, str]) -> int | None:
    for name in names:
        if (value := environ.get(name, "")).isdecimal():
            return int(value)
    return None


_REPLACED = (
    "gpulse: this monitor replaces one that an earlier cell left running; call stop() or use `with` to end a monitor."
)
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


def cell_number() -> int | None:
    """Return the number of the notebook cell, or of the line in IPython, that runs now; None outside of IPython."""
    module = sys.modules.get("IPython")
    try:
        shell = None if module is None else module.get_ipython()
        return None if shell is None else int(shell.execution_count)
    except Exception:  # noqa: BLE001  # another shell, or a half-imported one
        return None


class EarlierCells:
    """In a notebook, stops the monitors that earlier cells left running: a cell that is run again would add one each time."""

    def __init__(self) -> None:
        self._said = False

    def replace(self, running: list[Monitor], cell: int | None, say: Callable[[str], None]) -> None:
        """Stop those of other cells; `say` is called the first time, and not for a monitor that nobody would miss."""
        earlier = [one for one in running if one._cell is not None and one._cell != cell]
        for one in earlier:
            one.stop()
        if not self._said and any(one._sinks or one._report for one in earlier):
            self._said = True
            say(_REPLACED)


EARLIER_CELLS = EarlierCells()


def tell(text: object, stream: TextIO | None = None) -> None:
    """Print a line for the user to a stream of the program, by default stderr; whatever is wrong with either, nothing is raised."""
    try:
        found = stream or sys.stderr
        found.write(f"{text}\n")
        found.flush()
    except Exception:  # noqa: BLE001, S110  # closed, never opened, or the program's own
        pass


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
