"""What a terminal can do is taken from it and from what the person said."""

from __future__ import annotations

import io
import os

import pytest

from gpulse.present.theme import size_of, theme_for


class _Stream(io.TextIOWrapper):
    def __init__(self, tty: bool, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding)
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


_XTERM = {"TERM": "xterm"}


@pytest.mark.parametrize(
    ("tty", "color", "environ", "colors"),
    [
        (True, "auto", _XTERM, 16),
        (True, "auto", {"TERM": "xterm-256color"}, 256),
        (True, "auto", {"TERM": "xterm", "COLORTERM": "truecolor"}, 16777216),
        (True, "auto", {"TERM": "dumb"}, 0),
        (True, "auto", {}, 0),
        (True, "auto", {**_XTERM, "NO_COLOR": "1"}, 0),
        (True, "auto", {**_XTERM, "NO_COLOR": ""}, 16),
        (True, "auto", {**_XTERM, "NO_COLOR": "1", "FORCE_COLOR": "1"}, 0),
        (False, "auto", _XTERM, 0),
        (False, "auto", {**_XTERM, "FORCE_COLOR": "1"}, 16),
        (False, "auto", {**_XTERM, "FORCE_COLOR": "0"}, 0),
        (False, "auto", {**_XTERM, "FORCE_COLOR": ""}, 0),
        (False, "always", {}, 16),
        (False, "always", {"TERM": "dumb"}, 16),
        (True, "always", {**_XTERM, "NO_COLOR": "1"}, 16),
        (True, "never", {"TERM": "xterm-256color", "FORCE_COLOR": "1"}, 0),
    ],
)
def test_colours_as_the_terminal_and_the_person_say(
    tty: bool, color: str, environ: dict[str, str], colors: int
) -> None:
    assert theme_for(_Stream(tty), color, environ).colors == colors


@pytest.mark.parametrize(
    ("encoding", "environ", "unicode"),
    [
        ("utf-8", {}, True),
        ("utf-8", {"LANG": "en_US.UTF-8"}, True),
        ("utf-8", {"LANG": "C.UTF-8"}, True),
        ("utf-8", {"LANG": "C"}, False),
        ("utf-8", {"LANG": "POSIX"}, False),
        ("utf-8", {"LANG": "C", "LC_ALL": "en_US.UTF-8"}, True),
        ("utf-8", {"LANG": "en_US.UTF-8", "LC_ALL": "C"}, False),
        ("ascii", {}, False),
        ("latin-1", {}, False),
    ],
)
def test_unicode_where_the_stream_can_write_it_and_nobody_forbade_it(
    encoding: str, environ: dict[str, str], unicode: bool
) -> None:
    assert theme_for(_Stream(True, encoding), "auto", environ).unicode is unicode


@pytest.mark.parametrize(
    ("environ", "size"),
    [({}, (120, 40)), ({"COLUMNS": "33"}, (33, 40)), ({"COLUMNS": "0"}, (120, 40)), ({"COLUMNS": "wide"}, (120, 40))],
)
def test_a_pipe_has_the_size_that_columns_says(environ: dict[str, str], size: tuple[int, int]) -> None:
    assert size_of(_Stream(False), environ) == size


def test_a_terminal_has_its_own_size() -> None:
    import fcntl
    import pty
    import struct
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 77, 0, 0))
    with os.fdopen(follower, "w") as stream:
        assert size_of(stream, {}) == (77, 25)
        assert size_of(stream, {"COLUMNS": "50"}) == (50, 25)
    os.close(leader)
