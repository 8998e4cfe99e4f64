"""A card that leaves while it is watched is lost; its neighbor is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpulse.sources.amd.source import AmdSource
from gpulse.sources.base import Source
from gpulse.sources.intel.source import IntelSource
from tests.unit.sources.amd.cards import radeon
from tests.unit.sources.intel.cards import arc
from tests.unit.sources.trees import KEYS


@pytest.mark.parametrize(("make", "kind"), [(radeon, AmdSource), (arc, IntelSource)])
def test_a_card_that_is_gone_is_lost(tmp_path: Path, make: object, kind: type[Source]) -> None:
    root = make(tmp_path)  # type: ignore[operator]
    source = kind(str(root))  # type: ignore[call-arg]
    source.open()
    shutil.rmtree(tmp_path / "sys/class/drm")
    sample = source.devices[0].read(KEYS, frozenset())
    assert sample.state == "lost"
    assert set(sample.gaps.values()) == {"lost"}
    assert not sample.values
    source.close()


def test_one_of_two_may_leave(tmp_path: Path) -> None:
    radeon(tmp_path, number=0)
    radeon(tmp_path, number=1, slot="0000:43:00.0")
    source = AmdSource(str(tmp_path))
    source.open()
    shutil.rmtree(tmp_path / "sys/class/drm/card0")
    assert [device.read(KEYS, None).state for device in source.devices] == ["lost", "ok"]
    source.close()
