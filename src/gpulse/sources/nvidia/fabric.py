"""The NVLink fabric a GPU belongs to: registration, cluster and health."""

from __future__ import annotations

from ctypes import byref

from .calls import Reader, absent, settle, versioned, word_of
from .nvml import ARGUMENT_VERSION_MISMATCH, FUNCTION_NOT_FOUND, INVALID_ARGUMENT, NAMES, NOT_SUPPORTED, SUCCESS
from .structures import Fabric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..base import Facts
    from .calls import Bound, Take
    from .nvml import Nvml

FABRIC_STATES = (None, "not_started", "in_progress", "completed")
FABRIC_HEALTH = (None, "healthy", "unhealthy", "limited_capacity")
MISCONFIGURATIONS = (
    None, "none", "incorrect_system_guid", "incorrect_chassis_serial_number", "no_partition", "insufficient_nvlinks",
    "incompatible_gpu_firmware", "invalid_location", "gpu_state_invalid",
)  # fmt: skip


def _bind_fabric(nvml: Nvml, handle: Any) -> Bound:
    call = nvml.function("nvmlDeviceGetGpuFabricInfoV")
    if call is None:
        return absent(tuple(_FABRIC))
    new, old = versioned(Fabric, 3), Fabric()
    old.version = Fabric.healthSummary.offset | 2 << 24  # version 3 added the summary

    def read(facts: Facts) -> int:
        out, code = new, call(handle, byref(new))
        if code in (INVALID_ARGUMENT, ARGUMENT_VERSION_MISMATCH, FUNCTION_NOT_FOUND):
            out, code = old, call(handle, byref(old))
        if code == SUCCESS and not out.state & 0xFF:
            code = NOT_SUPPORTED
        for key, take in _FABRIC.items():
            settle(facts, key, code, None if code else take(out))
        return code

    return read


def _when_complete(take: Take) -> Take:
    """A value that is valid only after the registration has completed."""
    return lambda out: take(out) if out.state & 0xFF == 3 else None


def _health(shift: int) -> Take:
    """A pair of bits: 1 is true, 2 is false, 0 is unknown."""
    return lambda out: {1: True, 2: False}.get(out.healthMask >> shift & 3)


def _cluster(out: Any) -> str:
    digits = bytes(out.clusterUuid).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_FABRIC: dict[str, Take] = {
    "fabric_state": lambda out: word_of(FABRIC_STATES)(out.state & 0xFF),
    "fabric_status": _when_complete(
        lambda out: NAMES.get(out.status, "SUCCESS" if not out.status else "UNKNOWN").lower()
    ),
    "fabric_clique": _when_complete(lambda out: int(out.cliqueId)),
    "fabric_cluster": _when_complete(_cluster),
    "fabric_health": lambda out: word_of(FABRIC_HEALTH)(out.healthSummary),
    "fabric_degraded": _health(0),
    "fabric_route_recovery": _health(2),
    "fabric_route_unhealthy": _health(4),
    "fabric_access_timeout": _health(6),
    "fabric_misconfiguration": lambda out: word_of(MISCONFIGURATIONS)(out.healthMask >> 8 & 15),
    "fabric_partition": _health(12),
}

FABRIC = Reader(tuple(_FABRIC), _bind_fabric)
