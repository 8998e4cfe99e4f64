"""The cells that a notebook's kernel has run, in a small private file beside the kernel's connection file."""

from __future__ import annotations

import json
import os
import time

from ..value import Value
from .lines import replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_BEGIN, _END = "gpulse-cells-", ".jsonl"
_LARGEST = 256 << 10  # bytes of a file, about 1000 cells; then the older half is dropped
_LONGEST = 100  # characters of code that are kept
_LEFT_BEHIND = 3600.0  # seconds after which the file of a kernel that is gone is removed


class CellSpan(Value):
    """One run of a cell; times are in seconds since 1970.

    `id` is that of the message that asked for it, which kernel and browser share. `cell` names the cell in its notebook, None in a
    console; `code` is its first line. `end` and `ok` are None while it runs; `ok` is
    "interrupted" if somebody stopped it.
    """

    id: str
    cell: str | None
    count: int | None
    code: str
    start: float
    end: float | None = None
    ok: bool | str | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {name: getattr(self, name) for name in sorted(self._fields)}

    @classmethod
    def from_plain(cls, plain: object) -> CellSpan | None:
        """Return a span from plain data that may be anything; None if it is none."""
        if not isinstance(plain, dict):
            return None
        id, cell, count, code, ok = (plain.get(name) for name in ("id", "cell", "count", "code", "ok"))
        start, end = _time(plain.get("start")), _time(plain.get("end"))
        if not isinstance(id, str) or not 0 < len(id) <= 200 or start is None:
            return None
        if (end is None and plain.get("end") is not None) or (end is not None and end < start):
            return None
        return cls(
            id,
            cell[:200] if isinstance(cell, str) and cell else None,
            count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 1 << 53 else None,
            first_line(code) if isinstance(code, str) else "",
            start,
            end,
            ok if isinstance(ok, bool) or ok == "interrupted" else None,
        )


def _time(value: object) -> float | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if number and 0 <= value < 1e11 else None  # type: ignore[arg-type, operator]


def first_line(code: str) -> str:
    """Return the first line of code that is not empty, without control characters, shortened."""
    line = next((line.strip() for line in code.splitlines() if line.strip()), "")
    text = "".join(char if char.isprintable() else " " for char in line[:_LONGEST])
    return text + "…" if len(line) > _LONGEST else text


def merged(sources: Iterable[Iterable[CellSpan]]) -> list[CellSpan]:
    """Return each run once, the earliest first; a later source wins unless only an earlier one knows the end."""
    found: dict[str, CellSpan] = {}
    for spans in sources:
        for span in spans:
            if (before := found.get(span.id)) is None or span.end is not None or before.end is None:
                found[span.id] = span
    return sorted(found.values(), key=lambda span: span.start)


class CellLog:
    """The file of one kernel; `connection_file` is that of the kernel, which Jupyter removes when the kernel is shut down."""

    def __init__(self, connection_file: str) -> None:
        folder, name = os.path.split(connection_file)
        self.path = os.path.join(folder, f"{_BEGIN}{os.path.splitext(name)[0]}{_END}")

    def append(self, span: CellSpan) -> None:
        """Add a run, or how it ended; raise OSError if that fails. Costs about 30 µs on a local disk."""
        line = json.dumps(span.to_plain(), separators=(",", ":")).encode() + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.path, flags, 0o600)
        try:
            os.write(descriptor, line)
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        if size > _LARGEST:
            self._shorten()

    def read(self) -> list[CellSpan]:
        """Return the runs, the earliest first; none without a file. Lines that are damaged are left out."""
        return merged([filter(None, map(_parsed, self._lines()))])

    def _lines(self) -> list[bytes]:
        try:
            with open(self.path, "rb") as file:
                return file.read(2 * _LARGEST).splitlines(keepends=True)
        except OSError:
            return []

    def _shorten(self) -> None:
        lines = self._lines()
        with replaced(self.path) as file:
            file.writelines(lines[len(lines) // 2 :])


def remove_left_behind(folder: str) -> None:
    """Remove the files of kernels that are gone from the folder of connection files."""
    try:
        there = set(os.listdir(folder))
    except OSError:
        return
    for name in there:
        kernel = name[len(_BEGIN) :].partition(_END)[0]
        if not name.startswith(_BEGIN) or _END not in name or f"{kernel}.json" in there:
            continue
        path = os.path.join(folder, name)
        try:
            if time.time() - os.stat(path).st_mtime > _LEFT_BEHIND:
                os.unlink(path)
        except OSError:
            pass  # another kernel has just removed it


def _parsed(line: bytes) -> CellSpan | None:
    try:
        plain: Mapping[str, object] = json.loads(line)
    except ValueError:
        return None
    return CellSpan.from_plain(plain)
