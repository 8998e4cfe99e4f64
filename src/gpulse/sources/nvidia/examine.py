"""Checks of `gpulse doctor` that do not use the driver: GPU, kernel driver, library, device files, namespace."""

from __future__ import annotations

import os

from ...model.snapshot import Check
from ..files import names
from .failure import has_nvidia_card, kernel_version, library_version
from .nvml import Nvml
from .sleep import power_states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..processes import LinuxMachine


def examine(machine: LinuxMachine, root: str = "") -> list[Check]:
    """Return what was found of NVIDIA's driver and GPUs on this machine, without waking a GPU."""
    return [_card(root), _kernel(root), _library(root), *_device_files(root), *_asleep(root), *_namespace(machine)]


def _card(root: str) -> Check:
    if has_nvidia_card(root):
        return Check("ok", "card", "found an NVIDIA GPU.")
    return Check(
        "note",
        "card",
        "no NVIDIA GPU found.",
        "It may be hidden in a VM or container; otherwise check that the card is seated and powered.",
    )


def _kernel(root: str) -> Check:
    if version := kernel_version(root):
        return Check("ok", "kernel driver", f"loaded, version {version}.")
    return Check(
        "warn", "kernel driver", "not loaded.", "Install the NVIDIA driver and load it with `sudo modprobe nvidia`."
    )


def _library(root: str) -> Check:
    try:
        Nvml()
    except OSError as error:
        return Check(
            "fail",
            "library",
            f"libnvidia-ml.so.1 cannot be loaded ({error}).",
            "Install the driver's user-space package.",
        )
    version, kernel = library_version(root), kernel_version(root)
    if version and kernel and version != kernel:
        return Check(
            "fail",
            "library",
            f"version {version} does not match the kernel driver {kernel}.",
            "Reboot after a driver upgrade.",
        )
    return Check("ok", "library", f"libnvidia-ml.so.1 loads{f', version {version}' if version else ''}.")


def _device_files(root: str) -> list[Check]:
    files = [name for name in names(f"{root}/dev") if name == "nvidiactl" or name.removeprefix("nvidia").isdecimal()]
    closed = [name for name in files if not os.access(f"{root}/dev/{name}", os.R_OK | os.W_OK)]
    if closed:
        remedy = "Give this user access, usually by adding it to the group that owns the files."
        return [Check("fail", "device files", f"/dev/{', /dev/'.join(closed)} cannot be opened by this user.", remedy)]
    return [Check("ok", "device files", f"{len(files)} found, all accessible.")] if files else []


def _asleep(root: str) -> list[Check]:
    sleeping = [slot for slot, asleep in power_states(root).items() if asleep]
    return (
        [Check("note", "asleep", f"{', '.join(sleeping)} is asleep, and gpulse does not wake it.")] if sleeping else []
    )


def _namespace(machine: LinuxMachine) -> list[Check]:
    if machine.isolated():
        remedy = "Start the container with --pid=host to see names and users of all processes."
        return [
            Check(
                "warn",
                "process ids",
                "this container has its own PID namespace, but the driver reports PIDs of the host.",
                remedy,
            )
        ]
    return []
