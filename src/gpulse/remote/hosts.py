"""Lists of hosts: names, files, Slurm's ranges and the names in ~/.ssh/config."""

from __future__ import annotations

import os
import re

from ..errors import UsageError
from ..sources.slurm import expanded, gpu_nodes, split_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PATTERN = frozenset("*?!")  # in ~/.ssh/config these make a pattern, not a name
# ssh takes user@host and host names; a leading dash would be an option, and other characters have a meaning for some shell.
_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.@:%+-]*$")


def parse_hosts(text: str, ssh_config: str | None = None) -> list[str]:
    """Return the hosts of a list, each once: `a,b`, `gpu[01-16,20]`, `@FILE` with one entry per line, `config` for ~/.ssh/config,
    `slurm` or `slurm:PARTITION` for the nodes with GPUs.

    Raises UsageError if a file cannot be read, a range is none, or a name cannot be one; GpulseError if Slurm does not answer.
    """
    found: list[str] = []
    for entry in split_names(text):
        if entry.startswith("@"):
            found += [host for line in _lines(entry[1:]) for host in parse_hosts(line, ssh_config)]
        elif entry == "config":
            found += configured_hosts(ssh_config or os.path.expanduser("~/.ssh/config"))
        elif entry == "slurm" or entry.startswith("slurm:"):
            found += _slurm_nodes(entry.removeprefix("slurm").removeprefix(":"))
        else:
            found += expanded(entry)
    for host in found:
        if not _NAME.match(host):
            raise UsageError(f"{host!r} is not a host name;", "write hosts as a,b,gpu[01-16], @FILE, config or slurm.")
    return list(dict.fromkeys(found))


def configured_hosts(path: str) -> list[str]:
    """Return the names after `Host` in an ssh configuration, without patterns; raise UsageError if it cannot be read."""
    words = (line.strip().split() for line in _lines(path))
    return [name for first, *names in words if first.lower() == "host" for name in names if not _PATTERN & set(name)]


def _slurm_nodes(partition: str) -> list[str]:
    if partition and not _NAME.match(partition):
        raise UsageError(f"{partition!r} is not a partition of Slurm;", "write it as slurm:PARTITION.")
    nodes = gpu_nodes(partition)
    if not nodes:
        where = f"partition {partition}" if partition else "any partition"
        raise UsageError(
            f"Slurm has no node with a GPU in {where};", "name the hosts, or look at `sinfo -N -o '%N %G'`."
        )
    return nodes


def _lines(path: str) -> Iterable[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 24).splitlines()
    except OSError as error:
        raise UsageError(f"hosts: {path} cannot be read ({error.strerror});", "name another file.") from None
    return [line for line in (line.partition("#")[0].strip() for line in lines) if line]
