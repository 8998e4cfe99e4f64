"""Out-of-memory errors: what was asked for, who held the memory and why it ran out, read from messages of torch, JAX, TensorFlow, CuPy."""

from __future__ import annotations

import re

from ..model.stacks import Frame
from ..value import Value
from .own_lines import own_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_SIZE = r"([\d.,]+) ?(bytes|B|[KMGTPE]i?B)\b"
_UNITS = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
_FLOOR = 512 << 20  # bytes below which another process, or the CUDA context, is not worth blaming
_ABSURD = 1 << 50  # bytes that no GPU has
_SPARE = 0.1  # share of the tensors' memory above which unused reserved memory is fragmentation

_TORCH = re.compile(
    r"\b(?:CUDA|HIP|XPU|MPS backend) out of memory\b|Allocation on device .{0,40}would exceed allowed memory"
)
_BARE = re.compile(
    r"(?:CUDA(?: driver)?|HIP|Triton) [Ee]rror(?: \[\w+\])?: out of memory|cuda runtime error \(2\)|CUDA_ERROR_OUT_OF_MEMORY|"
    r"cudaErrorMemoryAllocation|hipErrorOutOfMemory|(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE|CUFFT)(?:_STATUS)?_ALLOC_FAILED"
)
_XLA = re.compile(r"RESOURCE_EXHAUSTED|Resource exhausted")
_TENSORFLOW = re.compile(r"OOM when allocating tensor")
_CUPY = re.compile(rf"Out of memory allocating {_SIZE} \(allocated so far: {_SIZE}")
_HOST = re.compile(r"DefaultCPUAllocator: (?:can't|not enough)[^:]*: you tried to allocate (\d+) bytes")

# What torch 1.13 to 2.13 write, old wordings first: sizes in parentheses, then sentences ("capacty" is how 2.1 spells it).
# With cudaMallocAsync, it writes a table of them instead.
_PATTERNS: Mapping[str, tuple[str, ...]] = {
    "requested": (rf"[Tt]r(?:ied|ying) to allocate (?:more than )?{_SIZE}", rf"Out of memory allocating {_SIZE}",
                  rf"Failed to allocate (?:request for )?{_SIZE}", rf"\bRequested *: {_SIZE}"),
    "total": (rf"{_SIZE} total capacity", rf"total capac(?:i)?ty of {_SIZE}", rf"Device limit *: {_SIZE}"),
    "free": (rf"{_SIZE} free;", rf"of which {_SIZE} is free", rf"Free \(according to CUDA\): {_SIZE}"),
    "limit": (rf"{_SIZE} allowed;", rf"max allowed: {_SIZE}", rf"user-supplied memory fraction\)\s*: {_SIZE}"),
    "used": (rf"this process has {_SIZE} memory in use",),
    "allocated": (rf"{_SIZE} already allocated", rf"allocated memory {_SIZE} is allocated by PyTorch",
                  rf"Currently allocated *: {_SIZE}", rf"MPS allocated: {_SIZE}"),
    "private_pools": (rf"with {_SIZE} allocated in private pools",),
    "reserved_unused": (rf"{_SIZE} is reserved by PyTorch but unallocated",),
}  # fmt: skip
_COMPILED = {name: [re.compile(pattern) for pattern in patterns] for name, patterns in _PATTERNS.items()}
_RESERVED = re.compile(rf"{_SIZE} reserved in total by PyTorch")
_KINDS = {
    "torch.OutOfMemoryError": "torch",
    "torch.cuda.OutOfMemoryError": "torch",
    "cupy.cuda.memory.OutOfMemoryError": "cupy",
}
_DEVICE = re.compile(r"\bGPU (\d+)(?:;| has a total)|\bon device (?:ordinal )?(\d+)|device:GPU:(\d+)")
_PROCESS = re.compile(rf"Process (\d+) has {_SIZE} memory in use")


def read_message(text: str, kind: str = "") -> OutOfMemory | None:
    """Return what an error message says; None if it is not about memory. `kind` is the exception's type, with its module."""
    text = text[:20_000]
    if found := _HOST.search(text):
        report = OutOfMemory(text, "torch", "host")
        report.requested = float(found[1])
        return report
    framework = _framework(text) or _KINDS.get(kind)
    if framework is None:
        return None
    report = OutOfMemory(text, framework)
    for name, patterns in _COMPILED.items():
        setattr(
            report, name, next((_bytes(found[1], found[2]) for each in patterns if (found := each.search(text))), None)
        )
    if report.limit is not None and report.limit >= _ABSURD:
        report.limit = None  # how torch writes that there is none
    if report.used == 0 and report.allocated:  # torch could not find itself among the driver's processes
        report.used = None
    if (reserved := _RESERVED.search(text)) and report.allocated is not None:
        report.reserved_unused = max(0.0, (_bytes(reserved[1], reserved[2]) or 0.0) - report.allocated)
    if found := _DEVICE.search(text):
        report.device = int(next(group for group in found.groups() if group))
    report.others = [MemoryHolder(int(pid), _bytes(count, unit)) for pid, count, unit in _PROCESS.findall(text)]
    return report


def largest_lines(snapshot: Mapping[str, Any], device: int | None, most: int = 5) -> list[Allocation]:
    """Return the lines of code that hold most memory in a snapshot of torch's allocator, largest first; empty if it recorded none."""
    found: dict[tuple[str, int], Allocation] = {}
    for segment in snapshot.get("segments") or ():
        if device is not None and segment.get("device", device) != device:
            continue
        for block in segment.get("blocks") or ():
            frames = block.get("frames") or next((one.get("frames") for one in block.get("history") or ()), None)
            line = own_line([_frame(frame) for frame in reversed(frames)]) if frames else None
            if line is None or not str(block.get("state")).startswith("active"):
                continue
            at = line.frame
            kept = found.setdefault((at.file, at.line), Allocation(at.file, at.line, at.function))
            kept.bytes += block.get("requested_size") or block.get("size") or 0
            kept.blocks += 1
    return sorted(found.values(), key=lambda line: -line.bytes)[:most]


def _frame(plain: Mapping[str, Any]) -> Frame:
    return Frame(str(plain.get("filename") or "?"), int(plain.get("line") or 0), str(plain.get("name") or "?"))


def judge(report: OutOfMemory, environ: Mapping[str, str]) -> None:
    """Set the cause and the remedies in the order they should be tried."""
    report.cause = _cause(report)
    chosen = [*_FIRST.get(report.cause, ()), *_ALWAYS[report.where]]
    if report.framework != "torch":
        chosen = [key for key in chosen if key not in ("expandable_segments", "gradients", "limit")]
        if report.framework in ("jax", "tensorflow"):
            chosen.append("preallocation")
    elif "expandable_segments:True" in environ.get("PYTORCH_ALLOC_CONF", "") + environ.get(
        "PYTORCH_CUDA_ALLOC_CONF", ""
    ):
        chosen = [key for key in chosen if key != "expandable_segments"]
    report.remedies = tuple(dict.fromkeys(chosen))


_ALWAYS = {
    "gpu": ("batch", "accumulation", "checkpointing", "precision", "expandable_segments", "loader"),
    "host": ("host_batch", "loader", "workers"),
}
_FIRST = {
    "too_large": ("shape", "loader"),
    "limit": ("limit",),
    "fragmentation": ("expandable_segments", "shapes"),
    "others": ("others",),
    "growth": ("gradients", "evaluation"),
    "outside": ("outside",),
    "unknown": ("again",),
}


def _cause(report: OutOfMemory) -> str:
    asked, free, total = report.requested, report.free, report.total
    if report.where == "host":
        return "host"
    if asked is not None and asked > (total or _ABSURD):
        return "too_large"
    if report.limit is not None and asked is not None and free is not None and free >= asked:
        return "limit"
    spare = report.reserved_unused or 0.0
    if asked is not None and spare >= asked and spare > _SPARE * (report.allocated or 0.0):
        return "fragmentation"
    missing = None if asked is None or free is None else max(0.0, asked - free)
    if missing == 0:
        return "unknown"  # it would have fit
    if _others_fill(report) if missing is None else report.held_by_others >= max(missing, _FLOOR):
        return "others"
    if report.growth is not None and report.growth.steady:
        return "growth"
    outside = report.outside_framework or 0.0
    if outside >= 4 * _FLOOR and missing is not None and outside >= missing:
        return "outside"
    return "demand"


def _others_fill(report: OutOfMemory) -> bool:
    """Tell whether other processes hold most of a full GPU, so that they are to blame for a request of any size."""
    total, free = report.total, report.free
    return bool(total) and free is not None and free <= 0.1 * (total or 0.0) <= 0.2 * report.held_by_others


def _framework(text: str) -> str | None:
    if _TORCH.search(text):
        return "torch"
    if _TENSORFLOW.search(text):
        return "tensorflow"
    if _XLA.search(text) and ("memory" in text.lower() or "Failed to allocate" in text):
        return "jax"
    if _CUPY.search(text):
        return "cupy"
    return "cuda" if _BARE.search(text) else None


def _bytes(count: str, unit: str) -> float | None:
    try:
        number = float(count.replace(",", "").rstrip("."))
    except ValueError:
        return None
    return number * float(1 << 10 * _UNITS[unit[0].lower()])


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
