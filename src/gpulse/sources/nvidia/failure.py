"""Why the NVIDIA driver cannot be used and what to do about it, and the checks of `gpulse doctor` that do not use it."""

from __future__ import annotations

import os

from ...errors import SourceUnavailable
from ...model.snapshot import Check
from ..files import names, read_text
from .nvml import DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH, LIBRARY_NOT_FOUND, NO_PERMISSION, Nvml, error_name
from .unified import power_states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..processes import LinuxMachine

_PLACES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib")


def no_library(root: str = "") -> SourceUnavailable:
    """Explain a library that cannot be loaded."""
    if kernel_version(root):
        return SourceUnavailable(
            "NVIDIA: the kernel driver is loaded, but its library libnvidia-ml.so.1 was not found.",
            "In a container, start it with `--gpus all` (NVIDIA_DRIVER_CAPABILITIES must include utility);"
            " otherwise, install the package that contains nvidia-smi.",
            LIBRARY_NOT_FOUND,
        )
    if has_nvidia_card(root):
        return SourceUnavailable(
            "NVIDIA: found a GPU but no driver (libnvidia-ml.so.1 is missing).",
            "Install the NVIDIA driver of your distribution and load it with `modprobe nvidia`.",
            LIBRARY_NOT_FOUND,
        )
    return SourceUnavailable(
        "NVIDIA: found neither a driver library (libnvidia-ml.so.1) nor an NVIDIA GPU on the PCI bus.",
        'If this machine has a GPU, install the driver; to try gpulse without one, use source="demo".',
        LIBRARY_NOT_FOUND,
        option="If this machine has a GPU, install the driver; to try gpulse without one, use --demo.",
    )


def failed_start(code: int, root: str = "") -> SourceUnavailable:
    """Explain a library that loads but cannot be initialized."""
    kernel, library = kernel_version(root) or "unknown", library_version(root) or "unknown"
    message, remedy = {
        DRIVER_NOT_LOADED: (
            "the driver is installed but not loaded.",
            "Load it with `sudo modprobe nvidia`; if that fails, see `dmesg | grep -i nvrm`.",
        ),
        LIB_RM_VERSION_MISMATCH: (
            f"the kernel driver ({kernel}) and its library ({library}) have different versions, usually after an upgrade.",
            "Reboot, or reload the nvidia kernel modules.",
        ),
        NO_PERMISSION: (
            "the driver denied access (NO_PERMISSION).",
            "Check that this user may open /dev/nvidiactl and /dev/nvidia0, and that a container has access to the devices.",
        ),
    }.get(
        code,
        (
            f"the driver could not be initialized ({error_name(code)}, code {code}).",
            "Run `gpulse doctor` for details, and `nvidia-smi` to compare; if this is a container, restart it.",
        ),
    )
    return SourceUnavailable(f"NVIDIA: {message}", remedy, code)


def kernel_version(root: str = "") -> str:
    """Return the version of the loaded kernel driver, or an empty text."""
    for word in (read_text(f"{root}/proc/driver/nvidia/version") or "").split():
        if word[:1].isdecimal() and word.count(".") >= 1:
            return word
    return ""


def library_version(root: str = "") -> str:
    """Return the version in the library's file name, or an empty text."""
    for place in _PLACES:
        for name in names(f"{root}{place}"):
            version = name.removeprefix("libnvidia-ml.so.")
            if version != name and version.count("."):
                return version
    return ""


def has_nvidia_card(root: str = "") -> bool:
    """Return whether the PCI bus has an NVIDIA display or 3D controller."""
    folder = f"{root}/sys/bus/pci/devices"
    return any(
        read_text(f"{folder}/{slot}/vendor") == "0x10de"
        and (read_text(f"{folder}/{slot}/class") or "").startswith("0x03")
        for slot in names(folder)
    ) or os.path.exists(f"{root}/dev/dxg")


def examine(machine: LinuxMachine, root: str = "") -> list[Check]:
    """Return what was found of NVIDIA's driver and GPUs on this machine, without waking a GPU."""
    kernel = kernel_version(root)
    found = [
        Check("ok", "card", "found an NVIDIA GPU.")
        if has_nvidia_card(root)
        else Check(
            "note",
            "card",
            "no NVIDIA GPU found.",
            "It may be hidden in a VM or container; otherwise check that the card is seated and powered.",
        ),
        Check("ok", "kernel driver", f"loaded, version {kernel}.")
        if kernel
        else Check(
            "warn",
            "kernel driver",
            "not loaded.",
            "Install the NVIDIA driver and load it with `sudo modprobe nvidia`.",
        ),
        _library(kernel, library_version(root)),
    ]
    files = [name for name in names(f"{root}/dev") if name == "nvidiactl" or name.removeprefix("nvidia").isdecimal()]
    closed = [name for name in files if not os.access(f"{root}/dev/{name}", os.R_OK | os.W_OK)]
    if closed:
        remedy = "Give this user access, usually by adding it to the group that owns the files."
        text = f"/dev/{', /dev/'.join(closed)} cannot be opened by this user."
        found.append(Check("fail", "device files", text, remedy))
    elif files:
        found.append(Check("ok", "device files", f"{len(files)} found, all accessible."))
    if sleeping := [slot for slot, asleep in power_states(root).items() if asleep]:
        found.append(Check("note", "asleep", f"{', '.join(sleeping)} is asleep, and gpulse does not wake it."))
    if machine.isolated():
        text = "this container has its own PID namespace, but the driver reports PIDs of the host."
        remedy = "Start the container with --pid=host to see names and users of all processes."
        found.append(Check("warn", "process ids", text, remedy))
    return found


def _library(kernel: str, version: str) -> Check:
    try:
        Nvml()
    except OSError as error:
        text = f"libnvidia-ml.so.1 cannot be loaded ({error})."
        return Check("fail", "library", text, "Install the driver's user-space package.")
    if version and kernel and version != kernel:
        text = f"version {version} does not match the kernel driver {kernel}."
        return Check("fail", "library", text, "Reboot after a driver upgrade.")
    return Check("ok", "library", f"libnvidia-ml.so.1 loads{f', version {version}' if version else ''}.")
