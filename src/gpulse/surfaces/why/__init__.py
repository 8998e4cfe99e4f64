"""What `gpulse why` shows: progress while it watches, then one verdict per GPU.

May import: present and below. Never here: rules, thresholds, words of verdicts.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from ...present.theme import Theme


_CELLS = 24


class Progress:
    """Draws how much of `seconds` has passed; draws nothing where `stream` is not a terminal."""

    def __init__(self, stream: TextIO, theme: Theme, seconds: float, live: bool) -> None:
        self._stream = stream
        self._theme = theme
        self._seconds = seconds
        self._live = live

    @property
    def live(self) -> bool:
        """Whether anything is drawn."""
        return self._live

    def show(self, passed: float, gpus: int, so_far: str = "") -> None:
        """Redraw the line, and below it what was found so far."""
        if not self._live:
            return
        theme = self._theme
        done = min(_CELLS, int(_CELLS * passed / self._seconds)) if self._seconds > 0 else _CELLS
        bar = theme.paint(theme.glyph("█", "#") * done, "busy") + theme.paint(
            theme.glyph("░", ".") * (_CELLS - done), "track"
        )
        left = max(0.0, self._seconds - passed)
        text = f"watching {gpus} GPU{'' if gpus == 1 else 's'}  {bar}  {left:.0f} s left"
        found = f"\r\n{theme.paint('so far: ', 'label')}{theme.spelled(so_far)}\x1b[1A\r" if so_far else ""
        self._stream.write(f"\r\x1b[J{text}  {theme.paint('Ctrl-C: judge what was seen', 'faint')}{found}")
        self._stream.flush()

    def clear(self) -> None:
        """Remove what was drawn."""
        if self._live:
            self._stream.write("\r\x1b[J")
            self._stream.flush()
