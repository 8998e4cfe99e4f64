"""Visible GPUs: what the vendors' variables leave to a program, in the order in which it counts them.

CUDA's rules are those of driver 580, tried value by value on an H200; they are stricter than its guide.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .catalog import Gpu

_DIGITS = "0123456789"
_HIP = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")  # the first that is set counts


def visible(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Return the GPUs, or the MIG instance, that a program started with this environment sees; the place is its ordinal.

    CUDA gives a process one MIG instance and then no whole GPU: of a list with a divided GPU, its first instance is all.
    Each vendor's GPUs follow its own variables. `order_is_certain` says whether the places can be relied on.
    """
    found: list[Gpu] = []
    for vendor, own in _by_vendor(gpus).items():
        left = _LEFT.get(vendor, _all)(own, environ)
        found += _enumerated(left, own) if vendor == "nvidia" else left
    return found


def granted(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Return the GPUs and MIG instances that the variables name, of which a program may see fewer: all that is ours to use."""
    return [gpu for vendor, own in _by_vendor(gpus).items() for gpu in _LEFT.get(vendor, _all)(own, environ)]


def visible_positions(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[int]:
    """Return the positions of the GPUs that the variables name, in their order; a MIG instance stands for its GPU."""
    holder = {id(part): at for at, gpu in enumerate(gpus) for part in (gpu, *gpu.instances)}
    return list(dict.fromkeys(holder[id(gpu)] for gpu in granted(gpus, environ)))


def order_is_certain(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> bool:
    """Tell whether CUDA counts as `visible` does: by bus.

    Unless CUDA_DEVICE_ORDER is PCI_BUS_ID it begins with the fastest GPU, which only matters where they differ, and
    only to a list of numbers or none.
    """
    listed = environ.get("CUDA_VISIBLE_DEVICES", "")
    names = {gpu.name for gpu in gpus if _vendor(gpu) == "nvidia"}
    return environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len(names) < 2 or listed.startswith(("GPU-", "MIG-"))


def by_uuid(gpus: Iterable[Gpu], uuids: Iterable[str]) -> list[Gpu]:
    """Return the GPUs or MIG instances with these UUIDs, with or without GPU- or MIG- before them; unknown ones are left out."""
    named = {_hex(part.uuid): part for gpu in gpus for part in (*gpu.instances, gpu) if part.uuid}
    return [named[uuid] for uuid in dict.fromkeys(map(_hex, uuids)) if uuid in named]


def short_bus_id(bus_id: str) -> str:
    """Return a PCI address with the four-digit domain Linux uses: 00000000:3B:00.0 and 3b:00.0 are both 0000:3b:00.0."""
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
    """Read CUDA_VISIBLE_DEVICES: the first entry says of which kind all are, and one that fits nothing ends the list."""
    by_bus = sorted(gpus, key=lambda gpu: short_bus_id(gpu.pci_bus_id or ""))
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return by_bus
    if listed.startswith("MIG-"):
        return _chosen(listed, lambda entry: _instance(by_bus, entry))
    if listed.startswith("GPU-"):
        return _chosen(listed, lambda entry: _with_uuid(by_bus, entry, "GPU-"))
    return _chosen(listed, lambda entry: _with_number(by_bus, entry))


def _enumerated(left: Sequence[Gpu], gpus: Sequence[Gpu]) -> list[Gpu]:
    """Return what CUDA makes of a list: the first MIG instance where there is any, else the GPUs that are not divided."""
    instances = {id(part) for gpu in gpus for part in gpu.instances}
    for gpu in left:
        if id(gpu) in instances or gpu.instances:
            return [gpu.instances[0] if gpu.instances else gpu]
    return [gpu for gpu in left if not gpu.mig_mode]


def _hip(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Read ROCm's two levels: ROCR_VISIBLE_DEVICES hides from all, and HIP counts what is left."""
    left = list(gpus)
    if (first := environ.get("ROCR_VISIBLE_DEVICES")) is not None:
        left = _chosen(first, lambda entry: _with_uuid(gpus, entry, "GPU-") or _with_number(gpus, entry), twice=False)
    listed = next((environ[name] for name in _HIP if name in environ), None)
    return left if listed is None else _chosen(listed, lambda entry: _with_number(left, entry), twice=False)


def _level_zero(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Read ZE_AFFINITY_MASK, which hides and never reorders; 1.0 is a tile of GPU 1 and stands for the GPU.

    Where ZE_FLAT_DEVICE_HIERARCHY makes tiles count as devices, its numbers are those of tiles, which are not known here.
    """
    mask = environ.get("ZE_AFFINITY_MASK")
    if not mask or mask == "default":
        return list(gpus)
    asked = {_number(entry.partition(".")[0]) for entry in mask.split(",")}
    return [gpu for at, gpu in enumerate(gpus) if at in asked]


_LEFT: dict[str, Callable[[Sequence[Gpu], Mapping[str, str]], list[Gpu]]] = {
    "nvidia": _cuda,
    "amd": _hip,
    "intel": _level_zero,
}


def _chosen(listed: str, find: Callable[[str], Gpu | None], twice: bool = True) -> list[Gpu]:
    """Return what the entries name, up to the first that names nothing. A GPU named `twice` empties CUDA's list, and ends others."""
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
    """Read a number as C's strtol does: spaces before and anything after it are skipped."""
    text = entry.lstrip()
    sign, text = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    digits = text[: len(text) - len(text.lstrip(_DIGITS))][:20]  # more is no GPU's number, and int() has its own limit
    return int(sign + digits) if digits else None


def _with_uuid(gpus: Iterable[Gpu], entry: str, prefix: str) -> Gpu | None:
    """Return the one whose UUID begins like this; dashes and case do not count after the prefix, nor what follows a whole UUID."""
    word = _hex(entry) if entry.startswith(prefix) else ""
    known = [(gpu, _hex(gpu.uuid)) for gpu in gpus if gpu.uuid]
    fits = [gpu for gpu, uuid in known if word and uuid and (uuid.startswith(word) or word.startswith(uuid))]
    return fits[0] if len(fits) == 1 else None


def _instance(gpus: Iterable[Gpu], entry: str) -> Gpu | None:
    if not entry.startswith("MIG-GPU-"):
        return _with_uuid([part for gpu in gpus for part in gpu.instances], entry, "MIG-")
    # as drivers before 470 wrote it: MIG-GPU-uuid/gpu instance/compute instance
    uuid, _, place = entry.removeprefix("MIG-").partition("/")
    gpu = _with_uuid(gpus, uuid, "GPU-")
    ids = [_number(word) for word in place.split("/")]
    fits = [part for part in (gpu.instances if gpu else ()) if [part.gpu_instance, part.compute_instance] == ids]
    return fits[0] if fits else None


def _hex(uuid: str) -> str:
    """Return the digits of a UUID, whatever it is called before them."""
    return uuid.removeprefix("MIG-").removeprefix("GPU-").replace("-", "").lower()
