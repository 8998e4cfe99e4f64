"""Lists of hosts: names, files, Slurm's ranges and the names in ~/.ssh/config."""

from __future__ import annotations

import os
import re

from ..errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST = 10_000  # hosts in one list; more is a typing error in a range
_RANGE = re.compile(r"^([^\[\]]*)\[([0-9,-]+)\](.*)$")
_PATTERN = frozenset("*?!")  # in ~/.ssh/config these make a pattern, not a name
# ssh takes user@host and host names; a leading dash would be an option, and other characters have a meaning for some shell.
_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.@:%+-]*$")


def parse_hosts(text: str, ssh_config: str | None = None) -> list[str]:
    """Return the hosts of a list, each once: `a,b`, `gpu[01-16,20]`, `@FILE` with one entry per line, `config` for ~/.ssh/config.

    Raises UsageError if a file cannot be read, a range is none, or a name cannot be one.
    """
    found: list[str] = []
    for entry in _entries(text):
        if entry.startswith("@"):
            found += [host for line in _lines(entry[1:]) for host in parse_hosts(line, ssh_config)]
        elif entry == "config":
            found += configured_hosts(ssh_config or os.path.expanduser("~/.ssh/config"))
        else:
            found += expanded(entry)
    for host in found:
        if not _NAME.match(host):
            raise UsageError(f"{host!r} is not a host name;", "write hosts as a,b,gpu[01-16], @FILE or config.")
    return list(dict.fromkeys(found))


def expanded(entry: str) -> list[str]:
    """Return the names of a range as Slurm writes it: gpu[01-03,7] is gpu01, gpu02, gpu03, gpu7."""
    match = _RANGE.match(entry)
    if match is None:
        return [entry]
    before, numbers, after = match.groups()
    names: list[str] = []
    for part in numbers.split(","):
        low, dash, high = part.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise UsageError(f"{entry!r} is not a range of hosts;", "write it as gpu[01-16,20].")
        first, last = int(low), int(high or low)
        if last < first or last - first >= MOST:
            raise UsageError(f"{entry!r} is not a range of hosts;", "write it as gpu[01-16,20].")
        for number in range(first, last + 1):
            names += expanded(f"{before}{number:0{len(low)}d}{after}")
            if len(names) > MOST:
                raise UsageError(f"{entry!r} has more than {MOST} hosts;", "name fewer of them.")
    return names


def configured_hosts(path: str) -> list[str]:
    """Return the names after `Host` in an ssh configuration, without patterns; raise UsageError if it cannot be read."""
    words = (line.strip().split() for line in _lines(path))
    return [name for first, *names in words if first.lower() == "host" for name in names if not _PATTERN & set(name)]


def _entries(text: str) -> Iterator[str]:
    """Yield the parts between commas and spaces that are not inside brackets."""
    for part in re.split(r"[,\s]+(?![^\[]*\])", text):
        if part:
            yield part


def _lines(path: str) -> Iterable[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 24).splitlines()
    except OSError as error:
        raise UsageError(f"hosts: {path} cannot be read ({error.strerror});", "name another file.") from None
    return [line for line in (line.partition("#")[0].strip() for line in lines) if line]
