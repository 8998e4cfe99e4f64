"""What this program uses of each GPU, by tag."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.messages import AgentSample
from gpulse.monitor.samples import Tags

UUIDS = ["GPU-aaaaaaaa-0000-0000-0000-000000000000", "GPU-bbbbbbbb-0000-0000-0000-000000000000"]
GIB = 1 << 30


def gpu(at: int, *processes: Process) -> Gpu:
    return Gpu({"uuid": UUIDS[at], "index": at, "name": "H100"}, processes=processes)


def process(pid: int, **values: float) -> Process:
    return Process({"pid": pid, **values})


def values(tags: Tags, *gpus: Gpu) -> dict[str, float]:
    return tags.values(AgentSample(0.0, Snapshot(0.0, gpus, Host({})), None, frozenset({os.getpid()})))


class Torch:
    """A torch whose devices hold what a test puts there."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, uuids: list[str] | None = None, backend: str = "native"
    ) -> None:
        self.sizes = [(0, 0), (0, 0)]
        known: dict[str, Any] = {
            "is_initialized": lambda: True,
            "device_count": lambda: len(self.sizes),
            "get_allocator_backend": lambda: backend,
        }
        if uuids is not None:
            known["get_device_properties"] = lambda at: SimpleNamespace(uuid=uuids[at].removeprefix("GPU-"))
        library = SimpleNamespace(_cuda_memoryStats=self._stats)
        module = SimpleNamespace(cuda=SimpleNamespace(**known), _C=library, version=SimpleNamespace(hip=None))
        monkeypatch.setitem(sys.modules, "torch", module)

    def _stats(self, device: int) -> dict[str, Any]:
        tensors, held = self.sizes[device]
        return {"allocated_bytes": {"all": {"current": tensors}}, "reserved_bytes": {"all": {"current": held}}}


def test_memory_and_sm_share_of_this_process_only() -> None:
    tags = Tags(UUIDS, None)
    own, other = process(os.getpid(), memory_used=3.0, sm_utilization=40.0), process(1, memory_used=9.0)
    assert values(tags, gpu(0, other), gpu(1, other, own)) == {
        "gpu1/process_memory_used": 3.0,
        "gpu1/process_sm_utilization": 40.0,
    }
    assert tags.texts["gpu1/process_memory_used"].startswith("GPU memory held by this process, in bytes.")
    assert UUIDS[1] in tags.texts["gpu1/process_memory_used"]


def test_a_process_of_another_namespace_may_have_the_same_number() -> None:
    other = process(os.getpid(), memory_used=9.0)
    assert Tags(UUIDS, None).values(AgentSample(0.0, Snapshot(0.0, (gpu(0, other),), Host({})), None, own=None)) == {}


def test_what_is_not_known_is_left_out() -> None:
    assert values(Tags(UUIDS, None), gpu(0, process(os.getpid()))) == {}
    assert values(Tags(UUIDS, ["utilization"]), gpu(0, process(os.getpid(), memory_used=3.0))) == {}


def test_what_torch_holds_goes_to_the_gpu_that_torch_means(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Torch(monkeypatch, uuids=[UUIDS[1], UUIDS[0]])
    torch.sizes = [(1 * GIB, 2 * GIB), (0, 0)]
    assert values(Tags([UUIDS[1], UUIDS[0]], None), gpu(0), gpu(1)) == {
        "gpu0/torch_allocated": 1 * GIB,
        "gpu0/torch_reserved": 2 * GIB,
    }
    assert set(values(Tags(None, None), gpu(0), gpu(1))) == {"gpu1/torch_allocated", "gpu1/torch_reserved"}


def test_a_torch_without_uuids_goes_by_the_ordinals(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Torch(monkeypatch)
    torch.sizes = [(0, 0), (1, 2)]
    assert values(Tags([UUIDS[1], UUIDS[0]], None), gpu(0), gpu(1)) == {
        "gpu1/torch_allocated": 1,
        "gpu1/torch_reserved": 2,
    }
    assert values(Tags(None, None), gpu(0), gpu(1)) == {}, "without ordinals nobody knows which GPU that is"


def test_memory_that_was_freed_is_0_and_memory_never_used_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    torch, tags = Torch(monkeypatch, uuids=UUIDS), Tags(UUIDS, None)
    assert values(tags, gpu(0), gpu(1)) == {}
    torch.sizes[0] = (1, 2)
    values(tags, gpu(0), gpu(1))
    torch.sizes[0] = (0, 0)
    assert values(tags, gpu(0), gpu(1)) == {"gpu0/torch_allocated": 0, "gpu0/torch_reserved": 0}


def test_an_allocator_that_would_ask_the_driver_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Torch(monkeypatch, uuids=UUIDS, backend="cudaMallocAsync")
    torch.sizes[0] = (1, 2)
    assert values(Tags(UUIDS, None), gpu(0)) == {}


def test_a_torch_that_fails_costs_only_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True)))
    assert values(Tags(UUIDS, None), gpu(0, process(os.getpid(), memory_used=3.0))) == {"gpu0/process_memory_used": 3.0}
