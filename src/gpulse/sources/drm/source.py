"""What the sources of cards that the kernel lists have in common: one sample of a card, how they open and close, `doctor`."""

from __future__ import annotations

from ...errors import SourceUnavailable
from ..base import Device, DeviceSample, Source, cached_attribute
from ..files import read_text
from ..processes import LinuxMachine
from .cards import find_cards
from .clients import Clients
from .kernel import Folder, Sensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...model.metric import Gap, Value
    from ...model.snapshot import Check
    from ..base import Counter, Key
    from .cards import Card

_ASLEEP = ("suspended", "suspending")


class CardReading:
    """One sample of one card while it is being read, and the keys that are wanted of it."""

    def __init__(self, sample: DeviceSample, keys: Key) -> None:
        self.sample = sample
        self.keys = keys

    def put(self, key: str, value: Value | None, gap: Gap = "unsupported") -> None:
        """Store a value, or the reason why there is none."""
        if key not in self.keys:
            return
        if value is None:
            self.sample.gaps[key] = gap
        else:
            self.sample.values[key] = value

    def count(self, key: str, counter: Counter | None) -> None:
        """Store a counter; without one the key stays unsupported."""
        if key in self.keys and counter is not None:
            self.sample.counters[key] = counter


class CardDevice(Device):
    """One card, never read while it sleeps. A vendor's own class says how to read one that is awake."""

    drivers: tuple[str, ...]
    runtime_status = "power/runtime_status"  # below `files`

    def __init__(self, card: Card, clients: Clients, root: str, folder: str, identity: Mapping[str, Value]) -> None:
        self.card = card
        self.identity = identity
        self._clients = clients
        self._root = root
        self._files = Folder(folder)

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        sample = DeviceSample()
        if self._sleeps():
            self._forget()
            sample.state = "asleep"
            sample.gaps.update(dict.fromkeys(keys - self.identity.keys(), "asleep"))
            return sample
        self._read_awake(sample, keys, process_keys)
        for key in keys:
            if key not in sample.values and key not in sample.gaps and key not in sample.counters:
                sample.gaps[key] = "unsupported"
        self.card.lose(sample, keys)
        return sample

    def close(self) -> None:
        """Close all files; a later read opens them again."""
        self._files.close()
        self._sensors.close()

    def _read_awake(self, sample: DeviceSample, keys: Key, process_keys: Key | None) -> None:
        raise NotImplementedError

    def _forget(self) -> None:
        """Drop counts: after the GPU slept, they do not compare."""

    def _sleeps(self) -> bool:
        return self._files.text(self.runtime_status) in _ASLEEP  # any other file might wake it

    @cached_attribute
    def _sensors(self) -> Sensors:
        return Sensors(self.card.device, self.drivers)


class CardSource(Source):
    """A source whose devices are DRM cards; `root` is prefixed to /proc and /sys: the folder of a recorded machine, or empty."""

    vendor: str
    vendor_id: int
    drivers: tuple[str, ...]  # the first is that of cards that name none
    hidden_remedy: str  # what to do where processes of other users are hidden

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._clients = Clients(root)
        self.machine = LinuxMachine(root)
        self.machine.real = not root  # no signal to a PID that another machine had
        self.devices = []

    def open(self) -> None:
        self.close()
        self.devices = self._found(find_cards(self._root, self.drivers, self.vendor_id))
        if not self.devices:
            raise SourceUnavailable(
                f"{self.vendor}: the kernel has no card of {' or '.join(self.drivers)}.",
                "Check `lspci -k | grep -A3 -i vga`; in a container, /sys must be mounted.",
            )

    def _found(self, cards: list[Card]) -> Sequence[Device]:
        """Return the devices of these cards, and set `driver`."""
        raise NotImplementedError

    def refresh(self) -> None:
        self._clients.expire()

    def close(self) -> None:
        for device in self.devices:
            device.close()
        self.devices = []

    def examine(self) -> list[Check]:
        """Return the cards by driver, those that sleep, what the vendor checks, and whose processes are hidden."""
        from ...model.snapshot import Check

        cards = find_cards(self._root, self.drivers, self.vendor_id)
        if not cards:
            return [Check("note", "cards", f"the kernel has no card of {' or '.join(self.drivers)}.")]
        named = sorted({card.driver or self.drivers[0] for card in cards})
        found = [Check("ok", "cards", f"{len(cards)} of {', '.join(named)}.")]
        asleep = [card for card in cards if read_text(f"{card.device}/power/runtime_status", 64) == "suspended"]
        if asleep:
            slots = ", ".join(card.slot for card in asleep)
            found.append(Check("note", "asleep", f"{slots} sleeps and is not woken by gpulse."))
        found += self._checks([card for card in cards if card not in asleep])
        clients = Clients(self._root)
        clients.of_slot("")
        if clients.hidden:
            text = f"{clients.hidden} processes belong to other users, so their GPU use is not visible."
            found.append(Check("note", "processes", text, self.hidden_remedy))
        return found

    def _checks(self, awake: Sequence[Card]) -> list[Check]:
        return []
