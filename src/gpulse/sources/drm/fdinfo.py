"""One /proc/PID/fdinfo/FD of a graphics driver: who the client is, what it holds, and how long its engines ran.

The keys are those of the kernel's drm-usage-stats; amdgpu before Linux 5.19 had words of its own.
"""

from __future__ import annotations

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


class Client:
    """The usage statistics of one descriptor. `busy` is in ns by engine, `cycles` and `total_cycles` in the GPU's own ticks.

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
