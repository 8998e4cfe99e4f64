"""Which rank has not joined which collective: asked of NCCL's RAS port, or read from the files of PyTorch's flight recorder."""

from __future__ import annotations

import os
import re
import socket
import time

from ..store.lines import open_foreign
from ..value import Value
from .files import read_environ, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_PORT = 28028
_PATIENCE = 3.0  # seconds; RAS takes two when a process does not respond
_LONGEST = 1 << 20  # bytes of an answer
_LARGEST = 1 << 26  # bytes of a file
_MOST = 16  # ranks that are told
_PREFIXES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_DEFAULTS = ("/tmp/nccl_trace_rank_", "{home}/.cache/torch/comm_lib_trace_rank_")
_RANKS = 1024  # files that are looked for
_COUNTS = re.compile(r"Communicator ranks have different (\w+) operation counts")
_GROUP = re.compile(r"(\d+) ranks have (?:launched up to operation (\d+)|not launched any operations)")
_RANK = re.compile(
    r"Rank (\d+)(?: has (?:launched up to operation (\d+)|not launched any operations))? -- "
    r"GPU (\S+) managed by process (\d+) on node (\S+)"
)
_DEAD = re.compile(r"Process (\d+) on node (\S+) managing GPU (\S+)")


class Laggard(Value):
    """A rank that others wait for: it has done `done` operations of a `collective`, others `others`. A rank that does not respond has
    no collective; `rank`, `pid` and `node` are None or empty where they are not told.
    """

    rank: int | None
    collective: str
    done: int
    others: int
    pid: int | None = None
    node: str = ""


def laggards(pids: Iterable[int]) -> list[Laggard]:
    """Return the ranks that the job of these processes of ours waits for; empty where neither source is there or knows any."""
    pids = [*pids]
    environ = next((found for pid in pids if (found := read_environ(f"/proc/{pid}/environ"))), {})
    return (ask_ras(environ) or recorded(pids, environ))[:_MOST]


# --- NCCL's port


def ask_ras(environ: Mapping[str, str]) -> list[Laggard]:
    """Return what the RAS port of a job says, which only its own user may be asked for: NCCL_RAS_ADDR, else 28028 on this machine."""
    host, port = _address(environ.get("NCCL_RAS_ADDR", ""))
    if not listens(port, os.geteuid()):
        return []
    until = time.monotonic() + _PATIENCE
    answer = b""
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE) as connection:
            connection.sendall(b"verbose status\n")
            while len(answer) < _LONGEST and (left := until - time.monotonic()) > 0:
                connection.settimeout(left)
                piece = connection.recv(1 << 16)
                if not piece:
                    break
                answer += piece
    except OSError:
        pass  # what has come so far may tell
    return parse_ras(answer.decode("utf-8", "replace"))


def listens(port: int, user: int, root: str = "") -> bool:
    """Return whether a process of a user listens on a TCP port of this machine."""
    for name in ("tcp", "tcp6"):
        for line in (read_text(f"{root}/proc/net/{name}", 1 << 20) or "").splitlines()[1:]:
            words = line.split()
            if len(words) > 7 and words[3] == "0A" and words[1].endswith(f":{port:04X}") and words[7] == str(user):
                return True
    return False


def parse_ras(text: str) -> list[Laggard]:
    """Return the ranks that are behind, and processes that do not respond, of what RAS answers to VERBOSE STATUS."""
    found: list[Laggard] = []
    collective, most, group = "", 0, 0
    for line in map(str.strip, text.splitlines()):
        if counts := _COUNTS.fullmatch(line):
            collective, most, group = counts[1], 0, 0
        elif line.startswith("#"):
            collective = ""
        elif collective and (ranks := _GROUP.fullmatch(line)):
            group = int(ranks[2] or 0)
            most = max(most, group)
        elif collective and (rank := _RANK.fullmatch(line)):
            done = group if " has " not in line else int(rank[2] or 0)
            most = max(most, done)
            found.append(Laggard(int(rank[1]), collective, done, most, int(rank[4]), rank[5]))
        elif dead := _DEAD.fullmatch(line):
            found.append(Laggard(None, "", 0, 0, int(dead[1]), dead[2]))
        for one in found:
            if collective and one.collective == collective:
                one.others = max(one.others, most)
    return [one for one in found if not one.collective or one.done < one.others]


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "localhost", int(port) if port.isdecimal() and int(port) < 65536 else _PORT


# --- PyTorch's files


def recorded(pids: Iterable[int], environ: Mapping[str, str]) -> list[Laggard]:
    """Return the ranks that are behind in the dumps that a job of ours has written since it was started."""
    since = min((_started(pid) for pid in pids), default=time.time())
    prefixes = [environ[name] for name in _PREFIXES if name in environ]
    prefixes += [one.format(home=environ.get("HOME", "")) for one in _DEFAULTS]
    for prefix in prefixes:
        dumps = {rank: dump for rank in range(_RANKS) if (dump := read_dump(f"{prefix}{rank}", since)) is not None}
        if dumps:
            return behind(dumps)
    return []


def read_dump(path: str, since: float = 0.0) -> dict[str, Any] | None:
    """Return a dump of the flight recorder: a file of this user that is newer than `since`; None for anything else.

    It is a pickle, of which only plain data is read: one that names a class or function is refused.
    """
    if (opened := open_foreign(path)) is None:
        return None
    handle, status = opened
    try:
        if status.st_uid != os.geteuid():
            return None
        if status.st_size > _LARGEST or status.st_mtime < since:
            return None
        with open(handle, "rb", closefd=False) as file:
            return parse_dump(file.read(_LARGEST))
    finally:
        os.close(handle)


def parse_dump(content: bytes) -> dict[str, Any] | None:
    """Return the data of a dump, written as a pickle or as JSON; None where it is neither, or not plain data."""
    import io
    import json
    import pickle

    class PlainData(pickle.Unpickler):
        """Reads numbers, texts and containers; whatever could run code is an error."""

        def find_class(self, module: str, name: str) -> Any:
            raise pickle.UnpicklingError(f"{module}.{name} is not plain data")

    try:
        if content.lstrip()[:1] == b"{":
            plain = json.loads(content)
        else:
            plain = PlainData(io.BytesIO(content)).load()
    except Exception:  # noqa: BLE001  # damaged bytes make the unpickler raise nearly anything
        return None
    return plain if isinstance(plain, dict) and isinstance(plain.get("entries"), list) else None


def behind(dumps: Mapping[int, Mapping[str, Any]]) -> list[Laggard]:
    """Return the ranks whose last collective of a group is before that of others, the furthest behind first."""
    last: dict[str, dict[int, tuple[int, str]]] = {}
    for rank, dump in dumps.items():
        for entry in dump["entries"]:
            if not isinstance(entry, dict) or entry.get("is_p2p"):
                continue
            number, name = entry.get("collective_seq_id"), entry.get("profiling_name")
            if not isinstance(number, int) or not isinstance(name, str):
                continue
            group = entry.get("process_group")
            ranks = last.setdefault(str(group[0]) if isinstance(group, (list, tuple)) and group else "", {})
            if number >= ranks.get(rank, (-1, ""))[0]:
                ranks[rank] = number, name.rpartition(":")[2][:60]
    found = []
    for ranks in last.values():
        most = max(number for number, _ in ranks.values())
        name = next(name for number, name in ranks.values() if number == most)
        found += [Laggard(rank, name, number, most) for rank, (number, _) in ranks.items() if number < most]
    return sorted(found, key=lambda one: one.done - one.others)


def _started(pid: int) -> float:
    """Return when a process was started, in seconds since 1970: its folder in /proc is that old; now if it has ended."""
    try:
        return os.stat(f"/proc/{pid}").st_ctime
    except OSError:
        return time.time()
