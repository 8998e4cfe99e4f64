"""What this program itself uses of each GPU: its memory and SM share as the driver reports them, and the memory of torch's allocator."""

from __future__ import annotations

import os

from ..model.catalog import PROCESS_METRICS
from ..model.visible import by_uuid
from ..torch import memory_by_device, ordinals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..model.catalog import Gpu

_READ = {f"process_{key}": key for key in ("memory_used", "sm_utilization")}
TEXTS = {
    "process_memory_used": "GPU memory held by this process, in bytes.",
    "process_sm_utilization": f"{PROCESS_METRICS['sm_utilization'].help} Of this process, in percent.",
    "torch_allocated": "Memory of this process' tensors in torch's allocator, in bytes.",
    "torch_reserved": "Memory that torch's allocator of this process holds, used or not, in bytes.",
}


class OwnTags:
    """Yields what this process uses, by GPU; what it does not use and what cannot be read is left out.

    `numbers` are the program's ordinals by UUID; None if they are not known.
    """

    def __init__(self, numbers: Mapping[str, int] | None) -> None:
        self._numbers = numbers
        self._devices: list[str] | None = None  # UUIDs by torch's ordinal
        self._used: set[int] = set()  # torch's ordinals that had memory once: a 0 there is a value

    def of(self, gpu: Gpu) -> Iterator[tuple[str, float]]:
        """Yield what the driver says of this process, by key."""
        own = [process for process in gpu.all_processes() if process.pid == os.getpid()]
        for name, key in _READ.items():
            known = [value for process in own if isinstance(value := process.get(key), (int, float))]
            if known:
                yield name, sum(known)

    def of_torch(self, gpus: Iterable[Gpu]) -> dict[str, tuple[int, int]]:
        """Return what torch has allocated and reserved, by UUID of the GPU; empty if it has not initialized CUDA."""
        there, found = [*gpus], {}
        for device, sizes in enumerate(memory_by_device()):
            if sizes[1] or device in self._used:
                self._used.add(device)
                if (uuid := self._uuid(device, there)) is not None:
                    found[uuid] = sizes
        return found

    def _uuid(self, device: int, gpus: list[Gpu]) -> str | None:
        if self._devices is None:
            self._devices = ordinals() or []
        if device < len(self._devices):
            return next((gpu.uuid for gpu in by_uuid(gpus, [self._devices[device]])), None)
        return next((uuid for uuid, number in (self._numbers or {}).items() if number == device), None)
