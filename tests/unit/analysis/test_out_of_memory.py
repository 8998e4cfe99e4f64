"""Out-of-memory messages as the frameworks write them, and what is made of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.out_of_memory import MemoryGrowth, MemoryHolder, OutOfMemory, judge, read_message
from gpulse.present.out_of_memory import CAUSES, REMEDIES, account

GIB = 1 << 30
MIB = 1 << 20

TORCH_113 = (
    "CUDA out of memory. Tried to allocate 192.00 MiB (GPU 0; 4.00 GiB total capacity; 3.08 GiB already allocated; 0 bytes free; "
    "3.47 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
    "fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
TORCH_20_ALLOWED = (
    "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 23.69 GiB total capacity; 9.50 GiB already allocated; 12.00 GiB free; "
    "10.00 GiB allowed; 9.75 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
    "max_split_size_mb to avoid fragmentation."
)
TORCH_21 = (
    "CUDA out of memory. Tried to allocate 154.84 GiB. GPU 0 has a total capacty of 23.69 GiB of which 13.97 GiB is free. Process "
    "2006998 has 256.00 MiB memory in use. Including non-PyTorch memory, this process has 9.45 GiB memory in use. Of the allocated "
    "memory 9.15 GiB is allocated by PyTorch, and 3.19 MiB is reserved by PyTorch but unallocated. If reserved but unallocated "
    "memory is large try setting max_split_size_mb to avoid fragmentation."
)
TORCH_21_BLIND = (
    "CUDA out of memory. Tried to allocate 16.13 GiB. GPU 0 has a total capacty of 23.49 GiB of which 7.47 GiB is free. Including "
    "non-PyTorch memory, this process has 0 bytes memory in use. Of the allocated memory 15.59 GiB is allocated by PyTorch, and "
    "98.64 MiB is reserved by PyTorch but unallocated."
)
TORCH_23_NO_INDEX = (
    "CUDA out of memory. Tried to allocate 1.96 GiB. GPU  has a total capacity of 23.53 GiB of which 14.12 MiB is free. Including "
    "non-PyTorch memory, this process has 23.50 GiB memory in use. Of the allocated memory 18.00 GiB is allocated by PyTorch, and "
    "5.10 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
TORCH_25_POOLS = (
    "CUDA out of memory. Tried to allocate 100.00 MiB. GPU 3 has a total capacity of 31.37 GiB of which 15.88 MiB is free. Including "
    "non-PyTorch memory, this process has 31.34 GiB memory in use. Of the allocated memory 30.74 GiB is allocated by PyTorch, with "
    "62.00 MiB allocated in private pools (e.g., CUDA Graphs), and 19.41 MiB is reserved by PyTorch but unallocated."
)
_END_211 = (
    " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  "
    "See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html)"
)
TORCH_211_OTHERS = (
    "CUDA out of memory. Tried to allocate 60.35 GiB. GPU 0 has a total capacity of 139.80 GiB of which 18.77 GiB is free. Including "
    "non-PyTorch memory, this process has 20.51 GiB memory in use. Process 537 has 100.51 GiB memory in use. Of the allocated memory "
    "20.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated." + _END_211
)
TORCH_211_LIMIT = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 139.29 GiB is free. Including "
    "non-PyTorch memory, this process has 518.00 MiB memory in use. 13.98 GiB allowed; Of the allocated memory 0 bytes is allocated "
    "by PyTorch, and 0 bytes is reserved by PyTorch but unallocated." + _END_211
)
TORCH_211_DEMAND = (
    "CUDA out of memory. Tried to allocate 14.90 GiB. GPU 0 has a total capacity of 139.80 GiB of which 2.38 GiB is free. Including "
    "non-PyTorch memory, this process has 137.41 GiB memory in use. Of the allocated memory 135.17 GiB is allocated by PyTorch, and "
    "1.21 GiB is reserved by PyTorch but unallocated." + _END_211
)
HIP = TORCH_211_DEMAND.replace("CUDA out", "HIP out").replace("GPU 0", "GPU 5")
JAX_OLD = (
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.\nBufferAssignment OOM Debugging.\n"
    "BufferAssignment stats:\n             parameter allocation:  372.76MiB\n"
)
JAX_NEW = (
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 200.00GiB with allocator GPU_0_bfc on device 0. "
    "[tf-allocator-allocation-error=''] [executable_name='jit_broadcast_in_dim']"
)
TENSORFLOW = (
    "OOM when allocating tensor with shape[256,64,112,112] and type float on /job:localhost/replica:0/task:0/device:GPU:2 by "
    "allocator GPU_2_bfc"
)
JAX_SHORT = "RESOURCE_EXHAUSTED: Failed to allocate request for 4.00GiB (4294967296B) on device ordinal 1"
TORCH_ASYNC = (
    "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 20.00 GiB\n"
    "Requested               : 60.00 GiB\nDevice limit            : 139.80 GiB\nFree (according to CUDA): 18.77 GiB\n"
    "PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB"
)
MPS = (
    "MPS backend out of memory (MPS allocated: 5.05 GB, other allocations: 2.29 GB, max allowed: 6.80 GB). Tried to allocate "
    "1024.00 MB on private pool."
)
FITS = TORCH_211_OTHERS.replace("18.77 GiB is free", "138.90 GiB is free").replace("100.51 GiB", "520.00 MiB")
HOST = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    "1125899906842624 bytes. Error code 12 (Cannot allocate memory)"
)
CUPY = "Out of memory allocating 8,589,934,592 bytes (allocated so far: 4,294,967,296 bytes)."

# message: framework, device, requested, total, free, allocated, reserved but unused, cause
MESSAGES: dict[str, tuple[Any, ...]] = {
    "1.13": (TORCH_113, "torch", 0, 192 * MIB, 4 * GIB, 0, 3.08 * GIB, 0.39 * GIB, "fragmentation"),
    "2.0 limit": (TORCH_20_ALLOWED, "torch", 1, 2 * GIB, 23.69 * GIB, 12 * GIB, 9.5 * GIB, 0.25 * GIB, "limit"),
    "2.1": (TORCH_21, "torch", 0, 154.84 * GIB, 23.69 * GIB, 13.97 * GIB, 9.15 * GIB, 3.19 * MIB, "too_large"),
    "2.1 blind": (TORCH_21_BLIND, "torch", 0, 16.13 * GIB, 23.49 * GIB, 7.47 * GIB, 15.59 * GIB, 98.64 * MIB, "demand"),
    "2.3": (TORCH_23_NO_INDEX, "torch", None, 1.96 * GIB, 23.53 * GIB, 14.12 * MIB, 18 * GIB, 5.1 * GIB, "fragmentation"),
    "2.5 pools": (TORCH_25_POOLS, "torch", 3, 100 * MIB, 31.37 * GIB, 15.88 * MIB, 30.74 * GIB, 19.41 * MIB, "demand"),
    "2.11 others": (TORCH_211_OTHERS, "torch", 0, 60.35 * GIB, 139.8 * GIB, 18.77 * GIB, 20 * GIB, 0, "others"),
    "2.11 limit": (TORCH_211_LIMIT, "torch", 0, 20 * GIB, 139.8 * GIB, 139.29 * GIB, 0, 0, "limit"),
    "2.11": (TORCH_211_DEMAND, "torch", 0, 14.9 * GIB, 139.8 * GIB, 2.38 * GIB, 135.17 * GIB, 1.21 * GIB, "demand"),
    "hip": (HIP, "torch", 5, 14.9 * GIB, 139.8 * GIB, 2.38 * GIB, 135.17 * GIB, 1.21 * GIB, "demand"),
    "absurd": ("CUDA out of memory. Tried to allocate more than 1EB memory.", "torch", None, 1 << 60, *[None] * 4, "too_large"),
    "jax old": (JAX_OLD, "jax", None, 4770354232, None, None, None, None, "demand"),
    "jax": (JAX_NEW, "jax", 0, 200 * GIB, None, None, None, None, "demand"),
    "jax short": (JAX_SHORT, "jax", 1, 4 * GIB, None, None, None, None, "demand"),
    "async": (TORCH_ASYNC, "torch", 0, 60 * GIB, 139.8 * GIB, 18.77 * GIB, 20 * GIB, None, "demand"),
    "mps": (MPS, "torch", None, GIB, None, None, 5.05 * GIB, None, "demand"),
    "short": ("CUDA out of memory.", "torch", *[None] * 6, "demand"),
    "fits": (FITS, "torch", 0, 60.35 * GIB, 139.8 * GIB, 138.9 * GIB, 20 * GIB, 0, "unknown"),
    "cublas": ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "cuda", *[None] * 6, "demand"),
    "cudnn": ("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cuda", *[None] * 6, "demand"),
    "triton": ("Triton Error [CUDA]: out of memory", "cuda", *[None] * 6, "demand"),
    "old torch": ("cuda runtime error (2) : out of memory at THCStorage.cu:58", "cuda", *[None] * 6, "demand"),
    "tensorflow": (TENSORFLOW, "tensorflow", 2, None, None, None, None, None, "demand"),
    "cupy": (CUPY, "cupy", None, 8589934592, None, None, None, None, "demand"),
    "bare": ("CUDA error: out of memory\nCUDA kernel errors might be asynchronous", "cuda", *[None] * 6, "demand"),
}  # fmt: skip


def read(text: str) -> OutOfMemory:
    report = read_message(text)
    assert report is not None
    judge(report, {})
    return report


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_gives_its_figures_and_a_cause(name: str) -> None:
    text, framework, device, requested, total, free, allocated, unused, cause = MESSAGES[name]
    report = read(text)
    assert (report.framework, report.device, report.cause) == (framework, device, cause)
    found = (report.requested, report.total, report.free, report.allocated, report.reserved_unused)
    assert found == tuple(
        None if value is None else pytest.approx(value) for value in (requested, total, free, allocated, unused)
    )


def test_other_processes_and_memory_outside_torch_are_read() -> None:
    report = read(TORCH_211_OTHERS)
    (other,) = report.others
    assert other.pid == 537
    assert other.bytes == pytest.approx(100.51 * GIB)
    assert report.outside_framework == pytest.approx(0.51 * GIB)
    assert read(TORCH_21_BLIND).used is None  # torch did not find itself
    assert read(TORCH_25_POOLS).private_pools == 62 * MIB


def test_host_memory_is_told_from_the_gpus() -> None:
    report = read(HOST)
    assert (report.where, report.cause, report.requested) == ("host", "host", 1 << 50)
    assert "batch" not in report.remedies
    assert "RAM" in account(report)


@pytest.mark.parametrize(
    "text",
    ["", "CUDA error: an illegal memory access was encountered", "out of memory? no", "RESOURCE_EXHAUSTED: quota"],
)
def test_other_errors_are_left_alone(text: str) -> None:
    assert read_message(text) is None


def test_steady_growth_is_blamed_before_plain_demand() -> None:
    report = read_message(TORCH_211_DEMAND)
    assert report is not None
    report.growth = MemoryGrowth(20 * GIB, 137 * GIB, 300.0, True)
    judge(report, {})
    assert report.cause == "growth"
    assert report.remedies[0] == "gradients"
    assert "from 20.0 GiB to 137 GiB in 5m00s, 399 MiB/s" in account(report)


def test_remedies_follow_the_cause_and_leave_out_what_is_set() -> None:
    assert read(TORCH_211_DEMAND).remedies == (
        "batch", "accumulation", "checkpointing", "precision", "expandable_segments", "loader",
    )  # fmt: skip
    assert read(TORCH_23_NO_INDEX).remedies[0] == "expandable_segments"
    assert read(TORCH_211_OTHERS).remedies[0] == "others"
    report = read_message(TORCH_23_NO_INDEX)
    assert report is not None
    judge(report, {"PYTORCH_ALLOC_CONF": "expandable_segments:True"})
    assert "expandable_segments" not in report.remedies
    assert read(JAX_NEW).remedies[-1] == "preallocation"
    assert "expandable_segments" not in read(JAX_NEW).remedies


def test_every_cause_and_remedy_has_words() -> None:
    for text, *_ in MESSAGES.values():
        report = read(text)
        assert report.cause in CAUSES
        assert set(report.remedies) <= REMEDIES.keys()
        assert account(report).startswith("gpulse: out of memory")


def test_the_account_in_full() -> None:
    report = read(TORCH_211_OTHERS)
    report.remedies = report.remedies[:2]
    assert account(report).splitlines() == [
        "gpulse: out of memory on GPU 0: torch asked for 60.4 GiB, 18.8 GiB was free.",
        "  Cause: other processes hold the memory; without them it would have fit.",
        "  Memory of 140 GiB:",
        "    torch: tensors                             20.0 GiB",
        "    torch: reserved, unused                         0 B",
        "    this process, other (context, libraries)    522 MiB",
        "    process 537                                 101 GiB",
        "    free                                       18.8 GiB",
        "  Try, in this order:",
        "    1. Stop the other processes, or select another GPU: `gpulse pick`, `gpulse run --gpus 1 --wait -- …`.",
        "    2. Reduce the batch size, or the sequence length or image size.",
    ]


@given(st.text(max_size=300), st.sampled_from([text for text, *_ in MESSAGES.values()]), st.integers(0, 400))
def test_no_text_makes_it_fail(noise: str, text: str, at: int) -> None:
    for message in (noise, text[:at], text[:at] + noise + text[at:]):
        if (report := read_message(message)) is not None:
            judge(report, {})
            assert account(report)


@given(st.floats(0, 1023, allow_nan=False), st.sampled_from(["bytes", "KiB", "MiB", "GiB", "TiB"]))
def test_sizes_are_read_as_written(count: float, unit: str) -> None:
    scale = {"bytes": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4}[unit]
    report = read_message(f"CUDA out of memory. Tried to allocate {count:.2f} {unit}. GPU 0 has")
    assert report is not None
    assert report.requested == pytest.approx(round(count, 2) * 1024**scale)


def test_a_request_without_a_size_is_blamed_on_others_only_if_they_fill_the_gpu() -> None:
    def cause(free: float, held: float) -> str:
        report = read_message("CUDA error: out of memory")
        assert report is not None
        report.total, report.free, report.others = 140.0 * GIB, free * GIB, [MemoryHolder(7, held * GIB)]
        judge(report, {})
        return report.cause

    assert cause(free=1, held=138) == "others"
    assert cause(free=138, held=1) == "demand"
    assert cause(free=1, held=20) == "demand"


def test_a_type_is_enough_whatever_it_says() -> None:
    report = read_message("Allocation on device ", "torch.OutOfMemoryError")
    assert report is not None
    assert report.framework == "torch"
    assert read_message("Allocation on device ", "builtins.RuntimeError") is None
