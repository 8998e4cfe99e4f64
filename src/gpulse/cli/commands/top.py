"""`gpulse top`: the live screen."""

from __future__ import annotations

import os
import sys

from ..main import VERBS
from ..options import COMMON, Option, Verb, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...surfaces.top.settings import Settings
    from ..options import Arguments


def run(arguments: Arguments) -> int:
    """Open the screen; where there is no terminal, write a line at each look instead."""
    from ...present.terminal import capable, theme_for
    from ...store.config import config_path, read_config
    from ...surfaces.top.app import App, wanted
    from ...surfaces.top.history import History
    from ...surfaces.top.settings import Settings
    from ...surfaces.top.state import State
    from ..session import open_sampler

    path = config_path(os.environ)
    settings, complaints = Settings.load(read_config(path).get("top", {}))
    settings.interval = arguments.interval or settings.interval
    settings.theme = arguments.theme or settings.theme
    theme = theme_for(sys.stdout, arguments.color, os.environ, settings.theme)
    state = State(settings, History(settings.charts), theme)
    state.readonly = arguments.readonly
    state.message = " ".join(complaints)
    sampler = open_sampler(arguments, wanted(state))
    try:
        sampler.prime()
        if capable(sys.stdout, os.environ) and sys.stdin.isatty():
            App(sampler, state, lambda chosen: _save(path, chosen)).run()
        else:
            from ...surfaces.top.plain import stream_lines

            stream_lines(sampler, settings.interval, sys.stdout)
    except KeyboardInterrupt:
        pass
    finally:
        sampler.close()
    return 0


def _save(path: str, settings: Settings) -> str:
    from ...errors import GpulseError
    from ...store.config import write_table

    try:
        write_table(path, "top", settings.values())
    except GpulseError as error:
        return str(error)
    return f"saved to {path}"


VERB = Verb(
    "top",
    VERBS["top"],
    (
        Option("--interval", "-n", value="SECONDS", parse=seconds("--interval", 0.1, 3600),
               help="Look every so many seconds; 1 unless the settings say otherwise."),
        Option("--readonly", default=False, help="No signals can be sent from the screen."),
        Option("--theme", value="THEME", complete=("dark", "light", "contrast", "blind", "mono"),
               help="The look: dark, light, contrast (high), blind (safe for colour-blind eyes) or mono."),
        *COMMON,
    ),
    run,
    (("gpulse top", "the live screen; ? lists its keys"), ("gpulse top --source replay:run.ndjson.gz", "a recording")),
)  # fmt: skip
