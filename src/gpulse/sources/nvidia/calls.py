"""Kinds of calls: what a call fills, and how that becomes values or gaps.

A reader is bound once to a library and a handle; bound, it is a function that makes one call into buffers of its own,
files the values or the gaps, and returns the code. That costs half of what a general binding does.
"""

from __future__ import annotations

from ctypes import byref, c_uint, c_ulonglong, create_string_buffer, sizeof
from operator import attrgetter

from .nvml import FUNCTION_NOT_FOUND, gap_of
from .structures import ALL_ONES_64, FieldValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from ctypes import Structure
    from typing import Any, TypeAlias

    from ...model.metric import Value
    from ..base import Facts
    from .nvml import Nvml

    Bound: TypeAlias = Callable[[Facts], int]
    Bind: TypeAlias = Callable[[Nvml, Any], Bound]
    Take: TypeAlias = "Callable[[Any], Value | None]"
    Values: TypeAlias = "Callable[[], Iterable[tuple[str, Value | None]]]"

ALL_ONES = 0xFFFFFFFF


class Reader:
    """One call and the catalog keys it answers."""

    __slots__ = ("bind", "keys")

    def __init__(self, keys: tuple[str, ...], bind: Bind) -> None:
        self.keys = keys
        self.bind = bind


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


def field(key: str, identifier: int, take: Take = int, scope: int = 0) -> Reader:
    """A value NVML answers by a field number, 32 or 64 bits wide as it says itself."""

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
