"""Whose turn it is: by example, and for any arrivals, lengths, deaths and reboots."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.analysis.turns import LEAD, Slot, Turn, in_order, overlapping, reservable, turns
from gpulse.store.entry import Entry

NOW = 1000.0
GIB = 1 << 30


def waiting(id: str, wanted: int = 1, user: str = "", **parts: Any) -> Entry:
    user = user or id
    known: dict[str, Any] = {"count": wanted, "arrived": float(ord(id[0])), "uid": hash(user)}
    return Entry(id, "waiting", user, **known | parts)


def running(id: str, *gpus: int, since: float = 900.0, **parts: Any) -> Entry:
    return Entry(id, "running", id, gpus=[f"{at}" for at in gpus], since=since, uid=hash(id), **parts)


def reserved(user: str, *gpus: int, begins: float = 0.0, until: float = 2000.0) -> Entry:
    return Entry(user, "reserved", user, gpus=[f"{at}" for at in gpus], begins=begins, until=until, uid=hash(user))


def machine(total: int = 4) -> list[Slot]:
    return [Slot(f"{at}", memory=80.0 * GIB) for at in range(total)]


def given_to(*entries: Entry, slots: list[Slot] | None = None, me: str = "") -> dict[str, str]:
    found = turns(NOW, machine() if slots is None else slots, entries, me)
    return {turn.entry.id: ",".join(turn.gpus) or turn.why for turn in found}


def test_first_come_first_served() -> None:
    assert given_to(waiting("b", 2), waiting("a", 2), waiting("c")) == {"a": "0,1", "b": "2,3", "c": "waiting"}
    assert given_to(waiting("b", 3), waiting("z", 3, arrived=1.0)) == {"z": "0,1,2", "b": "waiting"}


def test_a_large_request_keeps_the_gpus_it_could_use() -> None:
    held = running("x", 0, 1)
    assert given_to(held, waiting("a", 4), waiting("b")) == {"a": "waiting", "b": "waiting"}
    other = waiting("b", among=["2"])
    assert given_to(held, waiting("a", 2, among=["0", "1"]), other) == {"a": "waiting", "b": "2"}


@pytest.mark.parametrize(
    ("shortest", "longest", "gets"),
    [(500.0, 400.0, "2"), (500.0, 401.0, "waiting"), (None, 1.0, "waiting"), (500.0, None, "waiting")],
)
def test_backfill_needs_to_know_that_it_delays_nobody(shortest: float | None, longest: float | None, gets: str) -> None:
    held = running("x", 0, 1, shortest=shortest)  # since 100 s: it ends in 400 s at the earliest
    assert given_to(held, waiting("a", 4), waiting("b", longest=longest)) == {"a": "waiting", "b": gets}


def test_who_came_first_is_first() -> None:
    queue = [waiting("a"), waiting("b"), waiting("c"), running("a", 0, 1, since=NOW - 7200)]
    queue[1].arrived = queue[0].arrived - 1
    assert [entry.id for entry in in_order(queue)] == ["b", "a", "c"]


def test_a_reservation_is_its_owners_and_comes_before_the_queue() -> None:
    ours = reserved("ada", 2, 3)
    assert given_to(ours, waiting("a", 4), waiting("b", user="ada")) == {"a": "waiting", "b": "2"}
    assert given_to(ours, waiting("a", 2), waiting("b")) == {"a": "0,1", "b": "waiting"}


@pytest.mark.parametrize(
    ("begins", "longest", "gets"),
    [
        (NOW + LEAD, None, "0"),
        (NOW + LEAD - 1, None, "waiting"),
        (NOW + 600, 600.0, "0"),
        (NOW + 600, 601.0, "waiting"),
    ],
)
def test_no_job_is_started_that_would_run_into_a_reservation(begins: float, longest: float | None, gets: str) -> None:
    planned = reserved("ada", 0, begins=begins, until=begins + 100)
    assert given_to(planned, waiting("b", longest=longest), slots=machine(1)) == {"b": gets}
    assert given_to(planned, waiting("b", user="ada", longest=longest), slots=machine(1)) == {"b": "0"}


def test_small_jobs_share_a_gpu_by_memory_and_fill_one_first() -> None:
    there = running("x", 1, share=True, memory=50.0 * GIB)
    small: dict[str, Any] = {"share": True, "memory": 30.0 * GIB}
    assert given_to(there, waiting("a", **small), waiting("b", **small)) == {"a": "1", "b": "0"}
    assert given_to(there, waiting("a", share=True, memory=81.0 * GIB), slots=machine(2)) == {"a": "0"}
    assert given_to(there, waiting("a", 4)) == {"a": "waiting"}
    assert given_to(running("x", 0), waiting("a", **small), slots=machine(1)) == {"a": "waiting"}


def test_small_jobs_do_not_starve_one_that_needs_the_gpu_alone() -> None:
    there = running("x", 0, share=True, memory=GIB)
    assert given_to(there, waiting("a"), waiting("b", share=True, memory=GIB), slots=machine(1))["b"] == "waiting"


def test_what_others_use_or_have_locked_is_not_given() -> None:
    slots = [Slot("0", idle=False, fits=False), Slot("1", locked=True), Slot("2")]
    assert given_to(waiting("a"), waiting("b"), slots=slots) == {"a": "2", "b": "waiting"}
    beside = [Slot("0", idle=False, fits=True, memory=80.0 * GIB)]  # in use, with memory left for the one who asks
    assert given_to(waiting("b", share=True, memory=GIB), slots=beside, me="b") == {"b": "0"}
    assert given_to(waiting("a"), slots=beside) == {"a": "waiting"}


def test_gpus_of_one_product_where_possible() -> None:
    slots = [Slot("0", product="A100"), Slot("1", product="H100"), Slot("2", product="H100")]
    assert given_to(waiting("a", 2), slots=slots) == {"a": "1,2"}


def starts(*entries: Entry) -> dict[str, float | None]:
    return {turn.entry.id: turn.starts for turn in turns(NOW, machine(2), entries)}


def test_when_it_may_start_is_told_from_past_runs_and_reservations() -> None:
    held = running("x", 0, 1, longest=300.0)  # for 100 s
    assert starts(held, waiting("a", longest=50.0), waiting("b", 2)) == {"a": 1200.0, "b": 1250.0}
    assert starts(running("x", 0, 1), waiting("a")) == {"a": None}
    assert starts(running("x", 0, longest=50.0), running("y", 1), waiting("a")) == {"a": None}  # longer than ever
    assert starts(reserved("ada", 0, 1, until=1500.0), waiting("b")) == {"b": 1500.0}


def test_nobody_gets_past_the_queue_by_reserving() -> None:
    planned = reserved("ada", 3, begins=2000.0, until=3000.0)
    queue = [running("x", 0), waiting("b", 2, among=["1"]), planned]
    free, taken = reservable(NOW, NOW, 1500.0, machine(), queue)
    assert (free, {uuid: one.id for uuid, one in taken.items()}) == (["2", "3", "0"], {"1": "b"})
    free, taken = reservable(NOW, 2500.0, 2600.0, machine(), queue)
    assert (free, list(taken)) == (["1", "2", "0"], ["3"])
    assert overlapping("3", queue, 2900.0, 3100.0, uid=hash("ada")) is None


# --- any queue


class Job:
    """A job of the model: how long it really takes lies between what its past runs say."""

    def __init__(
        self, id: str, arrives: float, wanted: int, length: float, known: bool, dies: float | None, share: bool
    ) -> None:
        self.id = id
        self.arrives = arrives
        self.count = wanted
        self.length = length
        self.bounds = {"shortest": 0.8 * length, "longest": 1.25 * length} if known else {}
        self.dies = dies  # seconds after it came at which it is killed, waiting or running
        self.share = {"share": True, "memory": 30.0 * GIB} if share else {}
        self.began: float | None = None
        self.gpus: tuple[str, ...] = ()
        self.ended = False

    def entry(self) -> Entry:
        parts: dict[str, Any] = {
            "uid": int(self.id),
            "arrived": self.arrives,
            "count": self.count,
            **self.bounds,
            **self.share,
        }
        if self.began is None:
            return Entry(self.id, "waiting", self.id, **parts)
        return Entry(self.id, "running", self.id, gpus=self.gpus, since=self.began, **parts)

    def end(self) -> float:
        """When it will be gone, by itself or killed."""
        killed = float("inf") if self.dies is None else self.arrives + self.dies
        return min(killed, float("inf") if self.began is None else self.began + self.length)


JOBS = st.lists(
    st.tuples(
        st.integers(0, 300), st.integers(1, 4), st.integers(1, 60), st.booleans(),
        st.none() | st.integers(0, 200), st.sampled_from([False, False, True]),
    ),
    min_size=1, max_size=100,
)  # fmt: skip


@settings(max_examples=60)
@given(drawn=JOBS, reboots=st.lists(st.integers(0, 400), max_size=2))
def test_no_gpu_is_given_twice_nobody_starves_and_nobody_is_delayed(
    drawn: list[tuple[Any, ...]], reboots: list[int]
) -> None:
    simulate(drawn, reboots)


@pytest.mark.parametrize("seed", range(8))
def test_a_hundred_jobs(seed: int) -> None:
    chance = Random(seed)
    drawn = [
        (
            chance.randrange(100),
            chance.choice((1, 1, 2, 4)),
            chance.randrange(1, 40),
            chance.random() < 0.5,
            chance.randrange(200) if chance.random() < 0.1 else None,
            chance.random() < 0.3,
        )
        for _ in range(100)
    ]
    simulate(drawn, [seed * 40] if seed % 2 else [])


def simulate(drawn: list[tuple[Any, ...]], reboots: list[int]) -> None:
    """Let jobs come, run, die and be rebooted, and check every decision."""
    jobs = [
        Job(f"{at:03}", at / 1000 + when, *rest)
        for at, (when, *rest) in enumerate(sorted(drawn, key=lambda job: job[0]))
    ]
    clock = 0.0
    for step in count():
        assert step < 10 * len(jobs) + 10, "somebody starves"
        for job in jobs:
            rebooted = any(job.arrives <= reboot <= clock for reboot in reboots)
            job.ended = job.ended or job.end() <= clock or rebooted
        there = [job for job in jobs if job.arrives <= clock and not job.ended]
        found = turns(clock, machine(), [job.entry() for job in there])
        check(found, there, clock)
        for turn in found:
            if turn.gpus:
                job = jobs[int(turn.entry.id)]
                job.began, job.gpus = clock, turn.gpus
        ahead = [job.end() for job in there if job.end() < float("inf")]
        ahead += [job.arrives for job in jobs if job.arrives > clock] + [at for at in reboots if at > clock]
        if not ahead:
            break
        clock = min(ahead)
    assert all(job.ended or job.began is not None for job in jobs)


def check(found: list[Turn], there: list[Job], now: float) -> None:
    by_id = {job.id: job for job in there}
    assert [turn.entry.id for turn in found] == sorted(job.id for job in there if job.began is None)  # by arrival
    held: dict[str, list[Job]] = {f"{at}": [] for at in range(4)}
    for job in there:
        for uuid in job.gpus:
            held[uuid].append(job)
    before = {uuid: list(jobs) for uuid, jobs in held.items()}
    for turn in found:
        job = by_id[turn.entry.id]
        assert len(turn.gpus) in (0, job.count)
        for uuid in turn.gpus:
            held[uuid].append(job)
    for jobs in held.values():
        assert len(jobs) <= 1 or (all(job.share for job in jobs) and len(jobs) <= 2)
    first = next((turn for turn in found if not turn.gpus), None)
    if first is not None:
        not_delayed(by_id[first.entry.id], before, found, by_id, now)


def not_delayed(first: Job, before: dict[str, list[Job]], found: list[Turn], by_id: dict[str, Job], now: float) -> None:
    """Whoever is let past the first that waits is gone before that one could have started without them."""
    earlier = {turn.entry.id: turn.gpus for turn in found if turn.gpus and turn.entry.id < first.id}
    held = {
        uuid: [*jobs, *(by_id[id] for id, gpus in earlier.items() if uuid in gpus)] for uuid, jobs in before.items()
    }

    def gone(job: Job) -> float:
        return (now if job.began is None else job.began) + job.length

    pick = min if first.share else max
    free = sorted(pick((gone(job) for job in jobs), default=now) for jobs in held.values())
    could = free[first.count - 1]
    for turn in found:
        if turn.gpus and turn.entry.id > first.id:
            assert now + by_id[turn.entry.id].length <= could
