"""Lost GPUs, XIDs, memory errors, throttling, heat: what fires, and what must not."""

from __future__ import annotations

import pytest

from gpulse.model.catalog import Gpu
from gpulse.present.alerts import alert_text
from tests.unit.analysis.alerts.machines import book, gpu, turns, watch


class TestLost:
    def test_a_lost_gpu_fires_at_once_and_clears_when_it_is_back(self) -> None:
        found = watch(book("lost"), lambda at: gpu(2, state="lost" if 5 <= at < 9 else "ok", xid_last=79), 20)
        assert turns(found) == [("lost", "fire", 5.0), ("lost", "clear", 9.0)]
        assert alert_text(found[0]) == "GPU 2 is lost (fell off the bus, XID 79)"
        assert (found[0].severity, found[0].gpu, found[0].uuid) == ("critical", "2", "GPU-2")

    def test_a_driver_that_is_slow_for_a_moment_fires_nothing(self) -> None:
        assert watch(book("lost"), lambda at: gpu(state="timeout" if 5 <= at < 10 else "ok"), 30) == []

    def test_a_driver_that_stays_silent_fires(self) -> None:
        found = watch(book("lost"), lambda at: gpu(state="timeout" if at >= 5 else "ok"), 40)
        assert turns(found) == [("lost", "fire", 15.0)]

    def test_a_gpu_that_vanishes_fires_and_its_return_under_another_number_clears(self) -> None:
        rules = book("lost")

        def machine(at: float) -> tuple[Gpu, ...]:
            other = gpu(0, uuid="GPU-a")
            gone = () if 5 <= at < 50 else (gpu(1 if at < 50 else 7, uuid="GPU-b"),)
            return (other, *gone)

        found = watch(rules, machine, 60)
        assert turns(found) == [("lost", "fire", 15.0), ("lost", "clear", 50.0)]
        assert {one.uuid for one in found} == {"GPU-b"}
        assert rules.active == ()

    def test_a_gpu_that_sleeps_is_not_lost(self) -> None:
        assert watch(book("lost"), lambda at: gpu(state="asleep"), 30) == []


class TestXid:
    def test_each_code_fires_once_and_is_over_later(self) -> None:
        found = watch(book("xid"), lambda at: gpu(xid_last=None if at < 5 else 31 if at < 60 else 79), 900)
        assert [(one.what, one.state, one.severity) for one in found] == [
            ("31", "fire", "warn"),
            ("79", "fire", "critical"),
            ("31", "clear", "warn"),
            ("79", "clear", "critical"),
        ]
        assert "GPU has fallen off the bus" in alert_text(found[1])

    def test_two_codes_in_turn_do_not_storm(self) -> None:
        found = watch(book("xid"), lambda at: gpu(xid_last=31 if at % 2 else 43), 300)
        assert [(one.what, one.state) for one in found] == [("43", "fire"), ("31", "fire")]

    def test_a_code_that_is_no_longer_told_stays(self) -> None:
        found = watch(book("xid"), lambda at: gpu(xid_last=79 if at < 5 else None), 2000)
        assert turns(found) == [("xid", "fire", 0.0)]


class TestEcc:
    def test_what_was_there_before_fires_nothing(self) -> None:
        assert watch(book("ecc"), lambda at: gpu(ecc_uncorrected=12), 60) == []

    def test_rises_fire_once_until_there_is_rest(self) -> None:
        found = watch(book("ecc"), lambda at: gpu(ecc_uncorrected=min(20, max(0, at - 10))), 1000)
        assert turns(found) == [("ecc", "fire", 11.0), ("ecc", "clear", 631.0)]

    def test_a_counter_that_starts_anew_or_is_missing_fires_nothing(self) -> None:
        counts = [5, 5, None, 5, 0, 0, None, 0]
        assert watch(book("ecc"), lambda at: gpu(ecc_uncorrected=counts[int(at)]), 8) == []


class TestThrottled:
    def test_the_power_cap_of_a_healthy_h200_fires_nothing(self) -> None:
        def healthy(at: float) -> Gpu:
            reasons = ("sw_power_cap",) if int(at) % 2 else ()
            return gpu(
                throttle_reasons=reasons,
                clock_sm=1515 + 120 * (at % 2),
                power_draw=690,
                power_limit=700,
                utilization=100,
            )

        assert watch(book(), healthy, 1200) == []

    @pytest.mark.parametrize("pause", [1, 2, 5])
    def test_heat_that_flickers_fires_once(self, pause: int) -> None:
        def flickering(at: float) -> Gpu:
            return gpu(throttle_reasons=() if int(at) % (pause + 1) else ("sw_thermal_slowdown",))

        assert [turn.state for turn in watch(book("throttled"), flickering, 300)] == ["fire"]

    def test_a_single_slow_second_a_minute_fires_nothing(self) -> None:
        def seldom(at: float) -> Gpu:
            return gpu(throttle_reasons=() if int(at) % 60 else ("sw_thermal_slowdown",))

        assert watch(book("throttled"), seldom, 1200) == []

    @pytest.mark.parametrize(
        "reason", ["gpu_idle", "applications_clocks_setting", "sync_boost", "display_clock_setting", "0x400"]
    )
    def test_other_harmless_reasons_fire_nothing(self, reason: str) -> None:
        assert watch(book("throttled"), lambda at: gpu(throttle_reasons=(reason,)), 100) == []

    @pytest.mark.parametrize(
        ("reasons", "words"),
        [
            (("hw_slowdown", "hw_thermal_slowdown"), "too hot"),
            (("sw_thermal_slowdown",), "too hot"),
            (("hw_slowdown", "hw_power_brake_slowdown"), "power brake"),
            (("hw_slowdown",), "hardware slowdown"),
        ],
    )
    def test_a_reason_that_flickers_fires_once_and_clears_once(self, reasons: tuple[str, ...], words: str) -> None:
        def flickers(at: float) -> Gpu:
            return gpu(throttle_reasons=reasons if 10 <= at < 100 and at % 3 else ("gpu_idle",), clock_sm=345)

        found = watch(book("throttled"), flickers, 300)
        assert [one.state for one in found] == ["fire", "clear"]
        assert alert_text(found[0]) == f"GPU 0 throttled: {words}"
        assert found[1].time - found[0].time > 120

    def test_one_blip_fires_nothing(self) -> None:
        found = watch(book("throttled"), lambda at: gpu(throttle_reasons=("hw_slowdown",) if at == 7 else ()), 300)
        assert found == []


class TestHot:
    def test_the_limit_of_the_gpu_itself_counts(self) -> None:
        def heat(at: float) -> Gpu:
            return gpu(temperature=86 if 10 <= at < 60 else 78, temperature_limit=87)

        assert turns(watch(book("hot"), heat, 200)) == [("hot", "fire", 40.0), ("hot", "clear", 120.0)]
        assert watch(book("hot"), lambda at: gpu(temperature=86, temperature_limit=95), 200) == []
        assert watch(book("hot"), lambda at: gpu(temperature=86), 200) == []

    def test_hovering_below_the_limit_does_not_clear(self) -> None:
        found = watch(book("hot"), lambda at: gpu(temperature=90 - (0 if at < 60 else at % 4)), 1000)
        assert turns(found) == [("hot", "fire", 30.0)]
        found = watch(book("hot"), lambda at: gpu(temperature=90 if at < 60 else 85), 1000)
        assert turns(found) == [("hot", "fire", 30.0)]

    def test_memory_is_an_alert_of_its_own(self) -> None:
        found = watch(book("hot"), lambda at: gpu(temperature=50, memory_temperature=101), 60)
        assert [(one.what, alert_text(one)) for one in found] == [
            ("memory", "GPU 0 memory is at 101 °C (limit 100 °C)")
        ]

    def test_a_missing_temperature_leaves_it_as_it_is(self) -> None:
        found = watch(book("hot"), lambda at: gpu(temperature=95 if at < 60 else None, memory_temperature=40), 500)
        assert turns(found) == [("hot", "fire", 30.0)]

    def test_the_threshold_can_be_set(self) -> None:
        found = watch(book("hot", hot={"above": 60, "for": "5s"}), lambda at: gpu(temperature=61), 30)
        assert turns(found) == [("hot", "fire", 5.0)]
