"""What the sources of cards that the kernel lists have in common: their processes, and how they close."""

from __future__ import annotations

from .base import Source
from .drm.clients import Clients
from .processes import LinuxMachine


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
