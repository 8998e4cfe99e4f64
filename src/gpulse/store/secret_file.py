"""Tokens, passwords and keys in files: one reader, which refuses a file that other users can read."""

from __future__ import annotations

import os
import stat

from ..errors import ConfigError
from .place import mount_type

_OTHERS, _GROUP = 0o006, 0o060  # read or write
_IN_MEMORY = ("tmpfs", "ramfs")


def read_secret(path: str, what: str) -> str:
    """Return the first line of a file with a token or password, spaces included.

    Raises ConfigError, naming `what` it is and the file, if it cannot be read, is empty, or can be read by other users.
    """
    name = os.path.expanduser(path)
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            exposed = is_exposed(name, os.fstat(file.fileno()))
            secret = file.read(4096).lstrip("\r\n").partition("\n")[0].rstrip("\r")
    except OSError as error:
        raise ConfigError(f"{what} {path} cannot be read ({error.strerror});", "name another file.") from None
    if exposed:
        raise ConfigError(
            f"{what} {path} is readable by other users;", f"run chmod 600 {path}, and replace the secret in it."
        )
    if not secret.strip():
        raise ConfigError(f"{what} {path} is empty;", "name another file.")
    return secret


def is_exposed(path: str, status: os.stat_result) -> bool:
    """Return whether users other than its owner and root can read or change a file. A pipe, as in `<(pass show gpu)`, is not kept.

    Three kinds of files are accepted with more than mode 600, since secrets are handed over in this way:
    - in a folder that others cannot enter: ~/.config with mode 700, or $CREDENTIALS_DIRECTORY of systemd;
    - readable by a group, and owned by root, who has chosen the group: /etc/gpulse with mode 640, or fsGroup of Kubernetes;
    - readable by all, owned by root, and in memory that is mounted read-only: that is how Kubernetes and Docker mount secrets into a
      container, with mode 644. The user inside cannot change the mode, and no other user can log in there.
    """
    if not stat.S_ISREG(status.st_mode):
        return False
    by_root, others = status.st_uid == 0, bool(status.st_mode & _OTHERS)
    if not others and (by_root or not status.st_mode & _GROUP):
        return False
    return _is_reachable(path) and not (by_root and _is_mounted_secret(path))


def _is_reachable(path: str) -> bool:
    """Return whether every folder above a file can be entered by somebody other than its owner."""
    folder = os.path.dirname(os.path.realpath(path))
    while os.stat(folder).st_mode & 0o011:
        if folder == "/":
            return True
        folder = os.path.dirname(folder)
    return False


def _is_mounted_secret(path: str) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY) and mount_type(os.path.realpath(path)) in _IN_MEMORY
