"""How much memory a discrete Intel GPU has, asked of its driver: sysfs does not say. Needs the group of the render node.

Without CAP_PERFMON the drivers answer that nothing is in use (xe) or that all is free (i915): that is no measurement.
"""

from __future__ import annotations

import os
import struct

from ...value import Value
from ..files import names, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..drm.cards import Card

_CAP_PERFMON, _CAP_SYS_ADMIN = 38, 21
_VRAM = 1
_REGION = 88  # bytes of one region, in both drivers
_XE_QUERY = struct.Struct("<QIIQQQ")
_XE_MEMORY = 1
_I915_QUERY = struct.Struct("<IIQ")
_I915_ITEM = struct.Struct("<QiIQ")
_I915_MEMORY = 4
_MOST = 1 << 16


class Memory(Value):
    """Bytes in all and in use; `used` is None where the driver does not tell us."""

    total: int
    used: int | None


def query_memory(card: Card, root: str = "") -> Memory | None:
    """Return the GPU's own memory; None where the driver cannot be asked. Only a machine that is here can be."""
    if root:
        return None
    nodes = [name for name in names(f"{card.device}/drm") if name.startswith("renderD")]
    if not nodes:
        return None
    try:
        handle = os.open(f"/dev/dri/{nodes[0]}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        answer = _ask_xe(handle) if card.driver == "xe" else _ask_i915(handle)
    except OSError:
        return None
    finally:
        os.close(handle)
    parse = parse_xe if card.driver == "xe" else parse_i915
    return parse(answer, may_see_usage())


def may_see_usage(root: str = "") -> bool:
    """Return whether this process has CAP_PERFMON, or CAP_SYS_ADMIN which includes it."""
    for line in (read_text(f"{root}/proc/self/status") or "").splitlines():
        if line.startswith("CapEff:") and (digits := line[7:].strip()) and not digits.strip("0123456789abcdef"):
            capabilities = int(digits, 16)
            return bool(capabilities >> _CAP_PERFMON & 1 or capabilities >> _CAP_SYS_ADMIN & 1)
    return False


def parse_xe(answer: bytes, may_see: bool) -> Memory | None:
    """Read xe's regions: class, instance, page size, total, used."""
    found = _regions(answer, 8, lambda region: struct.unpack_from("<HHIQQ", region))
    vram = [(total, used) for kind, _, _, total, used in found if kind == _VRAM]
    return _sum(vram, may_see)


def parse_i915(answer: bytes, may_see: bool) -> Memory | None:
    """Read i915's regions: class, instance, reserved, probed, not allocated."""
    found = _regions(answer, 16, lambda region: struct.unpack_from("<HHIQQ", region))
    vram = [(probed, probed - free) for kind, _, _, probed, free in found if kind == _VRAM and free <= probed]
    return _sum(vram, may_see)


def _regions(answer: bytes, start: int, unpack: Callable[[bytes], tuple[int, ...]]) -> list[tuple[int, ...]]:
    count = int.from_bytes(answer[:4], "little")
    parts = [answer[start + at * _REGION : start + (at + 1) * _REGION] for at in range(min(count, 64))]
    return [unpack(part) for part in parts if len(part) == _REGION]


def _sum(vram: list[tuple[int, int]], may_see: bool) -> Memory | None:
    if not vram:
        return None
    used = sum(amount for _, amount in vram)
    return Memory(sum(total for total, _ in vram), used if used or may_see else None)


def _request(number: int, size: int) -> int:
    return 3 << 30 | size << 16 | ord("d") << 8 | number  # _IOWR


def _ask_xe(handle: int) -> bytes:
    """Ask for the size of the answer, then for the answer."""
    import fcntl
    from ctypes import addressof, create_string_buffer

    query = bytearray(_XE_QUERY.pack(0, _XE_MEMORY, 0, 0, 0, 0))
    fcntl.ioctl(handle, _request(0x40, _XE_QUERY.size), query)
    size = min(_XE_QUERY.unpack(query)[2], _MOST)
    answer = create_string_buffer(size)
    query = bytearray(_XE_QUERY.pack(0, _XE_MEMORY, size, addressof(answer), 0, 0))
    fcntl.ioctl(handle, _request(0x40, _XE_QUERY.size), query)
    return answer.raw


def _ask_i915(handle: int) -> bytes:
    import fcntl
    from ctypes import addressof, create_string_buffer

    size, answer = 0, create_string_buffer(1)
    for _ in range(2):
        item = create_string_buffer(_I915_ITEM.pack(_I915_MEMORY, size, 0, addressof(answer) if size else 0))
        fcntl.ioctl(handle, _request(0x79, _I915_QUERY.size), bytearray(_I915_QUERY.pack(1, 0, addressof(item))))
        said = _I915_ITEM.unpack(item.raw[: _I915_ITEM.size])[1]
        if said <= 0:
            return b""
        if not size:
            size = min(said, _MOST)
            answer = create_string_buffer(size)
    return answer.raw
