"""`gpu_metrics`: one read of a table that the GPU's firmware keeps, decoded by its version.

A field of all ones means that this chip does not have it; so does a field beyond the size the table claims.
"""

from __future__ import annotations

from .layouts import ATTRIBUTES, HEADER, PARTITIONED, PARTITIONS, layout_of, partition_layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .layouts import StructField

_SIZES = (1, 1, 2, 2, 4, 4, 8, 8)  # of the types an attribute of v1_9 can have: u8 s8 u16 s16 u32 s32 u64 s64
_MOST_ATTRIBUTES = 512


class MetricsTable:
    """One decoded table; `version` is (1, 3) for v1_3. Values are as the firmware has them: units differ between versions."""

    __slots__ = ("_attributes", "_content", "_fields", "version")

    def __init__(self, content: bytes, version: tuple[int, int]) -> None:
        self._content = content
        self.version = version
        layout = layout_of(version)
        self._fields: dict[str, StructField] = layout.fields if layout is not None else {}
        self._attributes: dict[str, list[int]] = _attributes(content) if layout is None else {}

    def number(self, *names: str) -> int | None:
        """Return the first of these fields that the table has; of an array, its first valid element."""
        for name in names:
            if found := self.numbers(name):
                return found[0]
        return None

    def numbers(self, name: str) -> list[int]:
        """Return the valid elements of a field."""
        if name in self._attributes:
            return self._attributes[name]
        field = self._fields.get(name)
        return [] if field is None else _valid(self._content, field.offset, field.size, field.count or 1)

    def partitions(self) -> list[dict[str, list[int]]]:
        """Return, for each partition in use, its valid busy figures by name; nothing where the table has none."""
        layout = layout_of(self.version)
        count = self.number("num_partition") or 0
        if layout is None or self.version not in PARTITIONED or not 0 < count <= PARTITIONS:
            return []
        start = -(-layout.size // 8) * 8
        size = (len(self._content) - start - 8) // PARTITIONS  # 8: the last counter and its padding
        part = partition_layout(size)
        if part is None:
            return []
        return [
            {name: _valid(self._content, start + at * size + field.offset, field.size, field.count)
             for name, field in part.fields.items()}
            for at in range(count)
        ]  # fmt: skip


def parse_table(content: bytes | None) -> MetricsTable | None:
    """Decode a table; None for one that is cut short or of a version that is not known."""
    if content is None or len(content) < HEADER:
        return None
    size, version = int.from_bytes(content[:2], "little"), (content[2], content[3])
    if size > len(content):
        return None
    if version == (1, 9):
        return MetricsTable(content[:size] if size > HEADER else content, version)
    layout = layout_of(version)
    if layout is None or size < layout.size:
        return None
    return MetricsTable(content[:size], version)


def _valid(content: bytes, offset: int, size: int, count: int, signed: bool = False) -> list[int]:
    part = content[offset : offset + size * count]
    elements = [part[at : at + size] for at in range(0, len(part) - size + 1, size)]
    nothing = b"\xff" * size
    return [int.from_bytes(element, "little", signed=signed) for element in elements if element != nothing]


def _attributes(content: bytes) -> dict[str, list[int]]:
    """Walk the attributes of v1_9: a 64-bit word describes the values that follow it."""
    count = int.from_bytes(content[4:8], "little", signed=True)
    found: dict[str, list[int]] = {}
    at = 8
    for _ in range(min(count, _MOST_ATTRIBUTES)):
        word = int.from_bytes(content[at : at + 8], "little")
        number, kind, instances = word >> 10 & 0x3FF, word >> 20 & 0xF, word & 0x3FF
        at += 8
        if kind >= len(_SIZES) or at > len(content):
            break
        size = _SIZES[kind]
        if at + size * instances > len(content):
            break
        if number < len(ATTRIBUTES):
            found[ATTRIBUTES[number]] = _valid(content, at, size, instances, kind % 2 == 1)
        at += size * instances
    return found
