"""What the sources of cards that the kernel lists have in common: their processes, how they close, and the checks of `doctor`."""

from __future__ import annotations

from ...model.snapshot import Check
from ..base import Source
from ..files import read_text
from ..processes import LinuxMachine
from .clients import Clients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .cards import Card


class CardSource(Source):
    """A source whose devices are DRM cards; `root` is prefixed to /proc and /sys: the folder of a recorded machine, or empty."""

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._clients = Clients(root)
        self.machine = LinuxMachine(root)
        self.machine.real = not root  # no signal to a PID that another machine had
        self.devices = []

    def refresh(self) -> None:
        self._clients.expire()

    def close(self) -> None:
        for device in self.devices:
            device.close()
        self.devices = []


def sleeping(cards: Sequence[Card]) -> list[str]:
    """Return the PCI slots of the cards that sleep, without waking them."""
    return [card.slot for card in cards if read_text(f"{card.device}/power/runtime_status", 64) == "suspended"]


def card_checks(cards: Sequence[Card], driver: str) -> list[Check]:
    """Return the number of cards by driver, `driver` for those that name none, and the sleeping ones."""
    found = [Check("ok", "cards", f"{len(cards)} of {', '.join(sorted({card.driver or driver for card in cards}))}.")]
    if asleep := sleeping(cards):
        found.append(Check("note", "asleep", f"{', '.join(asleep)} sleeps and is not woken by gpulse."))
    return found


def process_checks(root: str, remedy: str) -> list[Check]:
    """Return whether processes of other users are hidden, with what to do about it."""
    clients = Clients(root)
    clients.of("")
    if not clients.hidden:
        return []
    text = f"{clients.hidden} processes belong to other users, so their GPU use is not visible."
    return [Check("note", "processes", text, remedy)]
