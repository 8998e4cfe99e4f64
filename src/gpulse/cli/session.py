"""What the common options ask for: the source, the sampler, the theme, and the live screen with the settings of the user."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TextIO

    from ..model.select import Wanted
    from ..present.theme import Theme
    from ..sampling.clock import SystemClock
    from ..sampling.sampler import Sampler
    from ..surfaces.top.state import ScreenSettings, State
    from .options import Arguments


def source_name(arguments: Arguments) -> str:
    """Return the source named by the options or the environment."""
    if arguments.demo:
        return "demo:mixed" if arguments.demo == "mixed" else "demo"
    from ..sources.registry import default_source

    name: str = arguments.source or default_source()
    return name


def with_past(run: Callable[[Arguments], int], kind: str, name: str) -> Callable[[Arguments], int]:
    """Return a verb's function that reads the past of a simulated machine with --demo.

    `kind` is "history", "recording" or "runs"; a file in the private state is put into the argument called `name`, unless it has a value.
    """

    def remembering(arguments: Arguments) -> int:
        if not arguments.demo or (name and getattr(arguments, name)):
            return run(arguments)
        import time

        from ..recordings.demo import write_history, write_recording, write_runs
        from ..store.runs import runs_folder

        folder = arguments.state.folder
        if kind == "runs":
            write_runs(runs_folder() or folder, time.time())
            return run(arguments)
        path = os.path.join(folder, "history.db" if kind == "history" else "demo.ndjson")
        (write_history if kind == "history" else write_recording)(path, time.time())
        setattr(arguments, name, [path] if name.endswith("s") else path)
        return run(arguments)

    return remembering


def open_sampler(
    arguments: Arguments, wanted: Wanted, slow_every: float = 5.0, *, whole: bool = False, primed: bool = False
) -> Sampler:
    """Return an open sampler for the selected GPUs; the caller closes it.

    Inside a Slurm job these are the job's if none are named; `whole`: all of the machine, as nvidia-smi shows. `primed`: for a
    single sample, start to measure activity as early as possible.
    """
    from ..sampling.sampler import Sampler
    from ..sources.registry import make_source

    ours = not whole and bool(os.environ.get("SLURM_JOB_GPUS"))
    sampler = Sampler(make_source(source_name(arguments)), wanted, slow_every=slow_every)
    sampler.open(primed and not arguments.gpu and not ours)
    if arguments.gpu:
        sampler.choose(arguments.gpu)
    elif ours and sampler.source.machine.real:
        sampler.choose(["job"])
    return sampler


def theme_of(arguments: Arguments, stream: TextIO) -> Theme:
    """Return the theme for a stream; raise UsageError if GPULSE_THEME names none."""
    from ..present.theme import colors_of, theme_for

    environ = os.environ
    # the settings file is not read for output without colors
    name = arguments.theme or (saved_theme(environ) if colors_of(stream, arguments.color, environ) else "auto")
    return theme_for(stream, arguments.color, environ, name)


def open_whole(arguments: Arguments, wanted: Wanted, clock: SystemClock | None = None) -> Sampler:
    """Return an open sampler for all GPUs of the source, whatever --gpu says; the caller closes it."""
    from ..sampling.sampler import Sampler
    from ..sources.registry import make_source

    return Sampler(make_source(source_name(arguments)), wanted, clock=clock).open()


def terminal_of(arguments: Arguments) -> tuple[Theme, int]:
    """Return the theme and the columns of standard output."""
    from ..present.theme import size_of

    return theme_of(arguments, sys.stdout), size_of(sys.stdout, os.environ)[0]


def saved_theme(environ: Mapping[str, str]) -> str:
    """Return the theme of the environment or the settings file, else "auto".

    A file that cannot be read or has a mistake counts as empty here: `gpulse config check` and `gpulse doctor` report it.
    """
    from ..present.theme import THEMES

    if name := environ.get("GPULSE_THEME", ""):
        if name not in THEMES:
            from ..errors import UsageError
            from ..model.select import did_you_mean

            raise UsageError(
                f"GPULSE_THEME: unknown theme {name!r}{did_you_mean(name, THEMES)}",
                f"choose one of {', '.join(THEMES)}.",
            )
        return name
    name = _in_file(environ)
    return name if name in THEMES else "auto"


def _in_file(environ: Mapping[str, str]) -> str:
    from ..store.place import config_path

    path = config_path(environ)
    try:
        with open(path, "rb") as file:
            if b"theme" not in file.read():  # parsing TOML takes 7 ms, so only a file that may have a theme is parsed
                return ""
    except OSError:
        return ""
    from ..errors import ConfigError
    from ..store.config import read_config

    try:
        table = read_config(path).get("terminal", {})
    except ConfigError:
        return ""
    name = table.get("theme", "") if isinstance(table, dict) else ""
    return name if isinstance(name, str) else ""


def show_screen(arguments: Arguments, open_sampler: Callable[[Wanted], Sampler], interval: float | None) -> None:
    """Show the live screen, or write one line per sample if stdout is not a terminal. Opens and closes the sampler."""
    from ..present.theme import capable
    from ..store.config import config_path, read_config
    from ..surfaces.top.app import App
    from ..surfaces.top.history import History
    from ..surfaces.top.state import ScreenSettings, State, shown_metrics

    path = config_path(os.environ)
    settings, complaints = ScreenSettings.load(_chosen(read_config(path).get("top", {})))
    settings.interval = interval or settings.interval
    theme = theme_of(arguments, sys.stdout)
    settings.theme = theme.name
    state = State(settings, History(settings.charts), theme)
    state.readonly = getattr(arguments, "readonly", False)
    state.message = " ".join(complaints)
    _arrange(state, arguments)
    sampler = open_sampler(shown_metrics(state))
    try:
        sampler.prime()
        if getattr(sampler.source, "path", "") == "-":
            _take_keys_from_terminal()
        # what is loaded by now stays; searching it for garbage took 0.35 ms of CPU per second with 8 GPUs, 2.2 with 64
        gc.freeze()
        gc.set_threshold(20_000)
        if capable(sys.stdout, os.environ) and sys.stdin.isatty():
            App(sampler, state, lambda chosen: _NOT_SAVED if arguments.state.private else _save(path, chosen)).run()
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
    from ..settings.table import TABLES

    if not isinstance(table, dict) or not any(setting.environ in os.environ for setting in TABLES["top"].values()):
        return table
    from ..settings.effective import effective  # loads the rules of alerts, which no screen needs

    found = {each.setting.key: each.value for each in effective("top", {}, os.environ) if each.origin == "environment"}
    return {**table, **found}


_NOT_SAVED = "not saved: only the screen of this machine keeps its settings"


def _save(path: str, settings: ScreenSettings) -> str:
    from ..errors import GpulseError
    from ..store.config import write_table

    try:
        write_table(path, "top", settings.values())
        write_table(path, "terminal", {"theme": settings.theme})
    except GpulseError as error:
        return str(error)
    return f"saved to {path}"
