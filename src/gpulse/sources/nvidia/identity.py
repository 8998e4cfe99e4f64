"""The identity of an NVIDIA GPU, which never changes and is read once."""

from __future__ import annotations

from ctypes import byref

from .nvml import SUCCESS, gap_of
from .structures import PciInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...model.metric import Gap, Value
    from .nvml import Nvml

_TEXTS = {
    "name": "nvmlDeviceGetName",
    "uuid": "nvmlDeviceGetUUID",
    "serial": "nvmlDeviceGetSerial",
    "vbios": "nvmlDeviceGetVbiosVersion",
}
IDENTITY_KEYS = frozenset({*_TEXTS, "index", "vendor", "pci_bus_id", "architecture", "driver_version"})
_ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada", 9: "Hopper", 10: "Blackwell",
}  # fmt: skip


def identify(nvml: Nvml, handle: Any, index: int) -> tuple[dict[str, Value], dict[str, Gap]]:
    """Return the identity of a GPU and its gaps; an empty text from the driver counts as a gap."""
    values: dict[str, Value] = {"index": index, "vendor": "nvidia"}
    gaps: dict[str, Gap] = {}
    for key, function in _TEXTS.items():
        code, text = nvml.text(function, handle)
        _file(values, gaps, key, code, text)
    pci = PciInfo()
    name = "nvmlDeviceGetPciInfo_v3" if nvml.function("nvmlDeviceGetPciInfo_v3") else "nvmlDeviceGetPciInfo"
    code = nvml.call(name, handle, byref(pci))
    _file(values, gaps, "pci_bus_id", code, (pci.busId or pci.busIdLegacy).decode("ascii", "backslashreplace"))
    code, number = nvml.number("nvmlDeviceGetArchitecture", handle)
    _file(values, gaps, "architecture", code, _ARCHITECTURES.get(number, ""))
    return values, gaps


def _driver_version(nvml: Nvml) -> str:
    return nvml.text("nvmlSystemGetDriverVersion", size=80)[1]


def _cuda_version(nvml: Nvml) -> str:
    name = "nvmlSystemGetCudaDriverVersion_v2"
    code, cuda = nvml.number(name if nvml.function(name) else "nvmlSystemGetCudaDriverVersion")
    return f"{cuda // 1000}.{cuda % 1000 // 10}" if code == SUCCESS and cuda else ""


def _nvml_version(nvml: Nvml) -> str:
    return nvml.text("nvmlSystemGetNVMLVersion", size=80)[1]


# What reads the version of the driver, of the CUDA it supports, and of NVML; empty if the driver does not tell.
VERSIONS: dict[str, Callable[[Nvml], str]] = {
    "version": _driver_version,
    "cuda": _cuda_version,
    "nvml": _nvml_version,
}


def _file(values: dict[str, Value], gaps: dict[str, Gap], key: str, code: int, text: str) -> None:
    if code == SUCCESS and text:
        values[key] = text
    else:
        gaps[key] = gap_of(code) if code else "unsupported"
