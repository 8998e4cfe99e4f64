"""The NVML library: loads it, calls functions by name, and turns return codes into gaps.

A private table instead of nvidia-ml-py saves 25 ms at start (docs/decisions/0001);
the tests compare every structure and constant here with nvidia-ml-py's.
"""

from __future__ import annotations

import ctypes
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...model.metric import Gap

SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION = 0, 1, 2, 3, 4
NOT_FOUND, INSUFFICIENT_SIZE, DRIVER_NOT_LOADED, TIMEOUT, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = 6, 7, 9, 10, 12, 13
GPU_IS_LOST, RESET_REQUIRED, LIB_RM_VERSION_MISMATCH, ARGUMENT_VERSION_MISMATCH, DEPRECATED = 15, 16, 18, 25, 26

NAMES = {
    1: "UNINITIALIZED", 2: "INVALID_ARGUMENT", 3: "NOT_SUPPORTED", 4: "NO_PERMISSION", 5: "ALREADY_INITIALIZED",
    6: "NOT_FOUND", 7: "INSUFFICIENT_SIZE", 8: "INSUFFICIENT_POWER", 9: "DRIVER_NOT_LOADED", 10: "TIMEOUT",
    11: "IRQ_ISSUE", 12: "LIBRARY_NOT_FOUND", 13: "FUNCTION_NOT_FOUND", 14: "CORRUPTED_INFOROM", 15: "GPU_IS_LOST",
    16: "RESET_REQUIRED", 17: "OPERATING_SYSTEM", 18: "LIB_RM_VERSION_MISMATCH", 19: "IN_USE", 20: "MEMORY",
    21: "NO_DATA", 22: "VGPU_ECC_NOT_SUPPORTED", 23: "INSUFFICIENT_RESOURCES", 24: "FREQ_NOT_SUPPORTED",
    25: "ARGUMENT_VERSION_MISMATCH", 26: "DEPRECATED", 27: "NOT_READY", 28: "GPU_NOT_FOUND", 29: "INVALID_STATE",
    999: "UNKNOWN",
}  # fmt: skip

_GAPS: dict[int, Gap] = {
    INVALID_ARGUMENT: "unsupported",
    NOT_SUPPORTED: "unsupported",
    NOT_FOUND: "unsupported",
    FUNCTION_NOT_FOUND: "unsupported",
    ARGUMENT_VERSION_MISMATCH: "unsupported",
    DEPRECATED: "unsupported",
    NO_PERMISSION: "denied",
    TIMEOUT: "timeout",
    GPU_IS_LOST: "lost",
    RESET_REQUIRED: "lost",
}

# Where the library is if the loader does not find it: WSL, NixOS, containers without ldconfig, Windows.
_PLACES = (
    "libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/run/opengl-driver/lib/libnvidia-ml.so.1",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
)
_WINDOWS_PLACES = ("nvml.dll", r"C:\Windows\System32\nvml.dll", r"C:\Program Files\NVIDIA Corporation\NVSMI\nvml.dll")


def gap_of(code: int) -> Gap:
    """Return the gap for a return code."""
    return _GAPS.get(code, "failed")


def error_name(code: int) -> str:
    """Return NVML's name of a return code."""
    return NAMES.get(code, f"error {code}")


class Nvml:
    """The loaded library. Calls release the GIL, so a call that hangs blocks only its own thread."""

    def __init__(self) -> None:
        """Load the library; raise OSError if it is in none of the known places."""
        places = _WINDOWS_PLACES if sys.platform == "win32" else _PLACES
        failure: OSError | None = None
        for place in places:
            try:
                self._library = ctypes.CDLL(place)
                break
            except OSError as error:
                failure = failure or error
        else:
            raise failure or OSError("no NVML library")
        self._functions: dict[str, Any] = {}
        self.versions: dict[str, str] = {}  # what each call for a version has returned; one that hangs is not there
        self.opened: dict[int, tuple[Any, str]] = {}  # handle and PCI bus id of each GPU that could be opened, by index

    def function(self, *names: str) -> Callable[..., int] | None:
        """Return the first of these functions that the library has, or None; old drivers lack new functions."""
        for name in names:
            if name not in self._functions:
                self._functions[name] = getattr(self._library, name, None)
            if (found := self._functions[name]) is not None:
                return found  # type: ignore[no-any-return]  # ctypes has no type for a function it has not been told of
        return None

    def call(self, name: str, *arguments: object) -> int:
        """Call a function once and return its code; FUNCTION_NOT_FOUND if the library does not have it."""
        function = self.function(name)
        return FUNCTION_NOT_FOUND if function is None else function(*arguments)

    def text(self, name: str, *arguments: object, size: int = 96) -> tuple[int, str]:
        """Call a function that fills a text of `size` bytes; the text is untrusted, and bytes that are not UTF-8 are escaped."""
        buffer = ctypes.create_string_buffer(size)
        code = self.call(name, *arguments, buffer, size)
        return code, buffer.value.decode("utf-8", "backslashreplace") if code == SUCCESS else ""

    def number(self, name: str, *arguments: object) -> tuple[int, int]:
        """Call a function that fills one unsigned int."""
        out = ctypes.c_uint()
        return self.call(name, *arguments, ctypes.byref(out)), out.value

    def number_pair(self, name: str, *arguments: object) -> tuple[int, int]:
        """Call a function that fills two unsigned ints and return the first, for example current and pending mode."""
        first, second = ctypes.c_uint(), ctypes.c_uint()
        return self.call(name, *arguments, ctypes.byref(first), ctypes.byref(second)), first.value
