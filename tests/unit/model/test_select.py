"""Words to metrics and words to GPUs: the right one, or an error that names the nearest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import UnknownGpu, UnknownMetric
from gpulse.model.catalog import GPU_METRICS, PROCESS_METRICS, Gpu
from gpulse.model.select import EVERYTHING, Wanted, choose_gpus, metric_named, short_bus_id

_UUIDS = (
    "GPU-aaaa1111-0000-0000-0000-000000000000",
    "GPU-aaaa2222-0000-0000-0000-000000000001",
    "GPU-bbbb3333-0000-0000-0000-000000000002",
    "GPU-cccc4444-0000-0000-0000-000000000003",
)
_MIG = "MIG-dddd5555-0000-0000-0000-000000000004"


def _machine() -> list[Gpu]:
    """Return four GPUs whose bus ids stand in order; the last is divided."""
    buses = ("00000000:19:00.0", "00000000:3B:00.0", "00000000:4C:00.0", "00000001:19:00.0")
    return [
        Gpu(
            {"index": index, "uuid": uuid, "pci_bus_id": bus},
            instances=(Gpu({"uuid": _MIG}), Gpu({"uuid": _MIG.replace("d", "e")})) if index == 3 else (),
        )
        for index, (uuid, bus) in enumerate(zip(_UUIDS, buses, strict=True))
    ]


class TestMetrics:
    @pytest.mark.parametrize("key", sorted(GPU_METRICS))
    def test_every_metric_is_found_by_its_key_and_by_each_of_its_nvidia_smi_names(self, key: str) -> None:
        metric = GPU_METRICS[key]
        assert all(metric_named(name) is metric for name in (key, *metric.smi))

    @pytest.mark.parametrize("name", ["UTILIZATION", " utilization ", "Utilization.GPU"])
    def test_case_and_space_do_not_matter(self, name: str) -> None:
        assert metric_named(name) is Gpu.utilization

    def test_other_catalogs_can_be_searched(self) -> None:
        assert metric_named("used_gpu_memory", PROCESS_METRICS).key == "memory_used"

    @pytest.mark.parametrize(
        ("name", "meant"), [("utilisation", "utilization"), ("memory.usd", "memory.used"), ("tempature", "temperature")]
    )
    def test_a_misspelt_name_is_answered_with_the_right_one(self, name: str, meant: str) -> None:
        with pytest.raises(UnknownMetric, match=f"did you mean.*{meant}"):
            metric_named(name)

    @pytest.mark.parametrize("name", ["", "qqqqqqqqqqqq"])
    def test_a_name_like_no_other_is_answered_with_where_to_look(self, name: str) -> None:
        with pytest.raises(UnknownMetric, match=r"Gpu\.metrics\(\)") as caught:
            metric_named(name)
        assert "did you mean" not in str(caught.value)


class TestWanted:
    def test_two_wishes_make_one_with_all_of_both(self) -> None:
        both = Wanted(gpu=("energy",), host=("load",)) | Wanted(gpu=("uuid",), process=("pid",))
        assert both == Wanted(gpu=("energy", "uuid"), process=("pid",), host=("load",))
        assert hash(both) == hash(Wanted(gpu=("uuid", "energy"), process=("pid",), host=("load",)))

    def test_none_of_a_kind_is_not_the_same_as_nothing_of_it(self) -> None:
        assert Wanted(process=()) != Wanted()
        assert (Wanted(process=()) | Wanted()).process == frozenset()

    def test_everything_and_something_is_everything(self) -> None:
        assert EVERYTHING | Wanted(gpu=("energy",)) == EVERYTHING


class TestChoosing:
    @pytest.mark.parametrize(
        ("words", "positions"),
        [
            (["0"], [0]),
            (["2", "0"], [2, 0]),
            (["1-3"], [1, 2, 3]),
            (["2-2"], [2]),
            (["3", "0-3"], [3, 0, 1, 2]),
            (["1", "1", "1-1"], [1]),
            ([" 1 "], [1]),
            ([_UUIDS[1]], [1]),
            (["GPU-aaaa2"], [1]),
            (["gpu-AAAA2"], [1]),
            (["aaaa2222"], [1]),
            (["00000000:3B:00.0"], [1]),
            (["0000:3b:00.0"], [1]),
            (["3b:00.0"], [1]),
            (["0001:19:00.0"], [3]),
            ([], []),
        ],
    )
    def test_gpus_are_found_by_index_range_uuid_and_bus_id(self, words: list[str], positions: list[int]) -> None:
        assert choose_gpus(_machine(), words, {}) == positions

    @pytest.mark.parametrize(
        "word",
        ["4", "0-4", "3-1", "2-1", "-1", "", "GPU-", "GPU-ffff", "dead:beef", "4d:00.0", "x", "1-", "1-x", "9" * 5000],
    )
    def test_a_gpu_that_is_not_there_is_an_error_and_never_silence(self, word: str) -> None:
        with pytest.raises(UnknownGpu, match="this machine has GPUs 0-3"):
            choose_gpus(_machine(), [word], {})

    @pytest.mark.parametrize(("count", "words"), [(0, "no GPU"), (1, "GPU 0 only"), (2, "GPUs 0, 1"), (4, "GPUs 0-3")])
    def test_an_unknown_gpu_is_answered_with_those_that_are_there(self, count: int, words: str) -> None:
        with pytest.raises(UnknownGpu) as caught:
            choose_gpus(_machine()[:count], ["9"], {})
        assert str(caught.value) == f"unknown GPU '9'; this machine has {words}."

    def test_a_uuid_that_fits_two_is_an_error(self) -> None:
        with pytest.raises(UnknownGpu, match="matches 2 GPUs"):
            choose_gpus(_machine(), ["GPU-aaaa"], {})

    def test_a_misspelt_uuid_is_answered_with_the_nearest(self) -> None:
        with pytest.raises(UnknownGpu, match=f"did you mean '{_UUIDS[2]}'"):
            choose_gpus(_machine(), [_UUIDS[2].replace("3333", "3334")], {})

    def test_a_machine_without_gpus_says_so(self) -> None:
        with pytest.raises(UnknownGpu, match="has no GPU"):
            choose_gpus([], ["0"], {})

    @pytest.mark.parametrize(
        ("environ", "positions"),
        [
            ({"SLURM_JOB_GPUS": "1,3"}, [1, 3]),
            ({"SLURM_JOB_GPUS": "0-3", "SLURM_STEP_GPUS": "2"}, [2]),
            ({"SLURM_JOB_GPUS": "0,1,5,7"}, [0, 1, 2, 3]),  # those of others are hidden: all that is left is the job's
        ],
    )
    def test_job_means_what_slurm_gave(self, environ: dict[str, str], positions: list[int]) -> None:
        assert choose_gpus(_machine(), ["job"], environ) == positions

    def test_all_means_every_gpu(self) -> None:
        assert choose_gpus(_machine(), ["all"], {"SLURM_JOB_GPUS": "1"}) == [0, 1, 2, 3]

    def test_job_without_a_job_says_so(self) -> None:
        with pytest.raises(UnknownGpu, match="SLURM_JOB_GPUS is not set"):
            choose_gpus(_machine(), ["job"], {})

    def test_visible_means_what_cuda_sees(self) -> None:
        assert choose_gpus(_machine(), ["visible", "0"], {"CUDA_VISIBLE_DEVICES": "3,1"}) == [3, 1, 0]

    @given(word=st.text(max_size=12))
    def test_any_word_gives_gpus_or_an_error_that_says_which_word(self, word: str) -> None:
        try:
            chosen = choose_gpus(_machine(), [word], {})
        except UnknownGpu as error:
            assert repr(word.strip()) in str(error)  # noqa: PT017  # either way is right, and each has its own promise
        else:
            assert chosen


@pytest.mark.parametrize(
    ("listed", "positions"),
    [
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0", [0]),
        ("3,1", [3, 1]),
        (" 3 , 1 ", [3, 1]),
        ("2,GPU-aaaa1", [2]),
        ("GPU-BBBB3333", [2]),
        (_UUIDS[3], [3]),
        ("GPU-aaaa", []),
        ("1,GPU-aaaa,2", [1]),
        ("1,9,2", [1]),
        ("1,-1,2", [1]),
        ("1,,2", [1]),
        ("1,x", [1]),
        ("1,1", []),
        ("1,2,1", []),
        ("1,GPU-aaaa2", [1]),
        (_MIG, [3]),
        ("MIG-dddd", [3]),
        (f"{_MIG},{_MIG.replace('d', 'e')}", [3]),
        ("MIG-ffff", []),
        (f"0,{_MIG}", [0]),
    ],
)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(listed: str, positions: list[int]) -> None:
    assert choose_gpus(_machine(), ["visible"], {"CUDA_VISIBLE_DEVICES": listed}) == positions


def test_without_cuda_visible_devices_all_are_visible() -> None:
    assert choose_gpus(_machine(), ["visible"], {}) == [0, 1, 2, 3]
    assert choose_gpus([], ["visible"], {}) == []


def test_cuda_counts_by_bus_id_whatever_the_driver_does() -> None:
    gpus = _machine()[::-1]
    assert choose_gpus(gpus, ["visible"], {}) == [3, 2, 1, 0]
    assert choose_gpus(gpus, ["visible"], {"CUDA_VISIBLE_DEVICES": "0,3"}) == [3, 0]
    assert choose_gpus(gpus, ["visible"], {"CUDA_VISIBLE_DEVICES": "GPU-aaaa1"}) == [3]


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0000:3b:00.0", "0000:3b:00.0"),
        ("3B:00.0", "0000:3b:00.0"),
        ("1:19:00.0", "0001:19:00.0"),
    ],
)
def test_bus_ids_are_written_as_linux_writes_them(long: str, short: str) -> None:
    assert short_bus_id(long) == short
