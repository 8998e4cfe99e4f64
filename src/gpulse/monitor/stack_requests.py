"""Requests to a running Monitor for its stacks.

A request is a small file beside the Monitor's own, which it answers in another: no signal is used, because programs have handlers
of their own.
"""

from __future__ import annotations

import json
import os

from ..store.lines import remove, replaced
from .presence import folder_of, read_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_LARGEST = 1 << 18  # bytes of an answer that are read


def ask_stacks(pid: int, environ: Mapping[str, str] = os.environ) -> dict[str, Any] | None:
    """Ask the Monitor in a process of this user where GPU time was lost; return its last answer, a tree of frames.

    None before the first answer, which takes a second or so, and where there is no Monitor.
    """
    if (folder := folder_of(pid, environ)) is None:
        return None
    with replaced(_path(folder, pid, "look")):
        pass  # that it is there says everything
    try:
        owner = os.stat(folder).st_uid
    except OSError:
        return None
    return read_private(_path(folder, pid, "stacks"), {0, os.geteuid(), owner}, _LARGEST)


def show_stacks(pid: int, folder: str, tree: Callable[[], dict[str, Any]]) -> None:
    """Answer who asks for stacks, if somebody does; `tree` makes the answer."""
    path = _path(folder, pid, "look")
    if not os.path.lexists(path):  # once per second: nothing more is asked of the disk
        return
    remove(path)
    try:
        with replaced(_path(folder, pid, "stacks")) as file:
            file.write(json.dumps(tree(), separators=(",", ":")).encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def forget(pid: int, folder: str) -> None:
    """Remove the files of a process that ends."""
    for name in ("look", "stacks"):
        remove(_path(folder, pid, name))


def _path(folder: str, pid: int, name: str) -> str:
    return os.path.join(folder, f"{pid}.{name}.json")
