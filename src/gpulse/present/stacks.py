"""Stacks as text: per process its threads, each with what it executes, the innermost call first."""

from __future__ import annotations

from .line import Line
from .text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..model.stacks import Frame, Stack

_LIBRARIES = ("/site-packages/", "/dist-packages/")


def stack_lines(stacks: Sequence[Stack], most: int | None = None) -> list[Line]:
    """Return the threads of one process; threads with the same stack are told once. `most` is the number of frames to show of each."""
    lines = []
    for frames, names in _alike(stacks):
        title = names[0] if len(names) == 1 else f"{len(names)} threads: {', '.join(sorted(set(names)))}"
        lines.append(Line().add(clean(title), "title"))
        lines += [Line().add("  ").extend(frame_line(frame)) for frame in [*reversed(frames)][:most]]
        if not frames:
            lines.append(Line().add("  no Python code", "label"))
        elif most is not None and len(frames) > most:
            lines.append(Line().add(f"  and {len(frames) - most} more", "label"))
    return lines


def frame_line(frame: Frame) -> Line:
    """Return one frame: the function, and where it is; the user's own code stands out."""
    own = not is_library(frame.file)
    place = f" {place_text(frame)}" if frame.file else ""
    return Line().add(clean(frame.function or "?"), "accent" if own else "").add(place, "" if own else "label")


def place_text(frame: Frame) -> str:
    """Return the file and line of a frame; a file of a library begins with the name of its package."""
    file = clean(frame.file)
    for folder in (*_LIBRARIES, "/lib/python3"):
        _, found, after = file.rpartition(folder)
        if found:
            file = after.partition("/")[2] or after if folder.endswith("python3") else after
            break
    return f"{file}:{frame.line}" if frame.line else file


def is_library(file: str) -> bool:
    """Tell whether a file belongs to Python or an installed package, and not to the program itself."""
    return any(folder in file for folder in (*_LIBRARIES, "/lib/python3", ".so")) or file.startswith("<frozen")


def plain_stacks(stacks: Iterable[Stack]) -> list[dict[str, Any]]:
    """Return threads as JSON has them, the innermost frame first; texts are as the process gave them."""
    return [
        {
            "thread": stack.thread or None,
            "main": stack.role == "main",
            "frames": [
                {"file": frame.file, "line": frame.line or None, "function": frame.function}
                for frame in reversed(stack.frames)
            ],
        }
        for stack in stacks
    ]


def _alike(stacks: Iterable[Stack]) -> list[tuple[tuple[Frame, ...], list[str]]]:
    groups: dict[tuple[Frame, ...], list[str]] = {}
    for stack in stacks:
        name = stack.thread or ("MainThread" if stack.role == "main" else "a thread without a name")
        groups.setdefault(stack.frames, []).append(name)
    return [*groups.items()]
