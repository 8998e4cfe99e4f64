"""An out-of-memory error as values: what was asked for, and who held the memory."""

from __future__ import annotations

from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_WRITTEN = (
    "framework", "where", "device", "requested", "total", "free", "limit", "used", "allocated", "reserved_unused", "private_pools",
    "outside_framework", "cause", "allocations", "others", "growth", "remedies", "message",
)  # fmt: skip


class MemoryHolder(Value):
    """Another process on the GPU and the bytes it holds; `name` and `user` are None if they cannot be seen."""

    pid: int
    bytes: float | None
    name: str | None = None
    user: str | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return the holder as plain data."""
        return {"pid": self.pid, "memory_used": self.bytes, "name": self.name, "user": self.user}


class Allocation(Value):
    """A line of code and what it has allocated that is still held: bytes in a number of blocks."""

    file: str
    line: int
    function: str
    bytes: float = 0.0
    blocks: int = 0


class MemoryGrowth(Value):
    """How the memory of the GPU grew before the error: from `first` to `last` bytes in `seconds`; `steady` if it kept growing."""

    first: float
    last: float
    seconds: float
    steady: bool

    @property
    def rate(self) -> float:
        """Bytes per second."""
        return (self.last - self.first) / self.seconds if self.seconds > 0 else 0.0

    def to_plain(self) -> dict[str, Any]:
        """Return the growth as plain data."""
        return super().to_plain() | {"rate": self.rate, "steady": self.steady}


class OutOfMemory(Value):
    """One out-of-memory error.

    All sizes are in bytes and None if unknown. `framework` is torch, jax, tensorflow, cupy or cuda; `device` is the index the program
    uses. `used` is all that this process holds, `allocated` what its tensors hold, `reserved_unused` what the framework's allocator
    holds without using it, `limit` what the program may use at most. `free` is as the message says, or what the driver says now
    (`free_is_now`). `allocations` are the lines that hold most of torch's memory, if torch recorded them. `where` is gpu or host.
    `cause` and `remedies` are keys; `text` is the account as text.
    """

    message: str
    framework: str
    where: str = "gpu"
    device: int | None = None
    gpu_name: str | None = None
    requested: float | None = None
    total: float | None = None
    free: float | None = None
    free_is_now: bool = False
    limit: float | None = None
    used: float | None = None
    allocated: float | None = None
    reserved_unused: float | None = None
    private_pools: float | None = None
    others: Sequence[MemoryHolder] = ()
    growth: MemoryGrowth | None = None
    allocations: Sequence[Allocation] = ()
    cause: str = "demand"
    remedies: Sequence[str] = ()
    text: str = ""

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
        plain = super().to_plain() | {"outside_framework": self.outside_framework}
        return {name: plain[name] for name in _WRITTEN}

    def __str__(self) -> str:
        return self.text or self.message

    def __repr__(self) -> str:
        return f"<OutOfMemory {self.framework}: {self.cause}>"
