"""Selection: metrics by name or alias, the set a consumer wants, GPUs by index, UUID or bus id, and the GPUs visible to a program.

Visible GPUs are those that the vendors' environment variables leave to a program, in the program's order. CUDA's rules are those of
driver 580, tested on an H200; they are stricter than CUDA's documentation.
"""

from __future__ import annotations

from ..errors import UnknownGpu, UnknownMetric
from ..units import gpus_text
from ..value import Value
from .catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
            chosen.append(_instance_named(gpus, word))
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


def _instance_named(gpus: Sequence[Gpu], word: str) -> tuple[int, str]:
    parts = [(at, str(part.uuid)) for at, gpu in enumerate(gpus) for part in gpu.instances if part.uuid]
    found = [(at, uuid) for at, uuid in parts if uuid.lower().startswith(word.lower())]
    exact = [one for one in found if one[1].lower() == word.lower()] or found
    if len(exact) == 1:
        return exact[0]
    if exact:
        raise UnknownGpu(f"{word!r} matches {len(exact)} MIG instances;", "give more of the UUID.")
    have = ", ".join(uuid for _, uuid in parts) or "no MIG instance"
    raise UnknownGpu(
        f"unknown MIG instance {word!r}{did_you_mean(word, [uuid for _, uuid in parts])}", f"this machine has {have}."
    )


def _positions(gpus: Sequence[Gpu], word: str) -> list[int]:
    first, dash, last = word.partition("-")
    if first.isdecimal() and (not dash or last.isdecimal()) and len(word) < _LONGEST:
        low, high = int(first), int(last if dash else first)
        found = [position for position, gpu in enumerate(gpus) if gpu.index is not None and low <= gpu.index <= high]
        if found and len(found) == high - low + 1:
            return found
    if found := [position for position, gpu in enumerate(gpus) if is_called(gpu, word, least=5)]:
        if len(found) == 1:
            return found
        raise UnknownGpu(f"{word!r} matches {len(found)} GPUs;", "give more of the UUID.")
    numbers = [f"{gpu.index:.0f}" for gpu in gpus if gpu.index is not None]
    have = f"{gpus_text(numbers)}{' only' if len(numbers) == 1 else ''}" if numbers else "no GPU"
    hint = did_you_mean(word, [str(gpu.uuid) for gpu in gpus] + [str(gpu.pci_bus_id) for gpu in gpus])
    raise UnknownGpu(f"unknown GPU {word!r}{hint}", f"this machine has {have}.")


def is_called(gpu: Gpu, word: str, least: int = 1) -> bool:
    """Tell whether a word means a GPU by `least` characters of its UUID or more, or by its PCI address."""
    lowered, uuid = word.lower(), (gpu.uuid or "").lower()
    if lowered and uuid.startswith((lowered, f"gpu-{lowered}")):
        return len(lowered) >= least or lowered == uuid
    return ":" in lowered and short_bus_id(gpu.pci_bus_id or "") == short_bus_id(lowered)


_DIGITS = "0123456789"
_LONGEST = 40  # characters of numbers; int() refuses thousands of digits with an exception
_HIP = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")  # the first one that is set is used


def visible(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Return the GPUs or the MIG instance that a program with this environment can see; the position is the ordinal.

    CUDA gives a process either one MIG instance or whole GPUs: if a GPU in the list has MIG, only its first instance is visible.
    Each vendor has its own variables. `order_is_certain` tells whether the order can be relied on.
    """
    found: list[Gpu] = []
    for vendor, own in _by_vendor(gpus).items():
        left = _LEFT.get(vendor, _all)(own, environ)
        found += _enumerated(left, own) if vendor == "nvidia" else left
    return found


def granted(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Return all GPUs and MIG instances that the variables name, that is, all that we may use; one program may see fewer."""
    return [gpu for vendor, own in _by_vendor(gpus).items() for gpu in _LEFT.get(vendor, _all)(own, environ)]


def visible_parts(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return what the variables name, in that order: the position of a GPU and the UUID of one MIG instance of it, or ""."""
    holder = {id(gpu): (at, "") for at, gpu in enumerate(gpus)}
    holder |= {id(part): (at, str(part.uuid or "")) for at, gpu in enumerate(gpus) for part in gpu.instances}
    return list(dict.fromkeys(holder[id(gpu)] for gpu in granted(gpus, environ)))


def order_is_certain(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> bool:
    """Return whether CUDA's order is certainly that of `visible`, by PCI bus.

    Unless CUDA_DEVICE_ORDER is PCI_BUS_ID, CUDA puts the fastest GPU first. This matters only if the GPUs differ, and
    only for a list of indices or no list.
    """
    listed = environ.get("CUDA_VISIBLE_DEVICES", "")
    names = {gpu.name for gpu in gpus if _vendor(gpu) == "nvidia"}
    return environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len(names) < 2 or listed.startswith(("GPU-", "MIG-"))


def selection(gpus: Sequence[Gpu]) -> dict[str, str]:
    """Return the environment variables that make exactly these GPUs visible to a program; all are of one vendor."""
    vendor = _vendor(gpus[0]) if gpus else ""
    if vendor == "amd":  # HIP counts what ROCR leaves, so an inherited list of HIP's must not apply
        return {"ROCR_VISIBLE_DEVICES": selectors(gpus), "HIP_VISIBLE_DEVICES": ",".join(map(str, range(len(gpus))))}
    if vendor == "intel":  # SYCL counts what the mask leaves, so an inherited selector must not apply
        left = ",".join(map(str, range(len(gpus))))
        return {"ZE_AFFINITY_MASK": selectors(gpus), "ONEAPI_DEVICE_SELECTOR": f"level_zero:{left}"}
    return {"CUDA_VISIBLE_DEVICES": selectors(gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if gpus else {}


def selectors(gpus: Iterable[Gpu]) -> str:
    """Return the names of GPUs as their vendor's variable takes them: UUIDs, or ordinals where a GPU has no UUID of its own."""
    return ",".join(_selector(gpu) for gpu in gpus)


def _selector(gpu: Gpu) -> str:
    if _vendor(gpu) == "nvidia" or gpu.ordinal is None:
        return str(gpu.uuid)
    own = _vendor(gpu) == "amd" and str(gpu.uuid).startswith("GPU-") and gpu.gpu_instance is None
    return str(gpu.uuid) if own else f"{gpu.ordinal:.0f}"


def by_uuid(gpus: Iterable[Gpu], uuids: Iterable[str]) -> list[Gpu]:
    """Return the GPUs or MIG instances with these UUIDs, with or without the prefix GPU- or MIG-; unknown ones are skipped."""
    named = {_hex(part.uuid): part for gpu in gpus for part in (*gpu.instances, gpu) if part.uuid}
    return [named[uuid] for uuid in dict.fromkeys(map(_hex, uuids)) if uuid in named]


def short_bus_id(bus_id: str) -> str:
    """Return a PCI address with the four-digit domain that Linux uses: 00000000:3B:00.0 and 3b:00.0 are both 0000:3b:00.0."""
    parts = bus_id.lower().split(":")
    domain = parts[0][-4:] if len(parts) == 3 else "0000"
    return ":".join([domain.rjust(4, "0"), *parts[-2:]])


def _by_vendor(gpus: Sequence[Gpu]) -> dict[str, list[Gpu]]:
    sorted_out: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        sorted_out.setdefault(_vendor(gpu), []).append(gpu)
    return sorted_out


def _vendor(gpu: Gpu) -> str:
    return gpu.vendor or "nvidia"


def _all(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    return list(gpus)


def _cuda(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Parse CUDA_VISIBLE_DEVICES: the first entry determines the kind of all, and an entry that matches nothing ends the list."""
    by_bus = sorted(gpus, key=lambda gpu: short_bus_id(gpu.pci_bus_id or ""))
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return by_bus
    if listed.startswith("MIG-"):
        return _chosen(listed, lambda entry: _visible_instance(by_bus, entry))
    if listed.startswith("GPU-"):
        return _chosen(listed, lambda entry: _with_uuid(by_bus, entry, "GPU-"))
    return _chosen(listed, lambda entry: _with_number(by_bus, entry))


def _enumerated(left: Sequence[Gpu], gpus: Sequence[Gpu]) -> list[Gpu]:
    """Return what CUDA makes of a list: the first MIG instance if there is any, else the GPUs without MIG."""
    instances = {id(part) for gpu in gpus for part in gpu.instances}
    for gpu in left:
        if id(gpu) in instances or gpu.instances:
            return [gpu.instances[0] if gpu.instances else gpu]
    return [gpu for gpu in left if not gpu.mig_mode]


def _hip(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Parse ROCm's two levels: ROCR_VISIBLE_DEVICES hides GPUs, and HIP_VISIBLE_DEVICES counts the remaining ones.

    The partitions of a GPU count in its place. Where KFD tells the order, a GPU that it does not list cannot compute.
    """
    whole = [part for gpu in gpus for part in gpu.instances or (gpu,)]
    ordered = sorted((gpu for gpu in whole if gpu.ordinal is not None), key=lambda gpu: gpu.ordinal or 0) or whole
    left = ordered
    if (first := environ.get("ROCR_VISIBLE_DEVICES")) is not None:
        left = _chosen(
            first, lambda entry: _with_uuid(ordered, entry, "GPU-") or _with_number(ordered, entry), twice=False
        )
    listed = next((environ[name] for name in _HIP if name in environ), None)
    return left if listed is None else _chosen(listed, lambda entry: _with_number(left, entry), twice=False)


def _level_zero(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Parse ZE_AFFINITY_MASK, which hides but never reorders; 1.0 is a tile of GPU 1 and selects that GPU.

    If ZE_FLAT_DEVICE_HIERARCHY makes tiles count as devices, the indices are those of tiles, which are unknown here.
    """
    mask = environ.get("ZE_AFFINITY_MASK")
    if not mask or mask == "default":
        return list(gpus)
    asked = {_number(entry.partition(".")[0]) for entry in mask.split(",")}
    return [gpu for at, gpu in enumerate(gpus) if at in asked]


_LEFT: dict[str, Callable[[Sequence[Gpu], Mapping[str, str]], list[Gpu]]] = {
    "nvidia": _cuda, "amd": _hip, "intel": _level_zero,
}  # fmt: skip


def _chosen(listed: str, find: Callable[[str], Gpu | None], twice: bool = True) -> list[Gpu]:
    """Return what the entries name, up to the first that matches nothing. A GPU named twice empties CUDA's list and ends other lists."""
    chosen: list[Gpu] = []
    for entry in listed.split(","):
        gpu = find(entry)
        if gpu is None:
            break
        if any(gpu is other for other in chosen):
            return [] if twice else chosen
        chosen.append(gpu)
    return chosen


def _with_number(gpus: Sequence[Gpu], entry: str) -> Gpu | None:
    at = _number(entry)
    return gpus[at] if at is not None and 0 <= at < len(gpus) else None


def _number(entry: str) -> int | None:
    """Parse a number like C's strtol: leading spaces and trailing text are ignored."""
    text = entry.lstrip()
    sign, text = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    digits = text[: len(text) - len(text.lstrip(_DIGITS))]
    return int(sign + digits[:_LONGEST]) if digits else None  # longer numbers are no indices


def _with_uuid(gpus: Iterable[Gpu], entry: str, prefix: str) -> Gpu | None:
    """Return the one whose UUID starts with this text; after the prefix, dashes, case and text after a full UUID are ignored."""
    word = _hex(entry) if entry.startswith(prefix) else ""
    known = [(gpu, _hex(gpu.uuid)) for gpu in gpus if gpu.uuid]
    fits = [gpu for gpu, uuid in known if word and uuid and (uuid.startswith(word) or word.startswith(uuid))]
    return fits[0] if len(fits) == 1 else None


def _visible_instance(gpus: Iterable[Gpu], entry: str) -> Gpu | None:
    if not entry.startswith("MIG-GPU-"):
        return _with_uuid([part for gpu in gpus for part in gpu.instances], entry, "MIG-")
    # format of drivers before 470: MIG-GPU-uuid/gpu instance/compute instance
    uuid, _, place = entry.removeprefix("MIG-").partition("/")
    gpu = _with_uuid(gpus, uuid, "GPU-")
    ids = [_number(word) for word in place.split("/")]
    fits = [part for part in (gpu.instances if gpu else ()) if [part.gpu_instance, part.compute_instance] == ids]
    return fits[0] if fits else None


def _hex(uuid: str) -> str:
    """Return the digits of a UUID without its prefix."""
    return uuid.removeprefix("MIG-").removeprefix("GPU-").replace("-", "").lower()
