"""Free or not, and why: over a window of samples, never in one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.free import Availability, Requirement, availability, never, refusal, samples_for, slots
from gpulse.analysis.turns import turns
from gpulse.errors import UnknownGpu
from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.store.claims import claim
from gpulse.store.entry import Entry
from tests.unit.snapshots import snapshots

if TYPE_CHECKING:
    from gpulse.model.catalog import State
    from gpulse.model.metric import Gap, Value

GIB = 1 << 30
ADA = Process({"pid": 12345, "name": "python", "user": "ada", "memory_used": 41 * GIB, "type": "C"})
XORG = Process({"pid": 7, "name": "Xorg", "user": "root", "memory_used": GIB, "type": "G"})


@pytest.fixture(autouse=True)
def _own_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULSE_CLAIMS", str(tmp_path))


def gpu(
    index: int = 0,
    *,
    processes: Sequence[Process] = (),
    state: State = "ok",
    gaps: dict[str, Gap] | None = None,
    instances: Sequence[Gpu] = (),
    **values: Value | None,
) -> Gpu:
    """A GPU that is free unless told otherwise; None takes a value out."""
    plain: dict[str, Value | None] = {
        "index": index, "uuid": f"GPU-{index:08x}", "name": "H100", "utilization": 0, "memory_used": 0,
        "memory_total": 80 * GIB, "memory_free": 79 * GIB, "temperature": 40,
    }  # fmt: skip
    known = {key: value for key, value in {**plain, **values}.items() if value is not None}
    return Gpu(known, gaps or {}, state=state, processes=tuple(processes), instances=tuple(instances))


def part(at: int, **values: Value) -> Gpu:
    return Gpu(
        {"index": at, "uuid": f"MIG-{at:08x}", "name": "MIG 1g.10gb", "memory_used": 0, "gpu_instance": at, **values}
    )


def judged(
    *samples: Sequence[Gpu], asked: Requirement | None = None, environ: dict[str, str] | None = None
) -> list[Availability]:
    window = [Snapshot(float(at), tuple(gpus)) for at, gpus in enumerate(samples)]
    (verdicts,) = availability(window, len(window), asked or Requirement(), environ or {})
    return verdicts


def why(*samples: Gpu, asked: Requirement | None = None) -> str:
    """Why the one GPU of these samples is not free."""
    (verdict,) = judged(*([sample] for sample in samples), asked=asked)
    return verdict.why


def test_a_gpu_that_slurm_gave_to_another_job_is_not_free() -> None:
    given = gpu(job="slurm:1234", job_user="ada\x1b")
    expected = "allocated by Slurm to job 1234 of ada?"
    assert why(given) == expected
    assert why(given, asked=Requirement(free_memory=GIB, share=True)) == expected
    (ours,) = judged([given], environ={"SLURM_JOB_ID": "1234"})
    (another,) = judged([given], environ={"SLURM_JOB_ID": "123"})
    assert (ours.why, another.why) == ("", expected)
    assert why(gpu(job="", job_user="")) == ""
    assert why(gpu(job="slurm:7")) == "allocated by Slurm to job 7"
    divided = gpu(job="slurm:7", instances=[part(1)], mig_mode=True)
    assert why(divided) == "allocated by Slurm to job 7"
    (slot,) = slots(Snapshot(0.0, (given,)), (), {})
    assert (slot.idle, slot.used) == (False, expected)


def best(verdicts: Sequence[Availability], asked: Requirement) -> tuple[Gpu, ...]:
    """What the only request in the queue gets."""
    seen = slots(Snapshot(0.0, tuple(verdict.gpu for verdict in verdicts)), verdicts)
    among = [verdict.gpu.uuid or "" for verdict in verdicts if not verdict.hopeless]
    mine = Entry("1", "waiting", "ada", count=asked.count, among=among, share=asked.share, memory=asked.free_memory)
    (turn,) = turns(0.0, seen, [mine], me="1")
    known = {verdict.gpu.uuid: verdict.gpu for verdict in verdicts}
    return tuple(known[uuid] for uuid in turn.gpus)


def indices(gpus: Sequence[Gpu]) -> list[float | None]:
    return [one.index for one in gpus]


@pytest.mark.parametrize(
    ("sample", "says"),
    [
        (gpu(), ""),
        (gpu(processes=[ADA]), "41.0 GiB held by ada (python, 12345)"),
        (gpu(processes=[XORG, ADA, ADA]), "41.0 GiB held by ada (python, 12345) and 1 more"),
        (gpu(processes=[Process({"pid": 5, "type": "C"}, {"name": "failed"})]), "held by a process (5)"),
        (gpu(processes=[Process({"pid": 5, "name": "a\x1b[2J", "type": "C+G"})]), "held by a process (a?[2J, 5)"),
        (gpu(processes=[XORG], memory_used=GIB + (100 << 20)), ""),
        (gpu(memory_used=9 * GIB), "9.0 GiB held by processes you cannot see"),
        (gpu(memory_used=250 << 20), ""),
        (gpu(memory_used=520 << 20), "520 MiB held by processes you cannot see"),
        (gpu(memory_used=None, gaps={"memory_used": "failed"}), "its memory cannot be read"),
        (gpu(memory_used=None, gaps={"memory_used": "unsupported"}), ""),
        (
            gpu(memory_used=None, gaps={"memory_used": "unsupported", "processes": "unsupported"}),
            "its memory cannot be read",
        ),
        (gpu(gaps={"processes": "denied"}), ""),
        (gpu(utilization=1), "in use 1 % of the time, by processes you cannot see"),
        (gpu(utilization=None), ""),
        (gpu(state="lost", memory_used=None), "it is lost"),
        (gpu(state="timeout", memory_used=None), "it is not responding"),
        (gpu(state="asleep", memory_used=None, utilization=None), ""),
        (gpu(xid_last=79), "it reported XID 79"),
        (gpu(xid_last=31), ""),
        (gpu(compute_mode="prohibited"), "its compute mode is prohibited"),
        (gpu(compute_mode="exclusive_process"), ""),
        (gpu(mig_mode=True), "MIG mode is on and it has no instances"),
        (gpu(uuid=None), "it has no UUID to be asked for by"),
        (gpu(uuid="GPU-1; rm -rf ~"), "it has no UUID to be asked for by"),
        (gpu(uuid="GPU-1\n"), "it has no UUID to be asked for by"),
    ],
)
def test_a_gpu_is_free_or_says_why_not(sample: Gpu, says: str) -> None:
    assert why(sample) == says


@pytest.mark.parametrize(
    ("sample", "asked", "says"),
    [
        (gpu(), Requirement(free_memory=79 * GIB), ""),
        (gpu(), Requirement(free_memory=79 * GIB + 1), "79.0 GiB of memory are free"),
        (gpu(), Requirement(free_memory=81 * GIB), "it has 80.0 GiB of memory"),
        (gpu(memory_free=None), Requirement(free_memory=80 * GIB), ""),
        (gpu(memory_free=None, memory_total=None), Requirement(free_memory=1), "its free memory is unknown"),
        (gpu(utilization=5), Requirement(utilization=5), ""),
        (gpu(utilization=6), Requirement(utilization=5), "in use 6 % of the time, by processes you cannot see"),
    ],
)
def test_more_can_be_asked_of_a_gpu(sample: Gpu, asked: Requirement, says: str) -> None:
    assert why(sample, asked=asked) == says


def test_what_happened_within_the_window_counts() -> None:
    assert why(gpu(processes=[ADA]), gpu(), gpu()) == "41.0 GiB held by ada (python, 12345)"
    assert why(gpu(utilization=30), gpu(), gpu()).startswith("in use 30 %")


def test_one_busy_sample_of_many_is_forgiven_and_two_are_not() -> None:
    assert why(*[gpu()] * 19, gpu(utilization=90)) == ""
    assert why(*[gpu()] * 18, *[gpu(utilization=90)] * 2).startswith("in use 90 %")


def test_the_window_rolls_on() -> None:
    samples = [Snapshot(float(at), (gpu(processes=[ADA] if at < 2 else []),)) for at in range(5)]
    assert [bool(verdicts[0].why) for verdicts in availability(samples, 2, Requirement(), {})] == [
        True,
        True,
        False,
        False,
    ]


def test_a_recording_shorter_than_the_window_is_judged_whole() -> None:
    assert [len(verdicts) for verdicts in availability([Snapshot(0.0, (gpu(),))] * 3, 9, Requirement(), {})] == [1]
    assert list(availability([], 9, Requirement(), {})) == []


def test_a_wrong_name_is_told_before_the_window_is_over() -> None:
    samples = iter([Snapshot(0.0, (gpu(),))] * 5)
    with pytest.raises(UnknownGpu):
        next(availability(samples, 5, Requirement(), {}, ["7"]))
    assert len(list(samples)) == 4


class TestChoice:
    def test_most_free_memory_then_the_coolest_then_the_first(self) -> None:
        gpus = [gpu(0), gpu(1, temperature=30), gpu(2, temperature=30), gpu(3, memory_free=90 * GIB, temperature=80)]
        verdicts = judged(gpus)
        assert [indices(best(verdicts, Requirement(count))) for count in (1, 2, 4)] == [[3], [3, 1], [3, 1, 2, 0]]
        assert best(verdicts, Requirement(5)) == ()

    def test_some_mebibytes_do_not_outweigh_heat(self) -> None:
        gpus = [gpu(0, memory_free=79 * GIB + (9 << 20)), gpu(1, temperature=30)]
        assert indices(best(judged(gpus), Requirement())) == [1]

    def test_several_are_of_one_product_where_possible(self) -> None:
        gpus = [gpu(0, name="A100", memory_free=90 * GIB), gpu(1), gpu(2)]
        assert indices(best(judged(gpus), Requirement(2))) == [1, 2]
        assert indices(best(judged(gpus), Requirement(3))) == [0, 1, 2]

    def test_a_sleeping_gpu_comes_last(self) -> None:
        asleep = gpu(0, state="asleep", memory_used=None, memory_free=None, memory_total=None)
        assert indices(best(judged([asleep, gpu(1, temperature=90)]), Requirement(2))) == [1, 0]


class TestGrant:
    def test_nothing_outside_cuda_visible_devices_is_chosen(self) -> None:
        verdicts = judged([gpu(0), gpu(1, temperature=90), gpu(2)], environ={"CUDA_VISIBLE_DEVICES": "1"})
        assert indices(best(verdicts, Requirement())) == [1]
        assert judged([gpu(0)], environ={"CUDA_VISIBLE_DEVICES": ""}) == []

    def test_a_name_is_one_of_the_machine_and_not_of_the_grant(self) -> None:
        window = [Snapshot(0.0, (gpu(0), gpu(1), gpu(2)))]
        (verdicts,) = availability(window, 1, Requirement(), {"CUDA_VISIBLE_DEVICES": "1,2"}, ["2", "0"])
        assert indices([verdict.gpu for verdict in verdicts]) == [2]

    def test_a_claimed_gpu_is_not_offered(self) -> None:
        with claim("GPU-00000000") or pytest.fail("nobody has it"):
            verdicts = judged([gpu(0), gpu(1, temperature=90)])
            assert verdicts[0].why.startswith("claimed by ")
            assert indices(best(verdicts, Requirement())) == [1]
        assert why(gpu(0)) == ""


class TestInstances:
    def test_instances_stand_in_the_place_of_their_gpu(self) -> None:
        divided = gpu(0, mig_mode=True, memory_used=20 * GIB, instances=[part(0, memory_used=20 * GIB), part(1)])
        first, second = judged([divided])
        assert first.name == "GPU 0 MIG 1g.10gb MIG-00000000"
        assert first.why == "20.0 GiB held by processes you cannot see"
        assert [one.uuid for one in best([first, second], Requirement())] == ["MIG-00000001"]

    def test_several_are_never_instances(self) -> None:
        divided = gpu(0, mig_mode=True, instances=[part(0), part(1)])
        verdicts = judged([divided, gpu(1)], asked=Requirement(2))
        assert best(verdicts, Requirement(2)) == ()
        assert never(verdicts, Requirement(2))

    def test_a_grant_of_one_instance_is_not_a_grant_of_the_others(self) -> None:
        divided = gpu(0, mig_mode=True, instances=[part(0), part(1)])
        verdicts = judged([divided], environ={"CUDA_VISIBLE_DEVICES": "MIG-00000001"})
        assert [verdict.gpu.uuid for verdict in verdicts] == ["MIG-00000001"]

    def test_an_instance_shares_the_fate_of_its_gpu(self) -> None:
        (verdict,) = judged([gpu(0, state="lost", instances=[part(0)])])
        assert verdict.why == "it is lost"


def test_a_refusal_names_each_reason_on_a_line_of_its_own() -> None:
    verdicts = judged([gpu(0, processes=[ADA]), gpu(1), gpu(2, xid_last=79)])
    error = refusal(verdicts, Requirement(2))
    assert str(error).splitlines() == [
        "1 of 3 GPUs are free, 2 requested.",
        "  GPU 0: 41.0 GiB held by ada (python, 12345)",
        "  GPU 2: it reported XID 79",
        'Use wait=True to wait until enough are free, or share=True, free_memory="79GiB" to run beside others.',
    ]
    assert "Request fewer GPUs" in str(refusal(verdicts, Requirement(4)))
    assert "CUDA_VISIBLE_DEVICES" in str(refusal([], Requirement()))


def test_waiting_is_in_vain_where_no_gpu_is_large_enough() -> None:
    asked = Requirement(free_memory=100 * GIB)
    assert never(judged([gpu(0)], asked=asked), asked)
    assert not never(judged([gpu(0, processes=[ADA])]), Requirement())


@pytest.mark.parametrize(("window", "interval", "size"), [(0, 0.2, 1), (None, 0.2, 11), (10, 0.2, 51), (100, 2, 51)])
def test_a_window_is_looked_at_often_enough(window: float | None, interval: float, size: int) -> None:
    assert samples_for(window) == (interval, size)


@given(samples=st.lists(snapshots(), max_size=3), count=st.integers(1, 3), listed=st.none() | st.text(max_size=6))
def test_any_snapshots_give_free_gpus_with_names_or_reasons(
    samples: list[Snapshot], count: int, listed: str | None
) -> None:
    asked = Requirement(count, 1.0, 5.0)
    for verdicts in availability(samples, 2, asked, {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}):
        chosen = best(verdicts, asked)
        assert len(chosen) in (0, count)
        assert all(one.uuid for one in chosen)
        assert refusal(verdicts, asked).message.replace("\n", "").isprintable()
