"""Why a metric has no values on these GPUs, in a few words."""

from __future__ import annotations

from ..model.catalog import GPU_METRICS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..model.catalog import Gpu

_COUNTED = frozenset({"Hopper", "Blackwell", "Rubin"})  # architectures with GPM, which measures activity


def is_absent(key: str, gpus: Iterable[Gpu]) -> bool:
    """Return whether none of these GPUs can have a metric; a GPU that does not respond tells nothing about it."""
    gaps = [gpu.gaps.get(key) for gpu in gpus if gpu.state == "ok"]
    return bool(gaps) and all(gap == "unsupported" for gap in gaps)


def why_absent(key: str, gpus: Iterable[Gpu]) -> str:
    """Return why none of these GPUs can have a metric: needs Hopper or newer; measured per MIG instance."""
    known = [gpu for gpu in gpus if gpu.state == "ok"]
    divided = [gpu for gpu in known if gpu.instances or gpu.mig_mode]
    if divided and len(divided) == len(known):
        parts = [part for gpu in divided for part in gpu.instances]
        if any(part.get(key) is not None for part in parts):
            return "measured per MIG instance"
        return "not available with MIG"
    nvidia = all((gpu.vendor or "nvidia") == "nvidia" for gpu in known)
    if GPU_METRICS[key].group == "activity" and nvidia and not any(gpu.architecture in _COUNTED for gpu in known):
        return "needs Hopper or newer"
    return "not supported by this GPU" if len(known) == 1 else "not supported by these GPUs"
