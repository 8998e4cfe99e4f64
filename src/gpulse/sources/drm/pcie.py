"""The PCIe link of a GPU: that of the slot, which big cards reach through a switch of their own."""

from __future__ import annotations

import os

from ..files import read_text
from .cards import is_slot

_GENERATIONS = ((2.5, 1), (5.0, 2), (8.0, 3), (16.0, 4), (32.0, 5), (64.0, 6), (128.0, 7))
LANES = (1, 2, 4, 8, 12, 16, 32)


def generation(speed: float) -> int | None:
    """Return the PCIe generation of a speed in GT/s; None for a speed no generation has."""
    return next((number for rate, number in _GENERATIONS if abs(speed - rate) < 0.05 * rate), None)


def bridges_above(device: str) -> list[str]:
    """Return the folders of the PCI bridges above a device, nearest first; none where the tree holds the device alone."""
    found = []
    path = os.path.dirname(os.path.realpath(device))
    while is_slot(os.path.basename(path)):
        found.append(path)
        path = os.path.dirname(path)
    return found


def slot_link(device: str, own_vendor: str) -> str:
    """Return the folder whose link is that of the slot.

    AMD cards since Vega hold a switch whose ports are AMD's: the port nearest to the root has the link of the slot. Intel's
    switch has the vendor of Intel's root ports, so there it is the second bridge, if a third one follows.
    """
    above = bridges_above(device)
    if own_vendor == "0x8086":
        return above[1] if len(above) >= 3 else device
    inside = device
    for bridge in above:
        if read_text(f"{bridge}/vendor", 64) != own_vendor:
            break
        inside = bridge
    return inside


def read_link(folder: str, which: str) -> tuple[int | None, int | None]:
    """Return generation and lanes of a link; `which` is current or max. "Unknown" and 0 lanes are None."""
    words = (read_text(f"{folder}/{which}_link_speed", 256) or "").split()
    width = read_text(f"{folder}/{which}_link_width", 64) or ""
    try:
        speed = generation(float(words[0])) if words else None
    except ValueError:
        speed = None
    lanes = int(width) if width.isdecimal() and width.isascii() else 0
    return speed, lanes if lanes in LANES else None
