"""Memory held for nothing, jobs that end, GPUs that become free."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.concerns import concerns
from gpulse.model.catalog import Gpu, Process
from gpulse.model.verdict import Diagnosis
from gpulse.present.alerts import alert_facts, alert_text
from gpulse.present.cells import moment_text, zone_text
from tests.unit.analysis.alerts.machines import GIB, START, book, gpu, process, turns, watch

MINUTE = 60.0


class TestIdleAllocation:
    @staticmethod
    def holds(utilization: float | None = 0, held: float = 80, **values: Any) -> Gpu:
        return gpu(utilization=utilization, pstate=0, processes=[process(held=held * GIB, **values)])

    def test_a_forgotten_notebook_fires_once_and_clears_when_it_works(self) -> None:
        found = watch(book("idle_allocation"), lambda at: self.holds(90 if at >= 1500 else 0, cpu_percent=1), 1600)
        assert turns(found) == [("idle_allocation", "fire", 900.0), ("idle_allocation", "clear", 1500.0)]
        assert alert_text(found[0]) == "ada's python (pid 42) holds 80.0 GiB on GPU 0 but has been idle for 15m00s"
        assert (found[0].values["user"], found[0].what) == ("ada", "42")

    def test_an_idle_gpu_in_p0_that_nobody_holds_fires_nothing(self) -> None:
        assert watch(book(), lambda at: gpu(utilization=0, pstate=0, memory_used=0, clock_memory=3201), 3600) == []

    @pytest.mark.parametrize(
        "values",
        [{"cpu_percent": 100}, {"tree_cpu_percent": 800, "cpu_percent": 0}, {"held": 0.1}, {"type": "G"}],
        ids=["preparing data", "its workers prepare", "a mere context", "a desktop"],
    )
    def test_what_is_no_idle_allocation_fires_nothing(self, values: dict[str, Any]) -> None:
        assert watch(book("idle_allocation"), lambda at: self.holds(**values), 3600, 5.0) == []

    def test_time_in_which_the_gpu_does_not_respond_is_not_idle_time(self) -> None:
        def away(at: float) -> Gpu:
            return self.holds() if not 600 <= at < 1200 else gpu(state="lost")

        assert turns(watch(book("idle_allocation"), away, 2000)) == [("idle_allocation", "fire", 1501.0)]

    def test_an_alert_says_for_how_long_it_has_lasted_by_now(self) -> None:
        rules = book("idle_allocation")
        watch(rules, lambda at: self.holds(), 3 * 3600 + 30)
        (active,) = rules.active
        assert alert_text(active).endswith("has been idle for 3h00m")
        assert active.since == START
        assert concerns(Diagnosis(), rules.active, START + 10_800)[0].since == START
        assert dict(alert_facts(active))["since"] == f"{moment_text(START)} {zone_text(START)}"

    def test_a_step_every_ten_minutes_is_work(self) -> None:
        assert watch(book("idle_allocation"), lambda at: self.holds(40 if at % 600 < 5 else 0), 7200) == []

    def test_a_blip_of_the_cpu_is_no_work(self) -> None:
        found = watch(book("idle_allocation"), lambda at: self.holds(cpu_percent=100 if at % 60 == 30 else 0), 3600)
        assert turns(found) == [("idle_allocation", "fire", 900.0)]

    def test_where_utilization_is_not_known_nothing_is_said(self) -> None:
        assert watch(book("idle_allocation"), lambda at: self.holds(None), 3600, 5.0) == []

    def test_one_that_idles_beside_one_that_works_is_found_by_its_own_share(self) -> None:
        def shared(at: float) -> Gpu:
            busy = process(7, 10 * GIB, sm_utilization=90, name="busy")
            idle = Process(dict(process(8, 10 * GIB, name="idle").items()), {"sm_utilization": "pending"})
            return gpu(utilization=90, processes=[busy, idle])

        found = watch(book("idle_allocation"), shared, 1000)
        assert [one.what for one in found] == ["8"]

    def test_a_missing_list_of_processes_ends_nothing(self) -> None:
        def hidden(at: float) -> Gpu:
            seen = self.holds()
            return seen if at < 1000 else Gpu(dict(seen.items()), {"processes": "failed"})

        assert turns(watch(book("idle_allocation"), hidden, 3000)) == [("idle_allocation", "fire", 900.0)]

    def test_a_pid_that_is_given_to_another_clears_and_starts_anew(self) -> None:
        found = watch(book("idle_allocation"), lambda at: self.holds(running_time=at if at < 1000 else at - 1000), 2000)
        assert turns(found) == [
            ("idle_allocation", "fire", 900.0),
            ("idle_allocation", "clear", 1000.0),
            ("idle_allocation", "fire", 1900.0),
        ]

    def test_its_end_clears(self) -> None:
        found = watch(book("idle_allocation"), lambda at: self.holds() if at < 1000 else gpu(utilization=0), 1100)
        assert [alert_text(one) for one in found][1:] == ["ada's python (pid 42) ended on GPU 0, peak memory 80.0 GiB"]


class TestUnusedAllocation:
    @staticmethod
    def given(job: str | None = "slurm:7", **values: Any) -> Gpu:
        return gpu(job=job, job_user="ada", utilization=0, memory_used=0, **values)

    def test_a_gpu_of_a_job_that_nobody_uses_fires_once_and_clears_with_its_first_process(self) -> None:
        works = [process(held=GIB)]
        found = watch(book("allocation_unused"), lambda at: self.given(processes=works if at >= 1500 else ()), 1600)
        assert turns(found) == [("allocation_unused", "fire", 900.0), ("allocation_unused", "clear", 1500.0)]
        assert alert_text(found[0]) == "GPU 0 has not been used for 15m00s, although slurm:7 of ada has it"

    def test_the_next_job_starts_anew(self) -> None:
        found = watch(book("allocation_unused"), lambda at: self.given("slurm:7" if at < 1000 else "slurm:8"), 2000)
        assert [(*turn, one.what) for turn, one in zip(turns(found), found, strict=True)] == [
            ("allocation_unused", "fire", 900.0, "slurm:7"),
            ("allocation_unused", "clear", 1000.0, "slurm:7"),
            ("allocation_unused", "fire", 1900.0, "slurm:8"),
        ]

    def test_a_job_that_gives_it_back_clears(self) -> None:
        found = watch(book("allocation_unused"), lambda at: self.given("slurm:7" if at < 1000 else ""), 3000)
        assert [one.state for one in found] == ["fire", "clear"]

    @pytest.mark.parametrize("job", ["", None], ids=["free", "no Slurm"])
    def test_a_gpu_that_no_job_has_fires_nothing(self, job: str | None) -> None:
        assert watch(book("allocation_unused"), lambda at: self.given(job), 2000, 5.0) == []

    def test_without_a_list_of_processes_nothing_is_said(self) -> None:
        hidden = Gpu(dict(self.given().items()), {"processes": "failed"})
        assert watch(book("allocation_unused"), lambda at: hidden, 2000, 5.0) == []


class TestJobFinished:
    def test_a_job_that_ends_is_told_once(self) -> None:
        def job(at: float) -> Gpu:
            return gpu(processes=[process(held=20 * GIB, running_time=at + 3600)] if at < 600 else [])

        rules = book("job_finished")
        found = watch(rules, job, 1000)
        assert turns(found) == [("job_finished", "fire", 601.0)]
        assert found[0].once
        assert rules.active == ()
        assert alert_text(found[0]) == "ada's python (pid 42) ended on GPU 0 after 1h09m, peak memory 20.0 GiB"

    @pytest.mark.parametrize(("held", "until"), [(20 * GIB, 200), (GIB // 2, 900)], ids=["short", "small"])
    def test_small_and_short_ones_are_not_told(self, held: float, until: float) -> None:
        assert (
            watch(book("job_finished"), lambda at: gpu(processes=[process(held=held)] if at < until else []), 1000)
            == []
        )

    def test_one_sample_without_it_is_no_end(self) -> None:
        def flickers(at: float) -> Gpu:
            return gpu(processes=[] if at % 50 == 49 else [process(held=20 * GIB)])

        assert watch(book("job_finished"), flickers, 1000) == []

    def test_a_lost_gpu_is_no_end(self) -> None:
        def lost(at: float) -> Gpu:
            return gpu(processes=[process(held=20 * GIB)]) if at < 600 else gpu(state="lost")

        assert watch(book("job_finished"), lost, 1000) == []

    def test_all_ranks_of_a_job_are_one(self) -> None:
        def ranks(at: float) -> tuple[Gpu, ...]:
            return tuple(gpu(at_, processes=[process(100 + at_, 20 * GIB)] if at < 600 else []) for at_ in range(8))

        found = watch(book("job_finished"), ranks, 700)
        assert [alert_text(one) for one in found] == [
            "ada's python (pid 100) and 7 more ended on GPUs 0-7, peak memory 160 GiB"
        ]

    def test_one_process_on_two_gpus_ends_when_it_has_left_both(self) -> None:
        def leaves(at: float) -> tuple[Gpu, ...]:
            one = [process(held=20 * GIB)]
            return gpu(0, processes=one if at < 600 else []), gpu(1, processes=one if at < 900 else [])

        assert turns(watch(book("job_finished"), leaves, 1000)) == [("job_finished", "fire", 901.0)]

    def test_memory_that_ran_out_is_said(self) -> None:
        def full(at: float) -> Gpu:
            return (
                gpu(processes=[process(held=(90 if at < 597 else 99) * GIB)], memory_percent=99) if at < 600 else gpu()
            )

        found = watch(book("job_finished"), full, 700)
        assert alert_text(found[0]).endswith("probably out of memory: it held 99.0 GiB")
        assert found[0].severity == "warn"

    def test_one_that_ends_on_a_gpu_that_was_full_all_the_time_has_finished(self) -> None:
        def full(at: float) -> Gpu:
            return gpu(processes=[process(held=99 * GIB)], memory_percent=99) if at < 600 else gpu()

        (found,) = watch(book("job_finished"), full, 700)
        assert (found.event.kind, found.severity) == ("process-end", "info")


class TestGpuFree:
    def test_told_once_after_each_use(self) -> None:
        def used(at: float) -> Gpu:
            busy = 100 <= at < 300 or 600 <= at < 900
            return gpu(utilization=90 if busy else 0, memory_used=0, processes=[process(held=GIB)] if busy else [])

        found = watch(book("gpu_free"), used, 1200)
        assert turns(found) == [("gpu_free", "fire", 330.0), ("gpu_free", "fire", 930.0)]
        assert alert_text(found[0]) == "GPU 0 (100 GiB) is free"
        assert all(one.once for one in found)

    def test_pauses_and_glances_are_not_told(self) -> None:
        def pauses(at: float) -> Gpu:
            return gpu(utilization=0 if at % 100 < 20 else 90, memory_used=0)

        assert watch(book("gpu_free"), pauses, 1200) == []
        glance = watch(book("gpu_free"), lambda at: gpu(memory_used=0, utilization=50 if at % 100 < 20 else 0), 1200)
        assert glance == []

    def test_one_that_was_always_free_is_not_told(self) -> None:
        assert watch(book("gpu_free"), lambda at: gpu(utilization=0, memory_used=0), 600) == []

    @pytest.mark.parametrize("after", [gpu(state="lost"), gpu(memory_used=20 * GIB, utilization=0), gpu(0)])
    def test_lost_held_by_unseen_or_unknown_is_not_free(self, after: Gpu) -> None:
        found = watch(book("gpu_free"), lambda at: gpu(utilization=90, memory_used=9 * GIB) if at < 200 else after, 600)
        assert found == []

    def test_a_desktop_does_not_use_it(self) -> None:
        desktop = process(7, GIB, type="G")
        found = watch(
            book("gpu_free"),
            lambda at: gpu(
                utilization=1, memory_used=GIB, processes=[desktop, process(held=GIB)] if at < 200 else [desktop]
            ),
            600,
        )
        assert turns(found) == [("gpu_free", "fire", 230.0)]


def test_a_service_that_computes_a_little_every_second_is_not_idle() -> None:
    rules = book("idle_allocation", idle_allocation={"for": 60})
    assert watch(rules, lambda _: gpu(processes=(process(7, 2 * GIB),), utilization=0, sm_active=0.3), 120) == []
    assert (
        len(watch(rules, lambda _: gpu(processes=(process(7, 2 * GIB),), utilization=0, sm_active=0.0), 120, start=120))
        == 1
    )
