"""Who besides root can change a file, a folder, or the way to it: what root runs and believes must not be anybody else's."""

from __future__ import annotations

import os
import stat

from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_LINKS = 40  # as many as the kernel follows


class WeakPoint(Value):
    """A file, folder or link that others can change; `who` is a clause about it: "belongs to ada"."""

    path: str
    who: str


def weak_point(path: str) -> WeakPoint | None:
    """Return where somebody other than root could change what a path leads to; None if nobody can.

    Links are followed one by one, and every folder on the way counts. A path that does not exist counts as far as it does: there,
    others must not be able to create it.
    """
    for step in _steps(os.path.abspath(path)):
        try:
            status = os.lstat(step)
        except OSError:
            return None
        if who := _others(status):
            return WeakPoint(step, who)
    return None


def weak_point_within(folder: str) -> WeakPoint | None:
    """Return the same for a folder and everything in it."""
    if (found := weak_point(folder)) is not None:
        return found
    for where, folders, names in os.walk(folder):
        for name in (*folders, *names):
            try:
                status = os.lstat(path := os.path.join(where, name))
            except OSError:
                continue  # removed meanwhile
            if who := _others(status):
                return WeakPoint(path, who)
            if stat.S_ISLNK(status.st_mode) and (found := weak_point(path)) is not None:
                return found
    return None


def is_open(path: str) -> bool:
    """Return whether every user may run a program: enter all folders on the way, and read and execute the file."""
    try:
        modes = [os.lstat(step).st_mode for step in _steps(os.path.abspath(path))]
        readable = os.stat(path).st_mode & 0o004
    except OSError:
        return False  # it does not exist, or this user may not enter a folder
    return bool(readable) and all(stat.S_ISLNK(mode) or mode & 0o001 for mode in modes)


def _steps(path: str) -> Iterator[str]:
    """Yield every folder and link on the way to a path, and what it leads to; begins with the root."""
    yield "/"
    at, left, links = "/", path.split("/"), 0
    while left:
        name = left.pop(0)
        if name == "..":
            at = os.path.dirname(at)
        if name in ("", ".", ".."):
            continue
        at = os.path.join(at, name)
        yield at
        if os.path.islink(at) and links < _MOST_LINKS:
            links += 1
            target = os.readlink(at)
            left = [*target.split("/"), *left]
            at = "/" if target.startswith("/") else os.path.dirname(at)


def _others(status: os.stat_result) -> str:
    """Return who other than root can change a file, as a clause; empty if nobody can. In a sticky folder all keep what is theirs."""
    if status.st_uid != 0:
        from .claims import user_name

        return f"belongs to {user_name(status.st_uid)}"
    sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if stat.S_ISLNK(status.st_mode) or sticky or not status.st_mode & 0o022:
        return ""
    return "is writable by everybody" if status.st_mode & 0o002 else f"is writable by the group {_group(status.st_gid)}"


def _group(number: int) -> str:
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
