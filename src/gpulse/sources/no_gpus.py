"""A source without GPUs: what is left when no driver responds, so that the host and the program can still be sampled."""

from __future__ import annotations

from .base import Source
from .processes import LinuxMachine


class NoGpuSource(Source):
    """This computer without its GPUs."""

    name = "host"

    def __init__(self) -> None:
        self.machine = LinuxMachine()

    def open(self) -> None:
        """Find nothing, which always succeeds."""

    def close(self) -> None:
        """Release nothing."""
