"""GPUs that a program has already: from the `gpulse run` around it, from Slurm or from Kubernetes. Nobody queues for what is theirs."""

from __future__ import annotations

import os

from ..errors import NoFreeGpu
from ..model.select import choose_gpus
from ..model.visible import by_uuid, granted
from ..store.queue import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..model.catalog import Gpu

PARENT = "GPULSE_CLAIM"  # the id of the claim that a program was started with


def allotted(
    gpus: Sequence[Gpu], count: int, words: Sequence[str] | None, environ: Mapping[str, str] = os.environ
) -> list[Gpu] | None:
    """Return `count` of the GPUs that were given to this program, None if none were; raise NoFreeGpu if they are fewer.

    `words` name the GPUs to choose from, as --gpu does.
    """
    whose, given = _given(gpus, environ)
    if given is None:
        return None
    if words is not None:
        named = {gpus[at].uuid for at in choose_gpus(gpus, words, environ)}
        given = [gpu for gpu in given if gpu.uuid in named]
    if len(given) < count:
        has = f"{len(given)} GPU{'' if len(given) == 1 else 's'}"
        raise NoFreeGpu(
            f"this program has {has} from {whose}, {count} requested;", "request fewer here, or more there."
        )
    return given[:count]


def _given(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> tuple[str, list[Gpu] | None]:
    ours = granted(gpus, environ)
    if word := environ.get(PARENT):
        mine = [
            entry for entry in entries() if entry.id == word and entry.uid == os.getuid() and entry.kind == "running"
        ]
        if mine:
            held = by_uuid(gpus, mine[0].gpus)
            return "the `gpulse run` around it", [gpu for gpu in held if _within(gpu, ours)]
    if environ.get("SLURM_JOB_ID") and (environ.get("SLURM_STEP_GPUS") or environ.get("SLURM_JOB_GPUS")):
        job = [gpus[at] for at in choose_gpus(gpus, ["job"], environ)]
        return "Slurm", [gpu for gpu in ours if _within(gpu, job)] or job
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes", ours
    return "", None


def _within(gpu: Gpu, gpus: Sequence[Gpu]) -> bool:
    """Return whether a GPU or MIG instance is one of these, or a part of one."""
    return any(gpu.uuid == other.uuid or gpu.uuid in {part.uuid for part in other.instances} for other in gpus)
