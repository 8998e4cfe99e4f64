"""Values that follow from others, and only where the others are there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import memory_percent, memory_unattributed


@given(used=st.integers(0, 2**60), total=st.integers(1, 2**60), reserved=st.integers(0, 2**60) | st.none())
def test_the_share_of_memory_is_a_share_or_unknown(used: int, total: int, reserved: int | None) -> None:
    values = {"memory_used": used, "memory_total": total}
    share = memory_percent(values if reserved is None else {**values, "memory_reserved": reserved})
    if (reserved or 0) >= total:
        assert share is None
    else:
        assert share is not None
        assert 0 <= share <= 100


def test_nothing_used_is_zero_per_cent() -> None:
    assert memory_percent({"memory_used": 0, "memory_total": 10}) == 0


@pytest.mark.parametrize("values", [{}, {"memory_used": 1}, {"memory_total": 1}])
def test_without_both_there_is_no_share(values: dict[str, int]) -> None:
    assert memory_percent(dict(values)) is None


def test_unattributed_is_what_is_used_and_held_by_nobody() -> None:
    assert memory_unattributed(10, [3, 0]) == 7
    assert memory_unattributed(10, []) == 10
    assert memory_unattributed(0, []) == 0
    assert memory_unattributed(10, [3, None]) is None
    assert memory_unattributed(None, []) is None
