"""Open the live screen with the options and settings of the user, for every verb that shows it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..model.select import Wanted
    from ..sampling.sampler import Sampler
    from ..surfaces.top.state import ScreenSettings, State
    from .options import Arguments


def show_screen(arguments: Arguments, open_sampler: Callable[[Wanted], Sampler], interval: float | None) -> None:
    """Show the live screen, or write one line per sample if stdout is not a terminal. Opens and closes the sampler."""
    from ..present.theme import capable
    from ..store.config import config_path, read_config
    from ..surfaces.top.app import App, wanted
    from ..surfaces.top.history import History
    from ..surfaces.top.state import ScreenSettings, State
    from .theme import theme_of

    path = config_path(os.environ)
    settings, complaints = ScreenSettings.load(_chosen(read_config(path).get("top", {})))
    settings.interval = interval or settings.interval
    theme = theme_of(arguments, sys.stdout)
    settings.theme = theme.name
    state = State(settings, History(settings.charts), theme)
    state.readonly = getattr(arguments, "readonly", False)
    state.message = " ".join(complaints)
    _arrange(state, arguments)
    sampler = open_sampler(wanted(state))
    try:
        sampler.prime()
        if getattr(sampler.source, "path", "") == "-":
            _take_keys_from_terminal()
        if capable(sys.stdout, os.environ) and sys.stdin.isatty():
            App(sampler, state, lambda chosen: _save(path, chosen)).run()
        else:
            from ..surfaces.top.feeds import stream_lines

            stream_lines(sampler, settings.interval, sys.stdout)
    except KeyboardInterrupt:
        pass
    finally:
        sampler.close()


def _take_keys_from_terminal() -> None:
    """Let the terminal take the place of standard input, which a recording comes through and which its reader has a copy of."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return  # there is none: lines are written instead of a screen
    os.dup2(terminal, 0)
    os.close(terminal)


def _arrange(state: State, arguments: Arguments) -> None:
    """Arrange the processes as the options of the verb say, if it has them."""
    if sort := getattr(arguments, "sort", None):
        (state.sort, state.falling), *ties = sort
        state.ties = tuple(ties)
    state.filter = getattr(arguments, "filter", None) or ""
    state.tree = getattr(arguments, "tree", False)
    state.group = getattr(arguments, "group", None) or ""


def _chosen(table: Any) -> Any:
    """Return the [top] table with what the environment sets in its place."""
    from ..settings.effective import effective

    if not isinstance(table, dict):
        return table
    found = {each.setting.key: each.value for each in effective("top", {}, os.environ) if each.origin == "environment"}
    return {**table, **found}


def _save(path: str, settings: ScreenSettings) -> str:
    from ..errors import GpulseError
    from ..store.config import write_table

    try:
        write_table(path, "top", settings.values())
        write_table(path, "terminal", {"theme": settings.theme})
    except GpulseError as error:
        return str(error)
    return f"saved to {path}"
