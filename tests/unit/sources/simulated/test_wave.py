"""Waves add up exactly and followers follow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpulse.sources.simulated.scene import Inertia, Wave, digits, hum_area, scatter

_STEPS = st.lists(st.tuples(st.floats(0.1, 20.0), st.floats(0.0, 700.0)), min_size=1, max_size=8)
_WHEN = st.floats(0.0, 1000.0)


@given(steps=_STEPS, begin=_WHEN, parts=st.lists(st.floats(0.01, 30.0), min_size=1, max_size=5))
def test_areas_of_parts_make_the_area_of_the_whole(
    steps: list[tuple[float, float]], begin: float, parts: list[float]
) -> None:
    wave, at, total = Wave(steps), begin, 0.0
    for part in parts:
        total += wave.mean(at + part, part) * part
        at += part
    assert abs(total - (wave.area(at) - wave.area(begin))) < 1e-5


@given(steps=_STEPS, at=_WHEN, window=st.floats(0.1, 50.0))
def test_mean_stays_between_the_levels(steps: list[tuple[float, float]], at: float, window: float) -> None:
    levels = [level for _, level in steps]
    assert min(levels) - 1e-6 <= Wave(steps).mean(at, window) <= max(levels) + 1e-6


@given(steps=_STEPS, at=_WHEN)
def test_inertia_stays_between_the_levels_and_obeys_its_law(steps: list[tuple[float, float]], at: float) -> None:
    follower = Inertia(steps, 12.0)
    levels = [level for _, level in steps]
    assert min(levels) - 1e-6 <= follower.at(at) <= max(levels) + 1e-6
    assert abs(follower.at(at + 0.001) - follower.at(at)) <= 700.0 / 12.0 * 0.001 + 1e-6


def test_inertia_rests_at_a_steady_level() -> None:
    assert abs(Inertia([(3.0, 115.0)], 12.0).at(1.0) - 115.0) < 1e-9


@given(seed=st.integers(0, 2**40), cell=st.integers(-(2**40), 2**40))
def test_scatter_keeps_its_bounds(seed: int, cell: int) -> None:
    assert -1.0 <= scatter(seed, cell) < 1.0


def test_scatter_is_even() -> None:
    values = [scatter(7, cell) for cell in range(20_000)]
    assert abs(sum(values)) / len(values) < 0.02
    assert abs(sum(value > 0.5 for value in values) / len(values) - 0.25) < 0.02


@given(seed=st.integers(0, 2**31), at=st.floats(0.0, 1e6))
def test_hum_never_runs_away(seed: int, at: float) -> None:
    assert abs(hum_area(seed, at)) <= 0.55


def test_digits_are_as_many_as_asked() -> None:
    assert all(len(digits(7, cell, 32)) == 32 for cell in range(50))
