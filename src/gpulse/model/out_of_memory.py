"""An out-of-memory error as values: what was asked for, and who held the memory."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_NUMBERS = ("requested", "total", "free", "limit", "used", "allocated", "reserved_unused", "private_pools")


class MemoryHolder:
    """Another process on the GPU and the bytes it holds; `name` and `user` are None if they cannot be seen."""

    __slots__ = ("bytes", "name", "pid", "user")

    def __init__(self, pid: int, bytes: float | None, name: str | None = None, user: str | None = None) -> None:
        self.pid = pid
        self.bytes = bytes
        self.name = name
        self.user = user

    def to_plain(self) -> dict[str, Any]:
        """Return the holder as plain data."""
        return {"pid": self.pid, "memory_used": self.bytes, "name": self.name, "user": self.user}


class Allocation:
    """A line of code and what it has allocated that is still held: bytes in a number of blocks."""

    __slots__ = ("blocks", "bytes", "file", "function", "line")

    def __init__(self, file: str, line: int, function: str, bytes: float = 0.0, blocks: int = 0) -> None:
        self.file = file
        self.line = line
        self.function = function
        self.bytes = bytes
        self.blocks = blocks

    def to_plain(self) -> dict[str, Any]:
        """Return the line as plain data."""
        return {name: getattr(self, name) for name in ("file", "line", "function", "bytes", "blocks")}


class MemoryGrowth:
    """How the memory of the GPU grew before the error: from `first` to `last` bytes in `seconds`; `steady` if it kept growing."""

    __slots__ = ("first", "last", "seconds", "steady")

    def __init__(self, first: float, last: float, seconds: float, steady: bool) -> None:
        self.first = first
        self.last = last
        self.seconds = seconds
        self.steady = steady

    @property
    def rate(self) -> float:
        """Bytes per second."""
        return (self.last - self.first) / self.seconds if self.seconds > 0 else 0.0

    def to_plain(self) -> dict[str, Any]:
        """Return the growth as plain data."""
        return {
            "first": self.first,
            "last": self.last,
            "seconds": self.seconds,
            "rate": self.rate,
            "steady": self.steady,
        }


class OutOfMemory:
    """One out-of-memory error.

    All sizes are in bytes and None if unknown. `framework` is torch, jax, tensorflow, cupy or cuda; `device` is the index the program
    uses. `used` is all that this process holds, `allocated` what its tensors hold, `reserved_unused` what the framework's allocator
    holds without using it, `limit` what the program may use at most. `free` is as the message says, or what the driver says now
    (`free_is_now`). `allocations` are the lines that hold most of torch's memory, if torch recorded them. `where` is gpu or host.
    `cause` and `remedies` are keys; `text` is the account in words.
    """

    def __init__(self, message: str, framework: str, where: str = "gpu") -> None:
        self.message = message
        self.framework = framework
        self.where = where
        self.device: int | None = None
        self.gpu_name: str | None = None
        self.requested: float | None = None
        self.total: float | None = None
        self.free: float | None = None
        self.free_is_now = False
        self.limit: float | None = None
        self.used: float | None = None
        self.allocated: float | None = None
        self.reserved_unused: float | None = None
        self.private_pools: float | None = None
        self.others: Sequence[MemoryHolder] = ()
        self.growth: MemoryGrowth | None = None
        self.allocations: Sequence[Allocation] = ()
        self.cause = "demand"
        self.remedies: Sequence[str] = ()
        self.text = ""

    @property
    def outside_framework(self) -> float | None:
        """Bytes this process holds outside the framework's allocator: the CUDA context, cuBLAS, NCCL."""
        if self.used is None or self.allocated is None:
            return None
        return max(0.0, self.used - self.allocated - (self.reserved_unused or 0.0))

    @property
    def held_by_others(self) -> float:
        """Bytes that other processes hold."""
        return sum(other.bytes or 0.0 for other in self.others)

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        plain: dict[str, Any] = {"framework": self.framework, "where": self.where, "device": self.device}
        plain |= {name: getattr(self, name) for name in (*_NUMBERS, "outside_framework", "cause")}
        plain["allocations"] = [line.to_plain() for line in self.allocations]
        plain["others"] = [other.to_plain() for other in self.others]
        plain["growth"] = None if self.growth is None else self.growth.to_plain()
        return plain | {"remedies": [*self.remedies], "message": self.message}

    def __str__(self) -> str:
        return self.text or self.message

    def __repr__(self) -> str:
        return f"<OutOfMemory {self.framework}: {self.cause}>"
