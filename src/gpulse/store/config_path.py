"""Where the settings file is, who else could change it, and the secrets in files that it names."""

from __future__ import annotations

import os

from ..errors import ConfigError

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


MACHINE = "/etc/gpulse/config.toml"  # the machine's own settings, which only an administrator can write


def machine_path(environ: Mapping[str, str]) -> str:
    """Return the path of the machine's settings: $GPULSE_MACHINE_CONFIG, or /etc/gpulse/config.toml."""
    return environ.get("GPULSE_MACHINE_CONFIG") or MACHINE


def writable_by_others(path: str) -> str:
    """Return the file or folder through which somebody other than root could change a file; empty where nobody can."""
    at = os.path.realpath(path)
    while True:
        found = os.stat(at)
        sticky = os.path.isdir(at) and found.st_mode & 0o1000  # others cannot replace what is not theirs
        if found.st_uid != 0 or (found.st_mode & 0o022 and not sticky):
            return at
        if at == "/":
            return ""
        at = os.path.dirname(at)


def read_secret(path: str, what: str) -> str:
    """Return the first line of a file with a token or password, spaces included; raise ConfigError, naming `what` it is, without one."""
    try:
        with open(os.path.expanduser(path), encoding="utf-8", errors="replace") as file:
            secret = file.read(4096).lstrip("\r\n").partition("\n")[0].rstrip("\r")
    except OSError as error:
        raise ConfigError(f"{what} {path} cannot be read ({error.strerror});", "name another file.") from None
    if not secret.strip():
        raise ConfigError(f"{what} {path} is empty;", "name another file.")
    return secret
