"""How nvidia-smi fails: its sentence on standard output and its exit code; and the options that change the machine."""

from __future__ import annotations

from ....errors import DriverTimeout, GpulseError, SourceUnavailable

INVALID, UNAVAILABLE, NOT_FOUND, NOT_LOADED, NO_LIBRARY, LOST, OTHER = 2, 3, 6, 9, 12, 15, 255
_NO_PERMISSION, _MISMATCH = 4, 18
_DRIVER = {
    NOT_LOADED: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA"
    " driver is installed and running.\n",
    NO_LIBRARY: "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver"
    " is properly installed and present in your system.\nPlease also try adding directory that contains libnvidia-ml.so to your"
    " system PATH.",
    _NO_PERMISSION: "Failed to initialize NVML: Insufficient Permissions",
    _MISMATCH: "Failed to initialize NVML: Driver/library version mismatch",
}


class SmiExit(GpulseError):
    """nvidia-smi ends with `text` on standard output, or on standard error where the words are gpulse's own."""

    def __init__(self, text: str, code: int, *, own: bool = False) -> None:
        super().__init__(text)
        self.exit_code = code
        self.own = own


def unrecognized(word: str, *, asked: bool) -> SmiExit:
    """Return the failure for a word that is no option; `asked` says whether a query came before it."""
    if asked:
        return SmiExit(f"ERROR: Option {word} is not recognized. Please run 'nvidia-smi -h' for help.\n", INVALID)
    return SmiExit(f"ERROR: Option {word} is not recognized. Please run 'nvidia-smi -h'.\n", OTHER)


def without_value(word: str) -> SmiExit:
    """Return the failure for an option without its value."""
    return SmiExit(f"ERROR: Option {word} is missing its value. Please run 'nvidia-smi -h' for help.\n", OTHER)


def misplaced(word: str) -> SmiExit:
    """Return the failure for an option of another command."""
    return SmiExit(
        f"ERROR: Option {word} is not valid for this command. Please run 'nvidia-smi -h' for help.\n", INVALID
    )


def no_devices() -> SmiExit:
    """Return the failure for an -i that fits no GPU."""
    return SmiExit("No devices were found", NOT_FOUND)


def no_driver(error: SourceUnavailable) -> SmiExit:
    """Return what nvidia-smi says when the driver does not start; gpulse's own remedy goes to standard error."""
    if isinstance(error, DriverTimeout):
        return SmiExit("Failed to initialize NVML: Timeout", OTHER)
    code = error.driver_code or NOT_LOADED
    if code in _DRIVER:
        return SmiExit(_DRIVER[code], code)
    return SmiExit("Failed to initialize NVML: Unknown Error", OTHER)


def lost(name: str) -> str:
    """Return the sentence about a GPU that fell off the bus."""
    return f"Unable to determine the device handle for GPU {name}: GPU is lost.  Reboot the system to recover this GPU"


# Options that change the state of a GPU or unit; True where a value follows.
CHANGES = {
    "-pm": True, "--persistence-mode": True, "-e": True, "--ecc-config": True, "-p": True, "--reset-ecc-errors": True,
    "-c": True, "--compute-mode": True, "--gom": True, "-r": False, "--gpu-reset": False, "-vm": True, "--virt-mode": True,
    "-lgc": True, "--lock-gpu-clocks": True, "-m": True, "--mode": True, "-rgc": False, "--reset-gpu-clocks": False,
    "-lmc": True, "--lock-memory-clocks": True, "-rmc": False, "--reset-memory-clocks": False,
    "-lmcd": True, "--lock-memory-clocks-deferred": True, "-rmcd": False, "--reset-memory-clocks-deferred": False,
    "-ac": True, "--applications-clocks": True, "-rac": False, "--reset-applications-clocks": False,
    "-pl": True, "--power-limit": True, "-sc": True, "--scope": True, "-cc": True, "--cuda-clocks": True,
    "-am": True, "--accounting-mode": True, "-caa": False, "--clear-accounted-apps": False,
    "-acp": True, "--applications-clocks-permission": True, "-dm": True, "--driver-model": True, "-fdm": True,
    "--force-driver-model": True, "--auto-boost-default": True, "--auto-boost-permission": True,
    "-mig": True, "--multi-instance-gpu": True, "-gtt": True, "--gpu-target-temp": True,
    "-den": True, "--dram-encryption": True, "--set-hostname": True, "-t": True, "--toggle-led": True,
}  # fmt: skip
