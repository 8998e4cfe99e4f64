"""Ranks: which process of a job samples on this machine."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .request import Greeting

_LOCAL = (
    "LOCAL_RANK",  # torchrun, accelerate, deepspeed, Lightning
    "SLURM_LOCALID",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "PMI_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "FLUX_TASK_LOCAL_ID",
)
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
