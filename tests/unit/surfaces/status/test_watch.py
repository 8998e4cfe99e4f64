"""Watching leaves the terminal as it was found, however it ends."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterable, Iterator

import pytest

from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.status.view import watch

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _draw(snapshot: Snapshot) -> list[str]:
    return [f"picture {snapshot.time:.0f}", "second line"]


def _snapshots(then: Callable[[], object]) -> Iterator[Snapshot]:
    yield Snapshot(1.0)
    yield Snapshot(2.0)
    then()
    yield Snapshot(3.0)


def _interrupt() -> None:
    raise KeyboardInterrupt


def _terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _watched(snapshots: Iterable[Snapshot], rows: int = 24) -> str:
    out = _Terminal()
    watch(snapshots, _draw, lambda: rows, out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("then", "last"), [(lambda: None, 3), (_interrupt, 2), (_terminate, 2)], ids=["end", "Ctrl-C", "SIGTERM"]
)
def test_the_terminal_is_left_as_it_was_with_the_last_picture_on_it(then: Callable[[], object], last: int) -> None:
    written = _watched(_snapshots(then))
    assert written.startswith(_ENTER)
    assert written.count(_ENTER) == written.count(_LEAVE) == 1
    assert written.endswith(f"{_LEAVE}picture {last}\nsecond line\n")


def test_the_terminal_is_left_as_it_was_when_drawing_fails() -> None:
    out = _Terminal()

    def fail(snapshot: Snapshot) -> list[str]:
        raise ValueError("cannot draw")

    with pytest.raises(ValueError, match="cannot draw"):
        watch([Snapshot(1.0)], fail, lambda: 24, out)
    assert _LEAVE in out.getvalue()


@pytest.mark.parametrize("then", [lambda: None, _interrupt, _terminate], ids=["end", "Ctrl-C", "SIGTERM"])
def test_the_signal_handler_is_put_back(then: Callable[[], object]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    _watched(_snapshots(then))
    assert signal.getsignal(signal.SIGTERM) is before


def test_pictures_are_drawn_over_each_other_from_the_top() -> None:
    written = _watched([Snapshot(1.0), Snapshot(2.0)])
    screen = written.removeprefix(_ENTER).partition(_LEAVE)[0]
    assert screen == "".join(f"\x1b[Hpicture {at}\x1b[K\nsecond line\x1b[K\x1b[J" for at in (1, 2))


def test_a_picture_higher_than_the_terminal_is_cut_and_never_scrolls() -> None:
    screen = _watched([Snapshot(1.0)], rows=1).partition(_LEAVE)[0]
    assert "\n" not in screen
    assert "second line" not in screen
    assert "+2 more lines" in screen


def test_a_pipe_gets_pictures_one_below_the_other_and_no_escapes() -> None:
    out = io.StringIO()
    watch([Snapshot(1.0), Snapshot(2.0)], _draw, None, out)
    assert out.getvalue() == "picture 1\nsecond line\n\npicture 2\nsecond line\n\n"


def test_nothing_to_show_is_no_error() -> None:
    assert _watched([]).startswith(_ENTER + _LEAVE)
