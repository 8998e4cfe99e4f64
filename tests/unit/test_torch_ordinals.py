"""What torch says of its GPUs, on CUDA and on ROCm, where a UUID is its own digits as text."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from gpulse.model.catalog import Gpu
from gpulse.model.select import by_uuid
from gpulse.torch import ordinals


def pretend(monkeypatch: pytest.MonkeyPatch, uuids: list[str], hip: str | None) -> None:
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        device_count=lambda: len(uuids),
        get_device_properties=lambda at: SimpleNamespace(uuid=uuids[at]),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, version=SimpleNamespace(hip=hip)))


def test_cuda_says_uuids_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, ["19d6d965-2acc-f646-00f8-4c76979aabb4"], None)
    assert ordinals() == ["19d6d965-2acc-f646-00f8-4c76979aabb4"]


def test_rocm_says_digits_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, ["39343664-3765-3165-6639-623137326464"], "6.4")
    gpu = Gpu({"vendor": "amd", "uuid": "GPU-946d7e1ef9b172dd"})
    assert ordinals() == ["946d7e1ef9b172dd"]
    assert by_uuid([gpu], ordinals() or []) == [gpu]


def test_what_cannot_be_read_leaves_it_to_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, ["ffffffff-0000-0000-0000-000000000000"], "6.4")
    assert ordinals() is None
