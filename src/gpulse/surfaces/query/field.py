"""What a field is: nvidia-smi's name for a catalog key, and how it writes the value."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...model.metric import Gap, Reading

MIB = 1 << 20
_MISSING: dict[str, str] = {
    "lost": "[GPU is lost]",
    "denied": "[Insufficient Permissions]",
    "failed": "[Unknown Error]",
    "timeout": "[Unknown Error]",
}
NOT_AVAILABLE = "[N/A]"


class Field:
    """One field of a query: `name` as nvidia-smi calls it, `key` in the catalog (empty: gpulse cannot say it).

    `form` writes the value, `unit` follows it and stands in the header, `missing` is written where there is no value
    and the gap says nothing worse.
    """

    __slots__ = ("aliases", "form", "key", "missing", "name", "unit")

    def __init__(
        self,
        name: str,
        key: str,
        form: Callable[[Any], str] = str,
        unit: str = "",
        *,
        aliases: tuple[str, ...] = (),
        missing: str = NOT_AVAILABLE,
    ) -> None:
        self.name = name
        self.key = key
        self.form = form
        self.unit = unit
        self.aliases = aliases
        self.missing = missing

    def header(self, asked: str, units: bool = True) -> str:
        """Return the title of the column for the name it was asked by."""
        return f"{asked} [{self.unit}]" if self.unit and units else asked

    def text(self, reading: Reading, units: bool = True) -> str:
        """Return the value as nvidia-smi writes it."""
        value = reading.get(self.key) if self.key else None
        if value is None:
            return missing_text(reading.gap(self.key) if self.key else None, self.missing)
        return f"{self.form(value)} {self.unit}" if self.unit and units else self.form(value)


def missing_text(gap: Gap | None, otherwise: str = NOT_AVAILABLE) -> str:
    """Return nvidia-smi's words for a value that is not there."""
    return _MISSING.get(gap or "", otherwise)
