"""Kinds of NVML calls: what a call fills in, and how that becomes values or gaps. Buffers are allocated once and reused."""

from __future__ import annotations

from ctypes import byref, c_uint, create_string_buffer, sizeof

from .nvml import gap_of
from .readers import ALL_ONES, Reader, absent, file
from .structures import ALL_ONES_64, FieldValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from ctypes import Structure
    from typing import Any, TypeAlias

    from ...model.metric import Value
    from ..base import Facts
    from .nvml import Nvml
    from .readers import Bound

    Take: TypeAlias = "Callable[[Any], Value | None]"


def word_of(words: tuple[str | None, ...]) -> Callable[[int], str | None]:
    """Return a function that maps a number to its name; a number that NVML added later is shown as it is."""
    return lambda value: words[value] if value < len(words) else str(value)


def numbers(function: str, keys: Mapping[str, Callable[[int], Value | None]]) -> Reader:
    """A call that fills several unsigned ints, one per key; an empty key is skipped."""
    names = tuple(key for key in keys if key)

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function(function)
        if call is None:
            return absent(names)
        outs = [c_uint() for _ in keys]
        arguments = (handle, *map(byref, outs))
        filled = [(key, take, out) for (key, take), out in zip(keys.items(), outs, strict=True) if key]

        def read(facts: Facts) -> int:
            code = call(*arguments)
            for key, take, out in filled:
                settle(facts, key, code, None if code or out.value == ALL_ONES else take(out.value))
            return code

        return read

    return Reader(names, bind)


def record(kind: type[Structure], function: str, keys: Mapping[str, str | Take], version: int = 0) -> Reader:
    """A call that fills a structure, with its size and `version` if it has one; each key is a field or a function of the structure."""
    names = tuple(keys)

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function(function)
        if call is None:
            return absent(names)
        out = versioned(kind, version)
        reference = byref(out)

        def read(facts: Facts) -> int:
            code = call(handle, reference)
            for key, take in keys.items():
                settle(facts, key, code, None if code else getattr(out, take) if isinstance(take, str) else take(out))
            return code

        return read

    return Reader(names, bind)


def field(key: str, identifier: int, take: Take, scope: int = 0) -> Reader:
    """A value that NVML returns by field id, 32 or 64 bits wide as NVML reports."""

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function("nvmlDeviceGetFieldValues")
        if call is None:
            return absent((key,))
        out = FieldValue()
        out.fieldId, out.scopeId = identifier, scope
        reference = byref(out)

        def read(facts: Facts) -> int:
            code = call(handle, 1, reference) or int(out.nvmlReturn)
            raw = out.value.ullVal if out.valueType in (2, 3) else out.value.uiVal
            settle(facts, key, code, None if code or raw in (ALL_ONES, ALL_ONES_64) else take(raw))
            return code

        return read

    return Reader((key,), bind)


def text(key: str, function: str, *before: int) -> Reader:
    """A call that fills a text of 64 bytes; an empty text counts as missing."""

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function(function)
        if call is None:
            return absent((key,))
        out = create_string_buffer(64)

        def read(facts: Facts) -> int:
            code = call(handle, *before, out, 64)
            settle(facts, key, code, None if code else decoded(out.value) or None)
            return code

        return read

    return Reader((key,), bind)


def settle(facts: Facts, key: str, code: int, value: Value | None) -> None:
    """Store the value, or the gap for the return code or an empty answer."""
    if code:
        facts.gaps[key] = gap_of(code)
    else:
        file(facts, key, value)


def versioned(kind: type[Structure], version: int) -> Any:
    """Return a structure with its size and version set, as NVML requires for newer structures."""
    out: Any = kind()
    if version:
        out.version = sizeof(kind) | version << 24
    return out


def decoded(raw: bytes) -> str:
    """Return a text from the driver; bytes that are not UTF-8 are escaped."""
    return raw.decode("utf-8", "backslashreplace")
