"""Many real processes in one queue: they come, are killed and cleaned away under each other, and share no GPU."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import gpulse
from gpulse.analysis import waiting
from gpulse.analysis.free import WANTED, Requirement
from gpulse.analysis.waiting import PARENT, Waiting, allotted
from gpulse.errors import GpulseError, NoFreeGpu
from gpulse.present.queue import hold_text
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.registry import default_source, make_source
from gpulse.store.claims import claim, user_name
from gpulse.store.entry import Entry
from gpulse.store.queue import Queue, QueuePlace, new_entry

PATIENCE = 60.0
GIB = 1 << 30


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CUDA_VISIBLE_DEVICES", PARENT, "SLURM_JOB_ID", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GPULSE_CLAIMS", str(tmp_path))
    return tmp_path


def entries() -> list[Entry]:
    return Queue().entries()


def seek(wait: float | None = None, **parts: Any) -> tuple[list[Any], list[Any], Waiting]:
    asked = Requirement(parts.pop("count", 1), parts.pop("memory", None), share=parts.pop("share", False))
    sampler = Sampler(make_source(default_source()), WANTED, clock=parts.pop("clock", None)).open()
    waiting = Waiting(asked, hold_text, **parts)
    try:
        return *waiting.seek(sampler, None, 0.0, wait), waiting
    finally:
        sampler.close()


def forked(work: Callable[[], None]) -> int:
    if pid := os.fork():
        return pid
    code = 1
    try:
        work()
        code = 0
    except GpulseError:
        pass
    finally:
        os._exit(code)


def until(seen: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_many_processes_share_no_gpu_and_all_have_their_turn(folder: Path) -> None:
    chance, log = Random(7), os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def job(name: int, count: int, seconds: float) -> None:
        gpus, locks, waiting = seek(PATIENCE, count=count)
        os.write(log, f"{name} begins {','.join(str(gpu.index) for gpu in gpus)}\n".encode())
        time.sleep(seconds)
        os.write(log, f"{name} ends\n".encode())
        for lock in locks:  # before those who wait are told, who would still find them held
            lock.close()
        waiting.place.leave()

    with gpulse.testing.scripted(gpus=4):
        jobs = {}
        for name in range(30):
            count, seconds = chance.choice((1, 1, 2, 4)), chance.random() * 0.05
            jobs[forked(lambda: job(name, count, seconds))] = name  # noqa: B023
            if name % 10 == 5:
                victim = chance.choice(list(jobs))
                os.kill(victim, signal.SIGKILL)
                os.waitpid(victim, 0)
                os.write(log, f"{jobs.pop(victim)} killed\n".encode())
            if name == 20:  # as after a cleaning of the folder
                for path in folder.glob("gpulse-queue-*"):
                    path.unlink(missing_ok=True)
        assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in jobs] == [0] * len(jobs)
        assert entries() == []
    held: dict[str, str] = {}
    for who, what, *gpus in (line.split() for line in (folder / "log").read_text().splitlines()):
        if what == "begins":
            for gpu in gpus[0].split(","):
                assert gpu not in held, (folder / "log").read_text()
                held[gpu] = who
        else:
            held = {gpu: other for gpu, other in held.items() if other != who}
    assert (folder / "log").read_text().count("ends") >= len(jobs)


def hold() -> None:
    seek()
    signal.pause()


def test_a_small_job_does_not_overtake_a_large_one_that_came_first() -> None:
    with gpulse.testing.scripted(gpus=2):
        holder = forked(hold)
        until(entries)
        large = forked(lambda: seek(PATIENCE, count=2) and None)
        until(lambda: [entry.count for entry in entries() if entry.kind == "waiting"] == [2])
        with pytest.raises(NoFreeGpu) as refused:
            seek()
        me = user_name(os.getuid())
        assert f"kept for {me}, who waits for 2" in str(refused.value)
        assert f"held for {me} since " in str(refused.value)
        os.kill(holder, signal.SIGKILL)
        assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in (holder, large)] == [-signal.SIGKILL, 0]


def test_a_lively_queue_does_not_make_a_request_look_ever_less_often(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change of the queue doubled the time until it would notice a program that died, which changes nothing in the folder."""
    clock, other = ManualClock(), folder / "gpulse-queue-other"
    steps: list[Callable[[], object]] = [other.touch, other.unlink] * 10
    freed: list[float] = []

    def sleep(seconds: float) -> None:
        ManualClock.sleep(clock, seconds)
        if steps:
            steps.pop(0)()
            freed[:] = [clock.monotonic()]

    monkeypatch.setattr(clock, "sleep", sleep)
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=clock.monotonic, time=time.time, sleep=time.sleep))
    with gpulse.testing.scripted(gpus=1):
        held = claim(str(gpulse.gpus()[0].uuid)) or pytest.fail("nobody has it")
        steps.append(held.close)
        seek(PATIENCE, clock=clock)[2].place.leave()
    assert clock.monotonic() - freed[0] < 1


def test_who_does_not_take_its_turn_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request written by hand, whose process only lives, must not block the queue for good."""
    clock = ManualClock()
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=clock.monotonic, time=time.time, sleep=time.sleep))

    def idle() -> None:
        QueuePlace(new_entry("waiting")).write()
        signal.pause()

    with gpulse.testing.scripted(gpus=1):
        pid = forked(idle)
        until(entries)
        with pytest.raises(NoFreeGpu, match="kept for") as refused:
            seek(30.0, clock=clock)
        assert refused.value.exit_code == 124
        seek(600.0, clock=clock)[2].place.leave()
        assert 60 < clock.monotonic() < 600
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.parametrize(("wait", "code"), [(None, 1), (0.0, 124), (0.01, 124)])
def test_who_waited_in_vain_gets_124_also_when_the_first_look_took_longer(wait: float | None, code: int) -> None:
    with (
        gpulse.testing.scripted(gpus=1),
        claim(str(gpulse.gpus()[0].uuid)) or pytest.fail("nobody has it"),
        pytest.raises(NoFreeGpu) as refused,
    ):
        seek(wait)
    assert refused.value.exit_code == code
    assert ("Use wait=True" in str(refused.value)) == (wait is None)


def test_who_has_locked_a_gpu_is_named_although_no_claim_is_there() -> None:
    holder = rf"GPU 0: locked by {user_name(os.getuid())} \(pid {os.getpid()}\)"
    with (
        gpulse.testing.scripted(gpus=1),
        claim(str(gpulse.gpus()[0].uuid)) or pytest.fail("nobody has it"),
        pytest.raises(NoFreeGpu, match=holder),
    ):
        seek()


def test_a_cancelled_request_ends() -> None:
    with gpulse.testing.scripted(gpus=1), claim(str(gpulse.gpus()[0].uuid)) or pytest.fail("nobody has it"):
        pid = forked(lambda: seek(PATIENCE) and None)
        until(entries)
        Queue().cancel(entries()[0])
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
        assert entries() == []


def test_small_jobs_share_a_gpu_by_memory() -> None:
    small = {"share": True, "memory": 30.0 * GIB}
    with gpulse.testing.scripted(gpus=[{"memory_total": 80 * GIB, "memory_used": 0, "memory_free": 80 * GIB}]):
        first, second = seek(**small), seek(**small)
        assert first[0][0].uuid == second[0][0].uuid
        with pytest.raises(NoFreeGpu):
            seek(**small)
        with pytest.raises(NoFreeGpu, match=r"held for .* with 30\.0 GiB"):
            seek()
        for _, locks, waiting in (first, second):
            waiting.place.leave()
            for lock in locks:
                lock.close()
        assert seek()[0]


def test_a_gpu_in_use_counts_as_free_with_enough_memory_left() -> None:
    used = {"pid": 4242, "name": "python", "user": "ada", "memory_used": 30 * GIB, "type": "C"}
    gpu = {"memory_total": 80 * GIB, "memory_used": 30 * GIB, "memory_free": 50 * GIB, "processes": [used]}
    with gpulse.testing.scripted(gpus=[gpu]):
        with pytest.raises(NoFreeGpu, match='or share=True, free_memory="50GiB" to run beside others'):
            gpulse.pick(window=0)
        assert gpulse.pick(window=0, share=True, free_memory="40GiB")
        with pytest.raises(NoFreeGpu, match=r"50\.0 GiB of memory are free"):
            gpulse.pick(window=0, share=True, free_memory="60GiB")
        with pytest.raises(gpulse.GpulseError, match="needs an amount of memory"):
            gpulse.pick(window=0, share=True)


def test_what_another_has_reserved_is_held_for_them(folder: Path) -> None:
    with gpulse.testing.scripted(gpus=1):
        uuid = str(gpulse.gpus()[0].uuid)
        entry = new_entry("reserved", gpus=[uuid], begins=time.time(), until=time.time() + 100, reason="a talk")
        Queue().reserve(entry)
        assert seek(claims=False)[0]  # it is ours
        if os.getuid() == 0:
            os.chown(folder / f"gpulse-queue-{entry.id}", 4321, 4321)
            with pytest.raises(NoFreeGpu, match=r"held for 4321 until \d\d:\d\d \(a talk\)"):
                seek()


def test_a_snapshot_says_for_whom_a_gpu_is_held_and_every_surface_words_it_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gpulse.live.wire import sample
    from gpulse.present.words import held_text, remarks
    from gpulse.sources.base import Machine

    monkeypatch.setattr(Machine, "real", True)
    me = user_name(os.getuid())
    with gpulse.testing.scripted(gpus=[{}, {"processes": [{"pid": 7, "name": "python", "user": me}]}, {}]):
        free, used, other = (str(gpu.uuid) for gpu in gpulse.gpus())
        assert all(gpu.held_for is None and "held_for" not in gpu.gaps for gpu in gpulse.snapshot().gpus)
        now = time.time()
        until = round(now) + 5 * 86400.0
        Queue().reserve(new_entry("reserved", gpus=[free], begins=now, until=until))
        Queue().reserve(new_entry("reserved", gpus=[other], begins=until, until=until + 1))  # not yet
        place = QueuePlace(new_entry("running", gpus=[used]))
        place.write()
        taken = gpulse.snapshot()
        place.leave()
    assert [(gpu.held_for, gpu.held_until) for gpu in taken.gpus] == [(me, until), (me, None), (None, None)]
    notes = [[text for text, _, _ in remarks(gpu) if text.startswith("held")] for gpu in taken.gpus]
    text = held_text(me, until, now)
    assert notes == [[text], [], []]  # that it is ours is to be seen
    assert [gpu.get("held") for gpu in sample(taken)["gpus"]] == [text, None, None]


class TestAllotted:
    """Who has GPUs already gets these."""

    def given(self, count: int = 1, words: Sequence[str] | None = None, **environ: str) -> list[float | None] | None:
        with gpulse.testing.scripted(gpus=4):
            found = allotted(gpulse.gpus(["mig_mode"]), count, words, environ)
        return None if found is None else [gpu.index for gpu in found]

    def test_without_a_scheduler_nothing_is_given(self) -> None:
        assert self.given() is None
        assert self.given(CUDA_VISIBLE_DEVICES="1", GPULSE_CLAIM="abc", SLURM_JOB_ID="7") is None

    def test_slurm_and_kubernetes(self) -> None:
        assert self.given(2, SLURM_JOB_ID="7", SLURM_JOB_GPUS="1,3") == [1, 3]
        assert self.given(SLURM_JOB_ID="7", SLURM_JOB_GPUS="1,3", words=["3"]) == [3]
        assert self.given(2, KUBERNETES_SERVICE_HOST="10.0.0.1", CUDA_VISIBLE_DEVICES="2,1") == [2, 1]
        with pytest.raises(NoFreeGpu, match="this program has 1 GPU from Slurm, 2 requested"):
            self.given(2, SLURM_JOB_ID="7", SLURM_JOB_GPUS="1")

    def test_a_run_inside_of_a_run_shares_its_claim(self) -> None:
        with gpulse.testing.scripted(gpus=4):
            gpus = gpulse.gpus()
        place = QueuePlace(new_entry("running", gpus=[str(gpus[2].uuid), str(gpus[3].uuid)]))
        place.write()
        visible = f"{gpus[2].uuid},{gpus[3].uuid}"
        assert self.given(2, GPULSE_CLAIM=place.entry.id, CUDA_VISIBLE_DEVICES=visible) == [2, 3]
        with pytest.raises(NoFreeGpu, match="has 2 GPUs from the `gpulse run` around it, 3 requested"):
            self.given(3, GPULSE_CLAIM=place.entry.id, CUDA_VISIBLE_DEVICES=visible)
        place.leave()
        assert self.given(1, GPULSE_CLAIM=place.entry.id) is None
