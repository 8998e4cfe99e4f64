"""The processes that have a GPU open, found in /proc: which client belongs to whom, what it holds, how busy it keeps the GPU.

A walk over all descriptors of a machine costs milliseconds, so a process without one is left alone for some seconds. The keys of
a /proc/PID/fdinfo/FD are those of the kernel's drm-usage-stats; amdgpu before Linux 5.19 had words of its own.
"""

from __future__ import annotations

import os
import threading
import time

from ...value import Value, fresh
from ..files import link, names, read_bytes, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_RESCAN = 3.0  # seconds after which a process that had no GPU open is searched again
_FRESH = 0.2  # seconds for which the result of one walk is reused by all GPUs of a sample
_APART = 0.05  # minimum seconds between two counts
_DEVICES = ("/dev/dri/", "/dev/accel/")
_BROKERS = frozenset({"systemd-logind", "elogind-daemon", "seatd"})  # they hold descriptors for others


class ClientUse(Value):
    """One client of one GPU: who holds it and, by engine, its share of the time since the count before, 0 to 100."""

    pid: int
    client: Client
    shares: dict[str, float] | None


class Clients:
    """All clients of a machine's GPUs, read by any thread.

    In a recorded tree, a client whose counts do not change has no share, rather than 0.
    """

    def __init__(self, root: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = f"{root}/proc"
        self._clock = clock
        self._lock = threading.Lock()
        self._walked = float("-inf")
        self._empty: dict[int, float] = {}  # pid → when it was last searched in vain
        self._open: dict[int, tuple[float, list[str]]] = {}  # pid → when it was searched, its descriptors of a GPU
        self._owners: dict[tuple[str, str], int] = {}
        self._rates: dict[tuple[str, str], Rate] = {}
        self._uses: list[ClientUse] = []
        self._hidden: set[int] = set()
        self._recorded = bool(root)

    @property
    def hidden(self) -> int:
        """Number of processes whose descriptors this user may not read."""
        return len(self._hidden)

    @property
    def readable(self) -> bool:
        """Whether there is a /proc to search at all: a recorded tree may have none."""
        return os.path.isdir(self._proc)

    def expire(self) -> None:
        """Begin a new sample: the next question walks again."""
        self._walked = float("-inf")

    def of_slot(self, slot: str) -> list[ClientUse]:
        """Return the clients of the GPU in this PCI slot."""
        with self._lock:
            if self._clock() - self._walked >= _FRESH:
                self._uses = list(self._walk())
                self._walked = self._clock()
            return [use for use in self._uses if use.client.pdev == slot]

    def _walk(self) -> Iterator[ClientUse]:
        """Read every client once, whatever the number of descriptors and processes that share it."""
        found: dict[tuple[str, str], tuple[int, Client]] = {}
        for pid in self._pids():
            for client in self._clients(pid):
                key = (client.pdev, client.id)
                if key not in found or self._prefers(pid, found[key][0], key):
                    found[key] = (pid, client)
        self._owners = {key: pid for key, (pid, _) in found.items()}
        rates = self._rates
        self._rates = {key: rates.get(key) or Rate() for key in found}
        for key, (pid, client) in found.items():
            yield ClientUse(pid, client, self._rates[key].shares(client, self._clock(), self._recorded))

    def _pids(self) -> list[int]:
        now = self._clock()
        pids = sorted([int(name) for name in names(self._proc) if name.isdecimal() and name.isascii()])
        alive = set(pids)
        oldest = now - _RESCAN
        self._empty = {pid: at for pid, at in self._empty.items() if at > oldest and pid in alive}
        self._hidden &= alive
        self._open = {pid: found for pid, found in self._open.items() if pid in alive}
        return [pid for pid in pids if pid not in self._empty]

    def _clients(self, pid: int) -> Iterator[Client]:
        now = self._clock()
        at, descriptors = self._open.get(pid, (float("-inf"), []))
        if now - at >= _RESCAN:
            at, descriptors = now, self._search(pid)
        if not descriptors:
            self._empty[pid] = now
            self._open.pop(pid, None)
            return
        self._open[pid] = (at, descriptors)
        folder = f"{self._proc}/{pid}/fdinfo"
        for descriptor in descriptors:
            content = read_bytes(f"{folder}/{descriptor}", 16384)
            client = None if content is None else parse_client(content)
            if client is not None:
                yield client

    def _search(self, pid: int) -> list[str]:
        """Return the descriptors of a process that lead to a GPU; all of them where only fdinfo was recorded."""
        folder = f"{self._proc}/{pid}"
        try:
            descriptors = os.listdir(f"{folder}/fd")
        except FileNotFoundError:
            return names(f"{folder}/fdinfo")
        except OSError:
            self._hidden.add(pid)
            return []
        self._hidden.discard(pid)
        return [name for name in descriptors if link(f"{folder}/fd/{name}").startswith(_DEVICES)]

    def _prefers(self, pid: int, other: int, key: tuple[str, str]) -> bool:
        """Return whether a shared client is attributed to this process rather than the other: the previous owner, else the lowest pid."""
        if (before := self._owners.get(key)) in (pid, other):
            return before == pid
        return self._is_broker(other) and not self._is_broker(pid)

    def _is_broker(self, pid: int) -> bool:
        return pid == 1 or (read_text(f"{self._proc}/{pid}/comm", 64) or "") in _BROKERS


class Rate:
    """The last counts of one client. A count that goes back is held at its maximum, as the kernel's rules say."""

    __slots__ = ("_at", "_counts", "_last", "_read")

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, int]] = {}  # engine → busy, ticks
        self._read: dict[str, tuple[int, int]] = {}  # as it was read, before anything was held
        self._at = 0.0
        self._last: dict[str, float] | None = None

    def shares(self, client: Client, now: float, recorded: bool = False) -> dict[str, float] | None:
        """Return the share of each engine since the counts before, or None for the first; counts too close keep the last."""
        counts = {engine: (busy, -1) for engine, busy in client.busy.items()}
        for engine, cycles in client.cycles.items():
            if engine not in counts and engine in client.total_cycles:
                counts[engine] = (cycles, client.total_cycles[engine])
        before, elapsed = self._counts, now - self._at
        if before and elapsed < _APART:
            return self._last
        held = {engine: _held(count, before.get(engine)) for engine, count in counts.items()}
        still, self._read = recorded and counts == self._read, counts
        if before:
            self._last = None if still else dict(self._grown(client, before, held, elapsed * 1e9))
        self._counts, self._at = held, now
        return self._last

    @staticmethod
    def _grown(
        client: Client, before: dict[str, tuple[int, int]], held: dict[str, tuple[int, int]], elapsed: float
    ) -> Iterator[tuple[str, float]]:
        for engine, (busy, ticks) in held.items():
            if engine not in before:
                continue
            whole = elapsed if ticks < 0 else ticks - before[engine][1]
            if whole > 0:
                share = 100.0 * (busy - before[engine][0]) / (whole * max(1, client.capacity.get(engine, 1)))
                yield engine, min(100.0, share)


def _held(count: tuple[int, int], before: tuple[int, int] | None) -> tuple[int, int]:
    return count if before is None else (max(count[0], before[0]), max(count[1], before[1]))


def by_pid(uses: Iterable[ClientUse]) -> dict[int, list[ClientUse]]:
    """Return the clients of each process."""
    found: dict[int, list[ClientUse]] = {}
    for use in uses:
        found.setdefault(use.pid, []).append(use)
    return found


def memory_held(uses: Iterable[ClientUse], regions: tuple[str, ...]) -> int | None:
    """Return the bytes that clients hold in regions that begin like this; None where none names such a region."""
    known = [held for use in uses if (held := use.client.held(*regions)) is not None]
    return sum(known) if known else None


def engine_share(uses: Iterable[ClientUse], engines: Iterable[str]) -> float | None:
    """Return the share of the busiest of these engines, its clients added up; None before any rate."""
    known = [use.shares for use in uses if use.shares is not None]
    sums = [sum(shares.get(engine, 0.0) for shares in known) for engine in engines]
    return round(min(100.0, max(sums)), 1) if known else None


def busiest(uses: Iterable[ClientUse]) -> float | None:
    """Return the busy share of a GPU as its clients tell it: the busiest engine, its clients added up; None before any rate."""
    sums: dict[str, float] = {}
    for use in uses:
        for engine, share in (use.shares or {}).items():
            sums[engine] = sums.get(engine, 0.0) + share
    return round(min(100.0, max(sums.values())), 1) if sums else None


_UNITS = {b"B": 1, b"KiB": 1 << 10, b"kB": 1 << 10, b"MiB": 1 << 20, b"GiB": 1 << 30, b"ns": 1}
_KINDS = ("resident", "memory", "total")  # the figure that counts first; shared, active and purgeable are parts of it
_OLD_MEMORY = {"vram mem": "vram", "gtt mem": "gtt", "cpu mem": "cpu"}
_TEXTS = {"drm-driver": "driver", "drm-pdev": "pdev", "pdev": "pdev", "drm-client-id": "id", "pasid": "pasid"}
# The longer prefixes first, or total-cycles-rcs would be the region cycles-rcs.
_COUNTS = (
    ("drm-total-cycles-", "total_cycles"),
    ("drm-engine-capacity-", "capacity"),
    ("drm-engine-", "busy"),
    ("drm-cycles-", "cycles"),
)
_MOST_WORDS = 1024


class Client(Value):
    """The usage statistics of one descriptor. `busy` is in ns by engine, `cycles` and `total_cycles` in the GPU's own ticks.

    `memory` holds bytes by region and kind: memory["vram"]["resident"].
    """

    driver: str = ""
    pdev: str = ""
    id: str = ""
    busy: dict[str, int] = fresh(factory=dict)
    cycles: dict[str, int] = fresh(factory=dict)
    total_cycles: dict[str, int] = fresh(factory=dict)
    capacity: dict[str, int] = fresh(factory=dict)
    memory: dict[str, dict[str, int]] = fresh(factory=dict)

    def held(self, *prefixes: str) -> int | None:
        """Return the bytes it holds in regions that begin like this; None where it names no such region.

        Prefers resident memory; older drivers only have `memory` or `total`.
        """
        regions = [kinds for region, kinds in self.memory.items() if region.startswith(prefixes)]
        amounts = [next((kinds[kind] for kind in _KINDS if kind in kinds), None) for kinds in regions]
        known = [amount for amount in amounts if amount is not None]
        return sum(known) if known else None


def parse_client(content: bytes) -> Client | None:
    """Read a file; None if no graphics driver wrote it, or if it does not say which client this is."""
    if b"drm-" not in content and b"pdev:" not in content:
        return None
    client = Client()
    pasid = ""
    for line in content.partition(b"\0")[0].split(b"\n"):
        word, _, rest = line.partition(b":")
        meaning = _MEANINGS.get(word) or _learn(word)
        if meaning is _NOTHING:
            continue
        what, name, kind = meaning
        if what == "text":
            text = rest.strip().decode("ascii", "replace")
            if name == "pasid":
                pasid = text
            else:
                setattr(client, name, text.lower() if name == "pdev" else text)
        elif (amount := _amount(rest.split())) is not None:
            if what == "memory":
                client.memory.setdefault(name, {})[kind] = amount
            else:
                getattr(client, what)[name] = amount
    client.id = client.id or pasid  # what kernels before 5.19 have
    return client if client.id and (client.driver or client.pdev) else None


_NOTHING = ("", "", "")
_MEANINGS: dict[bytes, tuple[str, str, str]] = {}  # words repeat in every file of every sample: each is looked at once


def _learn(word: bytes) -> tuple[str, str, str]:
    meaning = _meaning(word.strip().decode("ascii", "replace"))
    if len(_MEANINGS) < _MOST_WORDS:
        _MEANINGS[word] = meaning
    return meaning


def _meaning(word: str) -> tuple[str, str, str]:
    """Return what a word stands for: the attribute of a client, the engine or region, and the kind of memory."""
    if word in _TEXTS:
        return "text", _TEXTS[word], ""
    if word in _OLD_MEMORY:
        return "memory", _OLD_MEMORY[word], "memory"
    for prefix, attribute in _COUNTS:
        if word.startswith(prefix):
            return attribute, word[len(prefix) :], ""
    kind, dash, region = word.removeprefix("drm-").partition("-")
    return ("memory", region, kind) if word.startswith("drm-") and dash and kind in _KINDS else _NOTHING


def _amount(values: list[bytes]) -> int | None:
    if not values or not values[0].isdigit() or len(values[0]) > 20:
        return None
    if len(values) == 1:
        return int(values[0])
    factor = _UNITS.get(values[1])
    return None if factor is None else int(values[0]) * factor
