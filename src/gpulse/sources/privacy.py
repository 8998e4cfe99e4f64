"""Privacy on a shared machine: how much is told of processes that belong to other users, decided where processes are read.

Every surface, recording and history gets its processes from there, so none has to know the policy.
"""

from __future__ import annotations

import os

from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE = "privacy"
COMMANDS = ("full", "program", "none")
USERS = ("name", "number")
_MARK = b"privacy"  # a file without it need not be parsed: that takes longer than a sample


class Privacy(Value):
    """What is told of others' processes: `commands` whole, only the program, or nothing; `users` by name or by number."""

    commands: str = "full"
    users: str = "name"

    def hides(self, owner: int) -> bool:
        """Return whether the command line of a process of this user is not to be told."""
        return self.commands != "full" and owner != os.geteuid()

    def hides_name(self, owner: int) -> bool:
        """Return whether the program of a process of this user is not to be told, either."""
        return self.commands == "none" and self.hides(owner)

    def applied(self, lasting: dict[str, str], owner: int) -> dict[str, str]:
        """Return what may be told of a process: `name`, `command` and `user` as far as they are allowed."""
        if not self.hides(owner):
            return lasting
        hidden = {"command"} if self.commands == "program" else {"command", "name"}
        return {key: text for key, text in lasting.items() if key not in hidden}

    def numbered(self, owner: int) -> bool:
        """Return whether a user is to be told by number."""
        return self.users == "number" and owner != os.geteuid()

    def user(self, name: str, owner: int) -> str:
        """Return how a user is told: by this name or by number; one below 0 belongs to nobody on this machine."""
        return str(owner) if owner >= 0 and self.numbered(owner) else name


def privacy_in_force(environ: Mapping[str, str]) -> Privacy:
    """Return the policy of [privacy] in the machine's settings and in those of this user, the stricter of each.

    A word that nobody knows, or a file that cannot be trusted, is taken for the strictest: `gpulse config check` names the mistake.
    """
    from ..store.place import config_path, machine_path

    tables = [_table(machine_path(environ), environ), _table(config_path(environ), None)]
    chosen = {
        key: max((_rank(words, table[key]) for table in tables if key in table), default=0)
        for key, words in (("commands", COMMANDS), ("users", USERS))
    }
    for key, words in (("commands", COMMANDS), ("users", USERS)):
        if text := environ.get(f"GPULSE_PRIVACY_{key.upper()}"):
            chosen[key] = max(chosen[key], _rank(words, text))
    return Privacy(COMMANDS[chosen["commands"]], USERS[chosen["users"]])


def _rank(words: tuple[str, ...], given: object) -> int:
    return words.index(given) if isinstance(given, str) and given in words else len(words) - 1


def _table(path: str, machine: Mapping[str, str] | None) -> dict[str, object]:
    """Return the table of a file; of the machine's, only if nobody but root could have written it."""
    try:
        with open(path, "rb") as file:
            if _MARK not in file.read(1 << 20):
                return {}
    except OSError:
        return {}
    from ..errors import ConfigError
    from ..store.config import read_config, read_machine_config

    try:
        read = read_config(path) if machine is None else read_machine_config(machine)
    except ConfigError:
        return {"commands": "none"}
    table = read.get(TABLE, {})
    return table if isinstance(table, dict) else {"commands": "none"}
