"""Where the settings file is."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def config_path(environ: Mapping[str, str]) -> str:
    """Return the path of the settings file: $GPULSE_CONFIG, or gpulse/config.toml in $XDG_CONFIG_HOME or ~/.config."""
    if stated := environ.get("GPULSE_CONFIG"):
        return os.path.expanduser(stated)
    folder = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # the XDG specification says to ignore a relative one
        home = environ.get("HOME") or os.path.expanduser("~")
        folder = os.path.join(home, ".config")
    return os.path.join(folder, "gpulse", "config.toml")
