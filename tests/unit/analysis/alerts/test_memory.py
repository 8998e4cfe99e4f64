"""Nearly full memory and leaks; and all that only looks like them."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.model.catalog import Gpu
from gpulse.present.alerts import alert_text
from tests.unit.analysis.alerts.machines import GIB, START, book, gpu, process, turns, watch

MINUTE = 60.0


def holding(held: float, **values: Any) -> Gpu:
    """A GPU of 100 GiB of which one process holds this many."""
    return gpu(memory_used=held * GIB, processes=[process(held=held * GIB, **values)])


class TestMemory:
    def test_growth_to_the_brim_fires_once_and_room_clears(self) -> None:
        found = watch(book("memory"), lambda at: holding(min(96, 20 + at) if at < 200 else 50), 300)
        assert turns(found) == [("memory", "fire", 85.0), ("memory", "clear", 230.0)]
        assert alert_text(found[0]).startswith("GPU 0 memory is 96 % full; ada's python (pid 42) holds")

    def test_hovering_is_one_alert(self) -> None:
        found = watch(book("memory"), lambda at: holding(min(20 + at, 94 + at % 3)), 900)
        assert [one.state for one in found] == []  # never above for ten seconds at a stretch
        found = watch(book("memory", memory={"for": 0}), lambda at: holding(min(20 + at, 94 + at % 3)), 900)
        assert [one.state for one in found] == ["fire"]

    @pytest.mark.parametrize(("name", "share"), [("jax", 75), ("tensorflow", 97.5)])
    def test_taking_it_ahead_in_one_go_fires_nothing(self, name: str, share: float) -> None:
        def grabs(at: float) -> Gpu:
            return gpu(memory_used=0) if at < 10 else holding(0.5 if at < 20 else share)

        assert watch(book("memory", "leak", memory={"above": 70}), grabs, 1800) == []

    def test_a_vllm_server_fires_nothing(self) -> None:
        def serves(at: float) -> Gpu:
            return holding(min(96, at), name="VLLM::EngineCore", command="vllm serve a/b --gpu-memory-utilization 0.96")

        assert watch(book("memory", "leak"), serves, 1800) == []

    def test_one_that_was_there_before_with_most_of_the_memory_fires_nothing(self) -> None:
        assert watch(book("memory"), lambda at: holding(97), 600) == []

    def test_one_that_took_much_ahead_and_still_grows_fires(self) -> None:
        found = watch(book("memory"), lambda at: holding(70 if at < 60 else min(97, 70 + (at - 60) / 10)), 900)
        assert [one.state for one in found] == ["fire"]

    def test_memory_of_processes_that_cannot_be_seen_fires(self) -> None:
        found = watch(book("memory"), lambda at: gpu(memory_used=97 * GIB), 60)
        assert turns(found) == [("memory", "fire", 10.0)]

    def test_what_the_driver_keeps_counts_as_not_there(self) -> None:
        assert watch(book("memory"), lambda at: gpu(memory_used=90 * GIB), 60) == []
        found = watch(book("memory"), lambda at: gpu(memory_used=90 * GIB, memory_reserved=9 * GIB), 60)
        assert [one.state for one in found] == ["fire"]

    def test_an_instance_speaks_for_itself_and_is_over_when_it_is_no_more(self) -> None:
        def divided(at: float) -> Gpu:
            part = Gpu({"uuid": "MIG-1", "name": "1g.10gb", "memory_used": 9.9 * GIB, "memory_total": 10 * GIB})
            whole = gpu(memory_used=9.9 * GIB)
            return Gpu(dict(whole.items()), instances=(part,) if at < 60 else ())

        found = watch(book("memory"), divided, 100)
        assert [(one.uuid, one.state, one.gpu) for one in found] == [("MIG-1", "fire", "0"), ("MIG-1", "clear", "")]
        assert alert_text(found[0]).startswith("GPU 0 1g.10gb memory is 99 % full")

    def test_a_threshold_of_zero_is_a_threshold(self) -> None:
        found = watch(book("memory", memory={"clear": 0, "for": 0}), lambda at: holding(99 - at, name="a"), 120)
        assert [one.state for one in found] == []  # met with most of the memory: taken ahead
        found = watch(
            book("memory", memory={"clear": 0, "for": 0}), lambda at: gpu(memory_used=max(0, 99 - at) * GIB), 200
        )
        assert turns(found) == [("memory", "fire", 0.0), ("memory", "clear", 129.0)]


class TestLeak:
    def test_steady_growth_fires_once_and_says_when_the_memory_is_full(self) -> None:
        found = watch(book("leak"), lambda at: holding(10 + at / 60, running_time=at), 40 * MINUTE)
        assert [one.state for one in found] == ["fire"]
        assert 12 * MINUTE <= found[0].time - START <= 14 * MINUTE  # ten minutes after the two of its start
        assert alert_text(found[0]).startswith(
            "ada's python (pid 42) on GPU 0 grows by 1.0 GiB per minute; memory will be full in 1h"
        )
        assert found[0].values["bytes_per_second"] == pytest.approx(GIB / 60, rel=0.05)

    def test_peaks_count_not_what_lies_between(self) -> None:
        def saw(at: float) -> Gpu:
            return holding(10 + at / 60 - (5 if at % 7 < 3 else 0))

        assert [one.state for one in watch(book("leak"), saw, 40 * MINUTE)] == ["fire"]

    def test_it_is_over_with_the_growth(self) -> None:
        found = watch(book("leak"), lambda at: holding(10 + min(at, 20 * MINUTE) / 60), 60 * MINUTE)
        assert [one.state for one in found] == ["fire", "clear"]
        assert alert_text(found[1]) == "ada's python (pid 42) on GPU 0 no longer grows"

    def test_it_is_over_with_the_process(self) -> None:
        def ends(at: float) -> Gpu:
            return holding(10 + at / 60) if at < 20 * MINUTE else gpu(memory_used=0)

        found = watch(book("leak"), ends, 30 * MINUTE)
        assert turns(found)[1:] == [("leak", "clear", 20 * MINUTE + 1)]
        assert alert_text(found[1]) == "ada's python (pid 42) ended on GPU 0, peak memory 30.0 GiB"

    def test_first_epochs_fire_nothing(self) -> None:
        """Compiling, the first epoch, the first evaluation, a longer batch: each a new peak, then rest."""
        peaks = [(0, 2), (30, 8), (60, 20), (180, 24), (420, 31), (480, 33), (900, 34), (1500, 34.3)]
        found = watch(book("leak"), lambda at: holding(max(held for since, held in peaks if at >= since)), 60 * MINUTE)
        assert found == []

    def test_warming_up_for_five_minutes_fires_nothing(self) -> None:
        assert watch(book("leak"), lambda at: holding(10 + min(at, 5 * MINUTE) / 30), 60 * MINUTE) == []

    def test_four_stairs_and_then_rest_fire_nothing(self) -> None:
        assert watch(book("leak"), lambda at: holding(10 + min(at // 150, 4)), 60 * MINUTE) == []

    def test_rising_and_falling_back_fires_nothing(self) -> None:
        """Six rises of seven, and more at the end than at the start, but no slope that is surely up."""
        peaks = (10, 11, 12, 13, 9, 10, 11, 12)
        assert watch(book("leak"), lambda at: holding(peaks[int((at - 120) // 75) % 8]), 60 * MINUTE) == []

    def test_noise_without_growth_fires_nothing(self) -> None:
        assert watch(book("leak"), lambda at: holding(40 + (at * 7919 % 101) / 50), 60 * MINUTE) == []

    def test_too_little_to_matter_fires_nothing(self) -> None:
        assert watch(book("leak"), lambda at: holding(10 + at / 60 / 1024), 60 * MINUTE) == []

    def test_a_pid_that_is_given_to_another_starts_anew(self) -> None:
        def again(at: float) -> Gpu:
            return holding(10 + at / 60, running_time=at % (8 * MINUTE))

        assert watch(book("leak"), again, 60 * MINUTE) == []

    @pytest.mark.parametrize("step", [0.5, 10.0, 60.0])
    def test_any_interval_will_do(self, step: float) -> None:
        found = watch(book("leak"), lambda at: holding(10 + at / 60), 40 * MINUTE, step)
        assert [one.state for one in found] == ["fire"]

    def test_a_night_without_samples_is_no_growth(self) -> None:
        rules = book("leak")
        assert watch(rules, lambda at: holding(10), 5 * MINUTE) == []
        assert watch(rules, lambda at: holding(60), 5 * MINUTE, start=8 * 3600.0) == []
