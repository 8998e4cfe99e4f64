"""The NVML library: loads it, calls functions by name, turns return codes into gaps, and the kinds of calls.

A private table instead of nvidia-ml-py saves 25 ms at start (docs/decisions/0001);
the tests compare every structure and constant here with nvidia-ml-py's.

A reader is bound once to a library and a handle; bound, it is a function that makes one call into buffers of its own,
files the values or the gaps, and returns the code. That costs half of what a general binding does.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref, c_uint, c_ulonglong, create_string_buffer, sizeof
from operator import attrgetter

from ... import value
from .structures import ALL_ONES_64, FieldValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from ctypes import Structure
    from typing import Any, TypeAlias

    from ...model.metric import Gap, Value
    from ..base import Facts

    Bound: TypeAlias = Callable[[Facts], int]
    Bind: TypeAlias = "Callable[[Nvml, Any], Bound]"
    Take: TypeAlias = "Callable[[Any], Value | None]"
    Values: TypeAlias = "Callable[[], Iterable[tuple[str, Value | None]]]"

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
    INVALID_ARGUMENT: "unsupported", NOT_SUPPORTED: "unsupported", NOT_FOUND: "unsupported",
    FUNCTION_NOT_FOUND: "unsupported", ARGUMENT_VERSION_MISMATCH: "unsupported", DEPRECATED: "unsupported",
    NO_PERMISSION: "denied", TIMEOUT: "timeout", GPU_IS_LOST: "lost", RESET_REQUIRED: "lost",
}  # fmt: skip

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
        self.opened: dict[
            int, tuple[Any, str]
        ] = {}  # handle and PCI bus id, in lower case, of each GPU that could be opened, by index

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


ALL_ONES = 0xFFFFFFFF


class Reader(value.Value):
    """One call and the catalog keys it answers."""

    keys: tuple[str, ...]
    bind: Bind


def absent(keys: tuple[str, ...]) -> Bound:
    """Return a bound reader for a call this driver does not have."""

    def read(facts: Facts) -> int:
        for key in keys:
            facts.gaps[key] = "unsupported"
        return FUNCTION_NOT_FOUND

    return read


def number(
    key: str,
    *functions: str,
    before: tuple[int, ...] = (),
    after: int = 0,
    over: int = 1,
    to: Callable[[int], Value | None] | None = None,
    bits: int = 32,
) -> Reader:
    """A call that fills one unsigned number, then `after` more that are ignored; `before` stand between handle and result.

    Most readers are of this kind, so it does without the generality of `prepared`.
    """
    kind, missing = (c_uint, ALL_ONES) if bits == 32 else (c_ulonglong, ALL_ONES_64)

    def bind(nvml: Nvml, handle: Any) -> Bound:
        function = nvml.function(*functions)
        if function is None:
            return absent((key,))
        out = kind()
        arguments = (handle, *before, byref(out), *(byref(c_uint()) for _ in range(after)))

        def read(facts: Facts) -> int:
            code = function(*arguments)
            raw = out.value
            if code:
                facts.gaps[key] = gap_of(code)
            elif raw == missing:
                facts.gaps[key] = "unsupported"
            elif to is not None:
                file(facts, key, to(raw))
            else:
                facts.values[key] = raw if over == 1 else raw / over
            return code

        return read

    return Reader((key,), bind)


def prepared(keys: Iterable[str], function: str, prepare: Callable[[Any], tuple[tuple[Any, ...], Values]]) -> Reader:
    """A call of any kind. `prepare` is given the handle and returns the arguments, and what reads the values they were filled with."""
    names = tuple(keys)

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function(function)
        if call is None:
            return absent(names)
        arguments, values = prepare(handle)

        def read(facts: Facts) -> int:
            code = call(*arguments)
            if code:
                facts.gaps.update(dict.fromkeys(names, gap_of(code)))
            else:
                for key, value in values():
                    file(facts, key, value)
            return code

        return read

    return Reader(names, bind)


def numbers(function: str, keys: Mapping[str, Callable[[int], Value | None]]) -> Reader:
    """A call that fills several unsigned ints, one per key; an empty key is passed over."""

    def prepare(handle: Any) -> tuple[tuple[Any, ...], Values]:
        outs = [c_uint() for _ in keys]
        filled = [(key, take, out) for (key, take), out in zip(keys.items(), outs, strict=True) if key]
        return (handle, *map(byref, outs)), lambda: [
            (key, None if out.value == ALL_ONES else take(out.value)) for key, take, out in filled
        ]

    return prepared(filter(None, keys), function, prepare)


def record(kind: type[Structure], function: str, keys: Mapping[str, str | Take], version: int = 0) -> Reader:
    """A call that fills a structure, which carries its size and `version` where it has one; a key takes a field or a function of it."""
    takes = [(key, attrgetter(take) if isinstance(take, str) else take) for key, take in keys.items()]

    def prepare(handle: Any) -> tuple[tuple[Any, ...], Values]:
        out = versioned(kind, version)
        return (handle, byref(out)), lambda: [(key, take(out)) for key, take in takes]

    return prepared(keys, function, prepare)


def text(key: str, function: str, *before: int) -> Reader:
    """A call that fills a text of 64 bytes; an empty one is no answer."""

    def prepare(handle: Any) -> tuple[tuple[Any, ...], Values]:
        out = create_string_buffer(64)
        return (handle, *before, out, 64), lambda: [(key, decoded(out.value) or None)]

    return prepared((key,), function, prepare)


def field(key: str, identifier: int, take: Take = int, scope: int = 0, signed: bool = False) -> Reader:
    """A value NVML answers by a field number, 32 or 64 bits wide as it says itself; a signed one may be -1."""

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function("nvmlDeviceGetFieldValues")
        if call is None:
            return absent((key,))
        out = FieldValue(fieldId=identifier, scopeId=scope)
        reference = byref(out)

        def read(facts: Facts) -> int:
            code = call(handle, 1, reference) or int(out.nvmlReturn)
            raw = int(out.value.siVal) if signed else field_number(out)
            settle(facts, key, code, None if code or raw in (ALL_ONES, ALL_ONES_64) else take(raw))
            return code

        return read

    return Reader((key,), bind)


def field_number(out: Any) -> int:
    """Return the value of a field that was read."""
    return int(out.value.ullVal if out.valueType in (2, 3) else out.value.uiVal)


def computed(keys: tuple[str, ...], find: Callable[[Nvml, Any], tuple[int, tuple[Value | None, ...]]]) -> Reader:
    """Values that take several calls, or one into a long list: `find` makes them and returns a code and a value for each key.

    Its buffers live as long as the call, so it is for what is read occasionally.
    """

    def bind(nvml: Nvml, handle: Any) -> Bound:
        def read(facts: Facts) -> int:
            code, values = find(nvml, handle)
            for at, key in enumerate(keys):
                settle(facts, key, code, None if code else values[at])
            return code

        return read

    return Reader(keys, bind)


def fetched(
    nvml: Nvml, name: str, kind: Any, most: int, *arguments: object, after: tuple[Any, ...] = ()
) -> tuple[int, list[Any]]:
    """Call a function that fills a list of at most `most` entries after their number; return its code and the entries."""
    found, count = (kind * most)(), c_uint(most)
    code = nvml.call(name, *arguments, byref(count), found, *after)
    return code, found[: min(count.value, most)] if code == SUCCESS else []


def settle(facts: Facts, key: str, code: int, value: Value | None) -> None:
    """Store the value, or the gap for the return code or an empty answer."""
    if code:
        facts.gaps[key] = gap_of(code)
    else:
        file(facts, key, value)


def file(facts: Facts, key: str, value: Value | None) -> None:
    """File a value, or the gap where the driver's answer means that there is none."""
    if value is None or value in (ALL_ONES, ALL_ONES_64):
        facts.gaps[key] = "unsupported"
    else:
        facts.values[key] = value


def word_of(words: tuple[str | None, ...]) -> Callable[[int], str | None]:
    """Return what takes a number to its word; a number NVML added later is shown as it is."""
    return lambda value: words[value] if value < len(words) else str(value)


def versioned(kind: type[Structure], version: int) -> Any:
    """Return a structure with its size and version set, as NVML requires for newer structures."""
    out: Any = kind()
    if version:
        out.version = sizeof(kind) | version << 24
    return out


def decoded(raw: bytes) -> str:
    """Return a text from the driver; bytes that are not UTF-8 are escaped."""
    return raw.decode("utf-8", "backslashreplace")
