"""Paths of a GT's files in i915 and xe: clocks, idle time, throttle reasons. A GT is for rendering and compute, or for media."""

from __future__ import annotations

import os

from ..files import names, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..drm.cards import Card


class Gt:
    """The files of one GT by meaning, as paths below the card's folder; one that the kernel does not have is empty."""

    __slots__ = ("actual", "highest", "idle", "media", "reasons", "status")

    def __init__(self, card: Card, actual: str, highest: tuple[str, ...], idle: tuple[str, ...], media: bool) -> None:
        self.actual = actual
        self.highest = _existing(card, highest)
        self.idle = _existing(card, idle)
        self.media = media
        self.status = ""
        self.reasons: dict[str, str] = {}  # word of the driver → file


def find_gts(card: Card) -> list[Gt]:
    """Return the GTs of a card; at least one, whatever the kernel has of it."""
    found = _xe(card) if os.path.isdir(f"{card.device}/tile0") else _i915(card)
    return found or [_old(card)]


def _xe(card: Card) -> list[Gt]:
    gts = []
    for tile in _numbered(card.device, "tile"):
        for gt in _numbered(f"{card.device}/{tile}", "gt"):
            base = f"device/{tile}/{gt}"
            media = (read_text(f"{card.path}/{base}/gtidle/name", 64) or "").endswith("-mc")
            made = Gt(card, f"{base}/freq0/act_freq", (f"{base}/freq0/rp0_freq", f"{base}/freq0/max_freq"),
                      (f"{base}/gtidle/idle_residency_ms",), media)  # fmt: skip
            _reasons(made, card, f"{base}/freq0/throttle", "status", "reason_")
            gts.append(made)
    return gts


def _i915(card: Card) -> list[Gt]:
    gts = []
    for at, gt in enumerate(_numbered(f"{card.path}/gt", "gt")):
        base = f"gt/{gt}"
        idle = (f"{base}/rc6_residency_ms",) if at else (f"{base}/rc6_residency_ms", "power/rc6_residency_ms")
        made = Gt(
            card, f"{base}/rps_act_freq_mhz", (f"{base}/rps_RP0_freq_mhz", f"{base}/rps_max_freq_mhz"), idle, at > 0
        )
        _reasons(made, card, base, "throttle_reason_status", "throttle_reason_")
        gts.append(made)
    return gts


def _old(card: Card) -> Gt:
    """Return the one GT of kernels before 5.18, whose files are those of the card."""
    return Gt(card, "gt_act_freq_mhz", ("gt_RP0_freq_mhz", "gt_max_freq_mhz"), ("power/rc6_residency_ms",), False)


def _reasons(gt: Gt, card: Card, folder: str, status: str, prefix: str) -> None:
    entries = names(f"{card.path}/{folder}")
    gt.status = f"{folder}/{status}" if status in entries else ""
    gt.reasons = {
        name.removeprefix(prefix): f"{folder}/{name}" for name in entries if name.startswith(prefix) and name != status
    }


def _numbered(folder: str, kind: str) -> list[str]:
    found = [name for name in names(folder) if name.startswith(kind) and name[len(kind) :].isdecimal()]
    return sorted(found, key=lambda name: int(name[len(kind) :]))


def _existing(card: Card, paths: tuple[str, ...]) -> str:
    return next((path for path in paths if os.path.exists(f"{card.path}/{path}")), "")
