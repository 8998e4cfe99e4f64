"""Watching: the glance redrawn in place, and the terminal left as it was found."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType
    from typing import TextIO, TypeVar

    Shown = TypeVar("Shown")

_ENTER = "\x1b[?1049h\x1b[?25l"  # other screen, no cursor
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME = "\x1b[H"
_CLEAR_LINE = "\x1b[K"
_CLEAR_BELOW = "\x1b[J"


class _Stop(Exception):  # it is no error
    """Asked to end by a signal."""


def watch(
    snapshots: Iterable[Shown], draw: Callable[[Shown], list[str]], rows: Callable[[], int] | None, out: TextIO
) -> None:
    """Draw each snapshot in place until the snapshots or the user end it; the last picture stays on the terminal.

    `rows` gives the height of the terminal; without it, each picture is written below the one before, a blank line between.
    """
    last: list[str] = []
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        if rows is not None:
            out.write(_ENTER)
        for snapshot in snapshots:
            last = draw(snapshot)
            _write(out, last, rows()) if rows is not None else out.write("\n".join(last) + "\n\n")
            out.flush()
    except (KeyboardInterrupt, _Stop):
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
        if rows is not None:
            out.write(_LEAVE + "\n".join(last) + "\n")
            out.flush()


def _write(out: TextIO, lines: list[str], rows: int) -> None:
    shown = lines
    if len(lines) > rows:
        shown = [*lines[: rows - 1], f"+{len(lines) - rows + 1} more lines"]
    out.write(_HOME + "".join(f"{line}{_CLEAR_LINE}\n" for line in shown[:-1]))
    out.write(f"{shown[-1]}{_CLEAR_LINE}{_CLEAR_BELOW}" if shown else _CLEAR_BELOW)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stop
