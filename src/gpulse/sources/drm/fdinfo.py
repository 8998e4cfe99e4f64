"""One /proc/PID/fdinfo/FD of a graphics driver: who the client is, what it holds, and how long its engines ran.

The keys are those of the kernel's drm-usage-stats; amdgpu before Linux 5.19 had words of its own.
"""

from __future__ import annotations

_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "kB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ns": 1}
_KINDS = ("resident", "memory", "total", "shared", "purgeable", "active")
_OLD_MEMORY = {"vram mem": "vram", "gtt mem": "gtt", "cpu mem": "cpu"}


class Client:
    """What one descriptor says. `busy` is in ns by engine, `cycles` and `total_cycles` in the GPU's own ticks.

    `memory` holds bytes by region and kind: memory["vram"]["resident"].
    """

    __slots__ = ("busy", "capacity", "cycles", "driver", "id", "memory", "pdev", "total_cycles")

    def __init__(self) -> None:
        self.driver = ""
        self.pdev = ""
        self.id = ""
        self.busy: dict[str, int] = {}
        self.cycles: dict[str, int] = {}
        self.total_cycles: dict[str, int] = {}
        self.capacity: dict[str, int] = {}
        self.memory: dict[str, dict[str, int]] = {}

    def held(self, *prefixes: str) -> int | None:
        """Return the bytes it holds in regions that begin like this; None where it names no such region.

        Resident memory is the figure; drivers without it say `memory`, the oldest only `total`.
        """
        regions = [kinds for region, kinds in self.memory.items() if region.startswith(prefixes)]
        amounts = [next((kinds[kind] for kind in _KINDS[:3] if kind in kinds), None) for kinds in regions]
        known = [amount for amount in amounts if amount is not None]
        return sum(known) if known else None


def parse_client(content: bytes) -> Client | None:
    """Read a file; None when no graphics driver wrote it, or when it does not say which client this is."""
    if b"drm-" not in content and b"pdev:" not in content:
        return None
    client = Client()
    for line in content.partition(b"\0")[0].decode("ascii", "replace").splitlines():
        word, colon, rest = line.partition(":")
        if colon:
            _take(client, word.strip(), rest.split())
    return client if client.id and (client.driver or client.pdev) else None


def _take(client: Client, word: str, values: list[str]) -> None:
    if not values:
        return
    if word == "drm-driver":
        client.driver = values[0]
    elif word in ("drm-pdev", "pdev"):
        client.pdev = values[0].lower()
    elif word == "drm-client-id" or (word == "pasid" and not client.id):
        client.id = values[0]
    elif word.startswith("drm-"):
        _count(client, word[4:], _amount(values))
    elif word in _OLD_MEMORY and (amount := _amount(values)) is not None:
        client.memory.setdefault(_OLD_MEMORY[word], {})["memory"] = amount


def _count(client: Client, word: str, amount: int | None) -> None:
    """File a count; the longer prefixes first, or total-cycles-rcs would be the region cycles-rcs."""
    if amount is None:
        return
    if word.startswith("total-cycles-"):
        client.total_cycles[word[13:]] = amount
    elif word.startswith("engine-capacity-"):
        client.capacity[word[16:]] = amount
    elif word.startswith("engine-"):
        client.busy[word[7:]] = amount
    elif word.startswith("cycles-"):
        client.cycles[word[7:]] = amount
    else:
        kind, dash, region = word.partition("-")
        if dash and kind in _KINDS:
            client.memory.setdefault(region, {})[kind] = amount


def _amount(values: list[str]) -> int | None:
    number = values[0]
    if not (number.isascii() and number.isdecimal() and len(number) < 21):
        return None
    factor = _UNITS.get(values[1] if len(values) > 1 else "")
    return None if factor is None else int(number) * factor
