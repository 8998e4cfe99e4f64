"""Selecting GPUs for a program: each vendor's variables, and AMD partitions counted as HIP counts them."""

from __future__ import annotations

from gpulse.model.catalog import Gpu
from gpulse.model.select import granted, selection, visible


def amd(ordinal: int | None, uuid: str, index: int = 0, parts: tuple[Gpu, ...] = ()) -> Gpu:
    values: dict[str, str | int] = {"vendor": "amd", "uuid": uuid, "index": index}
    return Gpu({**values, "ordinal": ordinal} if ordinal is not None else values, instances=parts)


def part(ordinal: int) -> Gpu:
    return Gpu(
        {"vendor": "amd", "uuid": f"GPU-aa-{ordinal}", "index": ordinal, "ordinal": ordinal, "gpu_instance": ordinal}
    )


def test_each_vendor_has_its_own_variables() -> None:
    assert selection([]) == {}
    assert selection([Gpu({"vendor": "nvidia", "uuid": "GPU-1"}), Gpu({"vendor": "nvidia", "uuid": "GPU-2"})]) == {
        "CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    assert selection([amd(3, "GPU-00aa"), amd(1, "PCI-0000:03:00.0")]) == {
        "ROCR_VISIBLE_DEVICES": "GPU-00aa,1",
        "HIP_VISIBLE_DEVICES": "0,1",
    }
    assert selection([Gpu({"vendor": "intel", "uuid": "PCI-0000:09:00.0", "ordinal": 1})]) == {
        "ZE_AFFINITY_MASK": "1",
        "ONEAPI_DEVICE_SELECTOR": "level_zero:0",
    }
    assert selection([part(5)])["ROCR_VISIBLE_DEVICES"] == "5"


def test_what_is_selected_is_what_a_program_then_sees() -> None:
    machine = [amd(1, "GPU-00aa", 0), amd(0, "PCI-0000:03:00.0", 1), amd(None, "PCI-0000:0a:00.0", 2)]
    for chosen in ([machine[0]], [machine[1]], [machine[1], machine[0]]):
        assert visible(machine, selection(chosen)) == chosen


def test_partitions_count_in_place_of_their_gpu_and_cards_without_compute_do_not() -> None:
    machine = [amd(0, "GPU-aa", 0, (part(0), part(1))), amd(2, "GPU-bb", 1), amd(None, "PCI-x", 2)]
    assert [gpu.uuid for gpu in granted(machine, {})] == ["GPU-aa-0", "GPU-aa-1", "GPU-bb"]
    assert [gpu.uuid for gpu in granted(machine, {"HIP_VISIBLE_DEVICES": "1,2"})] == ["GPU-aa-1", "GPU-bb"]
