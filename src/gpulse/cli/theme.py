"""The theme of a command's output: --theme, else GPULSE_THEME, else the saved setting, else by the terminal's background."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from ..present.theme import Theme
    from .options import Arguments


def theme_of(arguments: Arguments, stream: TextIO) -> Theme:
    """Return the theme for a stream; raise UsageError if GPULSE_THEME names none."""
    from ..present.theme import colors_of, theme_for

    environ = os.environ
    # the settings file is not read for output without colors
    name = arguments.theme or (saved_theme(environ) if colors_of(stream, arguments.color, environ) else "auto")
    return theme_for(stream, arguments.color, environ, name)


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
    from ..store.config_path import config_path

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
