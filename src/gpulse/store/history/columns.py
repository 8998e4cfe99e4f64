"""Columns: the values of one metric over time as small whole numbers, packed.

A value is kept to a step that depends on its unit (`coding_of`), so that the differences from row to row are small and deflate
well: percent 0.01, watts, joules and degrees 0.1, memory 64 KiB, seconds 1 ms, megahertz and counts 1 (whole numbers exact to
2**53), rates 1 part in 8192. What does not fit its coding is kept as it is, in 8 bytes.
"""

from __future__ import annotations

import struct
from array import array
from itertools import accumulate
from operator import add, sub

from ... import units
from ...model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, SERVER_METRICS
from ...model.metric import Number
from ...value import Value
from ..place import DamagedBlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ...model.metric import Metric

    Floats = Sequence[float]  # by this name, a Value stores the very list it is given, not a tuple of it

NAN = float("nan")
SERVING = "serving:"  # begins the name under which a model server is kept beside the GPUs
PROCESSES = "processes"  # processes:0:cpu_percent is the CPU of the process that holds most memory of a GPU
AS_IS, RATE = 0, 1  # codings that are not a number of steps per unit
_PER = {2: 1 / 65536, 3: 1, 4: 10, 5: 100, 6: 1000}  # on disk: a coding never changes its meaning
_CODINGS = {
    units.BYTES: 2,
    units.COUNT: 3,
    units.MEGAHERTZ: 3,
    units.CELSIUS: 4,
    units.WATT: 4,
    units.JOULE: 4,
    units.SECOND: 6,
    **dict.fromkeys(
        (units.BYTES_PER_SECOND, units.TOKENS_PER_SECOND, units.TOKENS_PER_JOULE, units.LATENCY, units.MONEY), RATE
    ),
}
_ANY = 5
_RATE_BITS = 11  # of float32's 23 bits of fraction, those that are dropped
_WIDTHS = (("b", 1 << 7), ("h", 1 << 15), ("i", 1 << 31), ("q", 1 << 63))
_SIZES = {"-": 0, "b": 1, "h": 2, "i": 4, "q": 8, "d": 8}
_HEAD = struct.Struct("<IBBcccq")  # slot, coding, has gaps, widths of mean, low and high, first value
_ALL = 1
_SHARES = (0.0, 1.0, *((step + 0.5) / 254 for step in range(254)))  # by the byte on disk
_COUNT = struct.Struct("<H")


def metrics_of(owner: str) -> Mapping[str, Metric]:
    """Return the metrics that an owner of values has: a GPU by its UUID, a model server, or with an empty text the host."""
    return (SERVER_METRICS if owner.startswith(SERVING) else GPU_METRICS) if owner else HOST_METRICS


def coding_of(key: str, owner: str) -> int:
    """Return how values of a metric are kept; flags, words and units of no known step to 0.01."""
    metric = metrics_of(owner).get(key)
    if key.startswith(f"{PROCESSES}:"):
        metric = PROCESS_METRICS.get(key.rpartition(":")[2])
    return _CODINGS.get(metric.unit, _ANY) if isinstance(metric, Number) else _ANY


def sound(text: str) -> str:
    """Return text that SQLite takes: what processes and boards say may hold halves of characters."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class Column(Value):
    """The values of one metric: `mean`, `low` and `high` a row, NaN if there is none; `gaps` says whether any is missing.

    At full resolution the three are one and the same list. `shares` says for which part of its time each row has values, as far as
    that is not all of it; None where it is.
    """

    coding: int
    mean: Floats
    low: Floats
    high: Floats
    gaps: bool
    shares: Sequence[float] | None = None

    @classmethod
    def of_ticks(cls, coding: int, values: Sequence[float]) -> Column:
        """Return the column of values at full resolution."""
        total = sum(values)
        return cls(coding, values, values, values, gaps=total != total)


def pack(columns: dict[int, Column]) -> bytes:
    """Return columns by slot as bytes; a column without any value is left out."""
    import zlib

    heads: list[bytes] = []
    bodies: list[bytes] = []
    for slot, column in columns.items():
        if (packed := _packed(column)) is not None:
            coding, gaps, widths, first, body = packed
            heads.append(_HEAD.pack(slot, coding, gaps, *(width.encode() for width in widths), first))
            bodies.append(body)
    return zlib.compress(b"".join((_COUNT.pack(len(heads)), *heads, *bodies)), 6)


def unpack(data: bytes, rows: int, slots: frozenset[int] | None = None) -> dict[int, Column]:
    """Return the columns of some slots, or of all, that are there; raise DamagedBlock when the bytes are not what was packed."""
    import zlib

    try:
        return _columns(zlib.decompress(data), rows, slots)
    except (zlib.error, struct.error, ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise DamagedBlock(f"a block of the history is damaged ({error}).") from None


def _columns(raw: bytes, rows: int, slots: frozenset[int] | None) -> dict[int, Column]:
    (count,) = _COUNT.unpack_from(raw)
    at = _COUNT.size + count * _HEAD.size
    columns: dict[int, Column] = {}
    for slot, coding, gaps, mean, low, high, first in _HEAD.iter_unpack(raw[_COUNT.size : at]):
        widths = mean.decode(), low.decode(), high.decode()
        size = rows * (bool(gaps) + sum(map(_SIZES.__getitem__, widths)))
        if at + size > len(raw):
            raise ValueError("it is too short")
        if slots is None or slot in slots:
            columns[slot] = _unpacked(raw[at : at + size], rows, coding, bool(gaps), widths, first)
        at += size
    if at != len(raw):
        raise ValueError("it is too long")
    return columns


def _packed(column: Column) -> tuple[int, bool, str, int, bytes] | None:
    whole = column.mean is column.low
    mean, low, high = column.mean, column.low, column.high
    present = b""
    if column.gaps:
        present = _presence(mean, column.shares)
        if not any(present):
            return None
        mean = _filled(mean)
        low, high = (mean, mean) if whole else (_filled(low), _filled(high))
    try:
        steps = _to_steps(mean, column.coding)
        widths, body = _ints(list(map(sub, steps, [steps[0], *steps])))
        if not whole:  # the spread around the mean is small, often nothing
            below, under = _ints(list(map(sub, steps, _to_steps(low, column.coding))))
            above, over = _ints(list(map(sub, _to_steps(high, column.coding), steps)))
            widths, body = widths + below + above, body + under + over
        return column.coding, bool(present), widths.ljust(3, "-"), _fitting(steps[0]), present + body
    except (OverflowError, ValueError):  # beyond what the coding holds
        lists = (column.mean,) if whole else (column.mean, column.low, column.high)
        body = b"".join(_planes(array("d", values)) for values in lists)
        return AS_IS, False, ("d" * len(lists)).ljust(3, "-"), 0, body


def _unpacked(raw: bytes, rows: int, coding: int, gaps: bool, widths: tuple[str, str, str], first: int) -> Column:
    present = raw[:rows] if gaps else b""
    parts: list[Any] = []
    at = len(present)
    for width in widths:
        if width != "-":
            size = rows * _SIZES[width]
            parts.append(_from_planes(raw[at : at + size], width))
            at += size
    if coding == AS_IS:
        column = Column.of_ticks(AS_IS, parts[0])
        if len(parts) == 3:
            column.low, column.high = parts[1], parts[2]
        return column
    steps: list[int] = list(accumulate(parts[0], initial=first))[1:]
    lists = [_from_steps(steps, coding)]
    if len(parts) == 3:
        lists.append(_from_steps(list(map(sub, steps, parts[1])), coding))
        lists.append(_from_steps(list(map(add, steps, parts[2])), coding))
    if gaps:
        lists = [[value if there else NAN for value, there in zip(values, present, strict=True)] for values in lists]
    shares = list(map(_SHARES.__getitem__, present)) if any(byte > _ALL for byte in present) else None
    return Column(coding, lists[0], lists[len(lists) // 2], lists[-1], gaps, shares)


def _presence(mean: Sequence[float], shares: Sequence[float] | None) -> bytes:
    """Return a byte for each row: 0 without values, 1 with values for all of its time, else a place in _SHARES."""
    if shares is None:
        return bytes([value == value for value in mean])
    return bytes(
        [
            0 if value != value else _ALL if share > 0.999 else 2 + min(253, int(share * 254))
            for value, share in zip(mean, shares, strict=True)
        ]
    )


def _to_steps(values: Sequence[float], coding: int) -> list[int]:
    """Return values as whole numbers, in the same order of size; raise OverflowError or ValueError where that cannot be."""
    if coding == AS_IS:
        raise OverflowError
    if coding != RATE:
        per = _PER[coding]
        return [round(value * per) for value in values]
    if not 0 <= min(values) <= max(values) < 1e38:
        raise OverflowError
    half = 1 << (_RATE_BITS - 1)
    return [(bits + half) >> _RATE_BITS for bits in memoryview(array("f", values)).cast("B").cast("I")]


def _from_steps(steps: list[int], coding: int) -> list[float]:
    if coding != RATE:
        per = _PER[coding]
        return [step / per for step in steps]  # a division gives 0.1 where a product gives 0.1000000001
    floats = array("f")
    floats.frombytes(array("I", [step << _RATE_BITS for step in steps]).tobytes())
    return floats.tolist()


def _filled(values: Sequence[float]) -> list[float]:
    """Return the values with each gap filled by the one before it, which costs nothing to keep."""
    last = next(value for value in values if value == value)
    return [last := value if value == value else last for value in values]


def _fitting(number: int) -> int:
    if not -(1 << 53) <= number <= 1 << 53:
        raise OverflowError
    return number


def _ints(numbers: list[int]) -> tuple[str, bytes]:
    least, most = min(numbers), max(numbers)
    for code, limit in _WIDTHS:
        if -limit <= least and most < limit:
            return code, _planes(array(code, numbers))
    raise OverflowError


def _planes(numbers: array[int] | array[float]) -> bytes:
    """Return all first bytes, then all second ones: high bytes are alike and deflate to nothing."""
    raw, size = numbers.tobytes(), numbers.itemsize
    return raw if size == 1 else b"".join(raw[plane::size] for plane in range(size))


def _from_planes(raw: bytes, width: str) -> list[Any]:
    size = _SIZES[width]
    rows = len(raw) // size
    whole = bytearray(len(raw))
    for plane in range(size):
        whole[plane::size] = raw[plane * rows : (plane + 1) * rows]
    numbers: array[Any] = array(width)
    numbers.frombytes(whole)
    return numbers.tolist()
