"""Sensors of one GPU: the hwmon folder of its driver, with sensors found by label and never by number."""

from __future__ import annotations

from ..files import names, read_text
from .kernel import Folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


class Sensors(Folder):
    """The hwmon folder of a device; empty where it has none. `found` is False if there is none."""

    __slots__ = ("_entries", "found", "labels")

    def __init__(self, device: str, drivers: Collection[str] = ()) -> None:
        path = _folder(device, drivers)
        super().__init__(path or f"{device}/hwmon/none")
        self.found = bool(path)
        self._entries = frozenset(names(path)) if path else frozenset()
        self.labels: dict[str, dict[str, str]] = {}  # kind → label → sensor: temp → edge → temp1
        for entry in sorted(self._entries):
            if entry.endswith("_label"):
                sensor = entry.removesuffix("_label")
                label = (read_text(f"{path}/{entry}", 256) or "").lower()
                self.labels.setdefault(sensor.rstrip("0123456789"), {}).setdefault(label, sensor)

    def has(self, name: str) -> bool:
        """Return whether the folder had this file when it was found."""
        return name in self._entries

    def labelled(self, kind: str, *labels: str) -> str:
        """Return the sensor of the first of these labels, as temp2, or an empty string."""
        known = self.labels.get(kind, {})
        return next((known[label] for label in labels if label in known), "")

    def numbered(self, kind: str, suffix: str = "_input") -> list[str]:
        """Return all sensors of a kind that have this file, in order of their numbers."""
        sensors = [entry.removesuffix(suffix) for entry in self._entries if entry.endswith(suffix)]
        ours = [sensor for sensor in sensors if sensor.startswith(kind) and sensor[len(kind) :].isdecimal()]
        return sorted(ours, key=lambda sensor: int(sensor[len(kind) :]))


def _folder(device: str, drivers: Collection[str]) -> str:
    """Return the hwmon folder that names one of these drivers, else the first there is; the NIC of a board has one, too."""
    found = [f"{device}/hwmon/{name}" for name in names(f"{device}/hwmon") if name.startswith("hwmon")]
    own = [path for path in found if (read_text(f"{path}/name", 64) or "") in drivers]
    return (own or found or [""])[0]
