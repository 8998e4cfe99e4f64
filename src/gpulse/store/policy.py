"""The machine's rules for the queue: limits and priorities per user and group, from a file that only root can write."""

from __future__ import annotations

import os

from ..errors import ConfigError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any


class Policy:
    """Limits and priorities by user, `@group` or `*` for everybody; `fair`: those who used less lately go first.

    `ignored` says why the machine's file, or a part of it, does not count; empty if all is well.
    """

    __slots__ = ("_groups", "_limits", "_priorities", "fair", "ignored")

    def __init__(
        self,
        limits: Mapping[str, int] | None = None,
        priorities: Mapping[str, int] | None = None,
        fair: bool = False,
        ignored: str = "",
        groups: Callable[[str], Collection[str]] | None = None,
    ) -> None:
        self._limits = limits or {}
        self._priorities = priorities or {}
        self.fair = fair
        self.ignored = ignored
        self._groups = groups or groups_of

    def limit(self, user: str) -> int | None:
        """Return how many GPUs a user may have at once; None if nothing is said. Of several groups the largest counts."""
        return self._of(self._limits, user)

    def priority(self, user: str) -> int:
        """Return a user's priority; higher ones go first, 0 is usual."""
        return self._of(self._priorities, user) or 0

    def _of(self, table: Mapping[str, int], user: str) -> int | None:
        if not table or user in table:
            return table.get(user)
        named = [key for key in table if key.startswith("@")]
        groups = self._groups(user) if named else ()
        found = [table[key] for key in named if key[1:] in groups]
        return max(found) if found else table.get("*")


def machine_policy(environ: Mapping[str, str] | None = None) -> Policy:
    """Return the rules of this machine; without a file, or with one that somebody else can write, there are none.

    The environment of a user does not say where the file is, unless `environ` is given.
    """
    from .config_path import machine_path

    if not os.path.exists(machine_path(environ or {})):
        return Policy()
    from .config import read_machine_config

    try:
        table = read_machine_config(environ or {}).get("queue", {})
        return _policy(table if isinstance(table, dict) else {})
    except (ConfigError, UsageError) as error:
        return Policy(ignored=f"the limits of this machine are ignored: {error}")


def parse_share(text: str) -> tuple[str, int]:
    """Parse ada=4, @students=2 or *=8; raise UsageError if it is none of these."""
    who, equals, count = text.partition("=")
    number = count.strip().removeprefix("-")
    if not equals or not who.strip() or not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise UsageError(f"{text!r} is not of the form ada=4, @students=2 or *=8.")
    return who.strip(), int(count)


def groups_of(user: str) -> Collection[str]:
    """Return the names of the groups a user is in; none for a user whom this machine does not know."""
    import grp
    import pwd

    try:
        numbers = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return ()
    return {group.gr_name for group in grp.getgrall() if group.gr_gid in numbers}


def _policy(table: Mapping[str, Any]) -> Policy:
    def shares(key: str) -> dict[str, int]:
        given = table.get(key, [])
        return dict(parse_share(word) for word in given if isinstance(word, str)) if isinstance(given, list) else {}

    return Policy(shares("limits"), shares("priorities"), table.get("fair") is True)
