"""Query torch state: which GPU each ordinal is, and what its allocator holds. Only uses torch if the program already does."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def cuda() -> Any:
    """Return torch.cuda if the program has initialized CUDA through it, else None; never initializes or imports anything."""
    torch = sys.modules.get("torch")
    found = getattr(torch, "cuda", None)
    try:
        return found if found is not None and found.is_initialized() else None
    except Exception:  # noqa: BLE001  # torch may be half imported by another thread
        return None


def part_of_torch(name: str) -> Any:
    """Import and return a module of torch, which the program has loaded: "utils.flop_counter"."""
    import importlib

    return importlib.import_module(f"torch.{name}")


def ordinals() -> list[str] | None:
    """Return the UUIDs of the GPUs by CUDA ordinal; None if torch has not initialized CUDA or is too old to tell."""
    found = cuda()
    if found is None:
        return None
    try:
        uuids = [str(found.get_device_properties(at).uuid) for at in range(found.device_count())] or None
        return uuids if uuids is None or not _is_rocm() else [_written(uuid) for uuid in uuids]
    except Exception:  # noqa: BLE001  # torch before 2.5 has no uuid
        return None


def busiest_device() -> tuple[int, int] | None:
    """Return the device of which this process holds most memory, and the peak bytes of its tensors there; None if it uses none."""
    sizes = [reserved for _, reserved in memory_by_device()]
    if not any(sizes):
        return None
    device = sizes.index(max(sizes))
    try:
        return device, int(sys.modules["torch"]._C._cuda_memoryStats(device)["allocated_bytes"]["all"]["peak"])
    except Exception:  # noqa: BLE001  # an error in torch must not affect the monitoring
        return None


def is_data_worker() -> bool:
    """Return whether this process is a worker of torch's DataLoader."""
    data = sys.modules.get("torch.utils.data")
    try:
        return data is not None and data.get_worker_info() is not None
    except Exception:  # noqa: BLE001  # torch may be half imported by another thread
        return False


def _is_rocm() -> bool:
    return bool(getattr(getattr(sys.modules.get("torch"), "version", None), "hip", None))


def _written(uuid: str) -> str:
    """Return the UUID as ROCm writes it: HIP's 16 bytes are themselves the digits of the number, as text."""
    return bytes.fromhex(uuid.replace("-", "")).decode("ascii")


def memory_by_device() -> list[tuple[int, int]]:
    """Return the bytes of tensors and the bytes held by torch's allocator, by device; empty if torch has not initialized CUDA.

    Asks torch's own allocator only, never the driver: another allocator's numbers would come from there.
    """
    found = cuda()
    try:
        if found is None or found.get_allocator_backend() != "native":
            return []
        stats = [sys.modules["torch"]._C._cuda_memoryStats(device) for device in range(found.device_count())]
        keys = ("allocated_bytes", "reserved_bytes")
        return [(int(one[keys[0]]["all"]["current"]), int(one[keys[1]]["all"]["current"])) for one in stats]
    except Exception:  # noqa: BLE001  # an error in torch must not affect the monitoring
        return []


def allocated(found: Any) -> tuple[int, int, int] | None:
    """Return the bytes of tensors on the current device, now and at their peak, and the bytes held by torch's allocator.

    torch's public functions flatten a dictionary of a hundred entries first, which takes longer than the rest of a measurement.
    """
    try:
        device = found.current_device()
        try:
            stats = sys.modules["torch"]._C._cuda_memoryStats(device)
            tensors = stats["allocated_bytes"]["all"]
            return int(tensors["current"]), int(tensors["peak"]), int(stats["reserved_bytes"]["all"]["current"])
        except (AttributeError, KeyError):
            now, most = int(found.memory_allocated(device)), int(found.max_memory_allocated(device))
            return now, most, int(found.memory_reserved(device))
    except Exception:  # noqa: BLE001  # an error in torch must not affect the program's call
        return None
