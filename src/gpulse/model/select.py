"""Selection: find metrics by name or alias and GPUs by index, UUID or bus id; and the set of metrics a consumer wants."""

from __future__ import annotations

from ..errors import UnknownGpu, UnknownMetric
from ..value import Value
from .catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from .visible import short_bus_id, visible_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .catalog import Gpu
    from .metric import Metric


class Wanted(Value, frozen=True):
    """The metrics a consumer wants of GPUs, processes and the host; a source reads nothing else. None skips processes or host.

    `serving`: whether model servers are asked how they are doing.
    """

    gpu: frozenset[str]
    process: frozenset[str] | None
    host: frozenset[str] | None
    serving: bool

    def __init__(
        self,
        gpu: Iterable[str] = (),
        process: Iterable[str] | None = None,
        host: Iterable[str] | None = None,
        serving: bool = False,
    ) -> None:
        assign = object.__setattr__
        assign(self, "gpu", frozenset(gpu))
        assign(self, "process", None if process is None else frozenset(process))
        assign(self, "host", None if host is None else frozenset(host))
        assign(self, "serving", serving)

    def __or__(self, other: Wanted) -> Wanted:
        process, host = _union(self.process, other.process), _union(self.host, other.host)
        return Wanted(self.gpu | other.gpu, process, host, self.serving or other.serving)

    def without(self, gpu: Iterable[str]) -> Wanted:
        """Return the same without these metrics of GPUs."""
        return Wanted(self.gpu.difference(gpu), self.process, self.host, self.serving)

    def without_commands(self) -> Wanted:
        """Return the same without the command lines of processes."""
        return Wanted(self.gpu, (self.process or frozenset()) - {"command"}, self.host, self.serving)


def _union(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if one is None or other is None:
        return one if other is None else other
    return one | other


# All metrics except the details, which are read only when named.
EVERYTHING = Wanted(
    (key for key, metric in GPU_METRICS.items() if metric.group != "details"),
    PROCESS_METRICS,
    (key for key, metric in HOST_METRICS.items() if metric.group != "details"),
    serving=True,
)


def metric_named(name: str, metrics: Mapping[str, Metric] = GPU_METRICS) -> Metric:
    """Return the metric with this key or nvidia-smi name; raise UnknownMetric with similar names."""
    key = name.strip().lower()
    if key in metrics:
        return metrics[key]
    for metric in metrics.values():
        if key in map(str.lower, metric.smi):
            return metric
    known = [*metrics, *(alias for metric in metrics.values() for alias in metric.smi)]
    owner = "Host" if metrics is HOST_METRICS else "Process" if metrics is PROCESS_METRICS else "Gpu"
    raise UnknownMetric(
        f"unknown metric {name!r}{did_you_mean(key, known)}",
        f"gpulse.{owner}.metrics() lists them.",
        option="see `gpulse metrics`.",
    )


def nearest(word: str, words: Iterable[str]) -> list[str]:
    """Return up to three of the words that are most similar to this one."""
    import difflib  # takes 6 ms, and only mistakes need it

    return difflib.get_close_matches(word, list(words), n=3, cutoff=0.55)


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" with the most similar of the words, or nothing if none is similar."""
    close = [other for other in nearest(word, words) if other != word]
    return f" (did you mean {close[0]!r}?)" if close else ""


def choose_gpus(gpus: Sequence[Gpu], words: Sequence[str], environ: Mapping[str, str]) -> list[int]:
    """Return the positions of the GPUs named by index, range (0-3), UUID prefix, bus id, `visible`, `job` or `all`, in the order named.

    Raises UnknownGpu for a name that matches none. A GPU named twice is returned once; a MIG instance counts as its GPU.
    """
    return list(dict.fromkeys(position for position, _ in choose_parts(gpus, words, environ)))


def choose_parts(gpus: Sequence[Gpu], words: Sequence[str], environ: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return what these names mean, as `choose_gpus` does: the position of a GPU and the UUID of one MIG instance of it, or ""."""
    chosen: list[tuple[int, str]] = []
    for word in map(str.strip, words):
        if word.lower() == "visible":
            chosen += visible_parts(gpus, environ)
        elif word.lower() == "all":
            chosen += [(position, "") for position in range(len(gpus))]
        elif word.lower() == "job":
            chosen += [(position, "") for position in _of_job(gpus, environ)]
        elif word.lower().startswith("mig-"):
            chosen.append(_instance(gpus, word))
        else:
            chosen += [(position, "") for position in _positions(gpus, word)]
    return list(dict.fromkeys(chosen))


def _of_job(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[int]:
    """Return the positions of the GPUs that Slurm gave to this job or step."""
    listed = environ.get("SLURM_STEP_GPUS") or environ.get("SLURM_JOB_GPUS")
    if not listed:
        raise UnknownGpu("unknown GPU 'job': SLURM_JOB_GPUS is not set;", "name the GPUs by index or UUID.")
    # Slurm counts all GPUs of the node. Where it hides those of others, the driver counts only what is left, which is the job's.
    try:
        return [position for word in listed.split(",") for position in _positions(gpus, word)]
    except UnknownGpu:
        return list(range(len(gpus)))


def _instance(gpus: Sequence[Gpu], word: str) -> tuple[int, str]:
    parts = [(at, str(part.uuid)) for at, gpu in enumerate(gpus) for part in gpu.instances if part.uuid]
    found = [(at, uuid) for at, uuid in parts if uuid.lower().startswith(word.lower())]
    exact = [one for one in found if one[1].lower() == word.lower()] or found
    if len(exact) == 1:
        return exact[0]
    if exact:
        raise UnknownGpu(f"{word!r} matches {len(exact)} MIG instances;", "give more of the UUID.")
    have = ", ".join(uuid for _, uuid in parts) or "none"
    raise UnknownGpu(
        f"unknown MIG instance {word!r}{did_you_mean(word, [uuid for _, uuid in parts])}", f"this machine has {have}."
    )


def _positions(gpus: Sequence[Gpu], word: str) -> list[int]:
    first, dash, last = word.partition("-")
    if first.isdecimal() and (not dash or last.isdecimal()):
        low, high = int(first), int(last if dash else first)
        found = [position for position, gpu in enumerate(gpus) if gpu.index is not None and low <= gpu.index <= high]
        if found and len(found) == high - low + 1:
            return found
    if found := [position for position, gpu in enumerate(gpus) if _is_called(gpu, word)]:
        if len(found) == 1:
            return found
        raise UnknownGpu(f"{word!r} matches {len(found)} GPUs;", "give more of the UUID.")
    have = ", ".join(f"{gpu.index:.0f}" for gpu in gpus if gpu.index is not None)
    hint = did_you_mean(word, [str(gpu.uuid) for gpu in gpus] + [str(gpu.pci_bus_id) for gpu in gpus])
    raise UnknownGpu(f"unknown GPU {word!r}{hint}", f"this machine has {have or 'none'}.")


def _is_called(gpu: Gpu, word: str) -> bool:
    lowered = word.lower()
    if not lowered:
        return False
    if (gpu.uuid or "").lower().startswith(lowered) or (gpu.uuid or "").lower().startswith(f"gpu-{lowered}"):
        return len(lowered) > 4 or lowered == (gpu.uuid or "").lower()
    return ":" in lowered and short_bus_id(gpu.pci_bus_id or "") == short_bus_id(lowered)
