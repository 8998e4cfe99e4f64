"""Which GPUs a program sees: the vendors' variables read as the vendors read them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu
from gpulse.model.select import by_uuid, choose_gpus, granted, order_is_certain, visible

_UUIDS = (
    "GPU-aaaa1111-0000-0000-0000-000000000000",
    "GPU-aaaa2222-0000-0000-0000-000000000001",
    "GPU-bbbb3333-0000-0000-0000-000000000002",
    "GPU-cccc4444-0000-0000-0000-000000000003",
)
_BUSES = ("00000000:19:00.0", "00000000:3B:00.0", "00000000:4C:00.0", "00000001:19:00.0")
_MIGS = ("MIG-dddd5555-0000-0000-0000-000000000004", "MIG-dddd6666-0000-0000-0000-000000000005")


def _machine(vendor: str = "nvidia", name: str = "H100") -> list[Gpu]:
    return [
        Gpu({"index": index, "uuid": uuid, "pci_bus_id": bus, "vendor": vendor, "name": name})
        for index, (uuid, bus) in enumerate(zip(_UUIDS, _BUSES, strict=True))
    ]


def _divided(at: int = 3) -> list[Gpu]:
    """Return the machine with one GPU cut in two."""
    gpus = _machine()
    parts = [Gpu({"uuid": uuid, "gpu_instance": gi, "compute_instance": 0}) for gi, uuid in enumerate(_MIGS, 1)]
    gpus[at] = Gpu(
        {"index": at, "uuid": _UUIDS[at], "pci_bus_id": _BUSES[at], "vendor": "nvidia", "mig_mode": True},
        instances=tuple(parts),
    )
    return gpus


def _uuids(gpus: Sequence[Gpu]) -> list[str | None]:
    return [gpu.uuid for gpu in gpus]


def _seen(gpus: Sequence[Gpu], listed: str | None, variable: str = "CUDA_VISIBLE_DEVICES") -> list[int | None]:
    found = visible(gpus, {} if listed is None else {variable: listed})
    return [None if gpu.index is None else int(gpu.index) for gpu in found]


@pytest.mark.parametrize(
    ("listed", "ordinals"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        (" ", []),
        ("2,1", [2, 1]),
        ("0,2,-1,1", [0, 2]),
        ("-1", []),
        ("foo", []),
        ("99", []),
        ("NoDevFiles", []),
        ("0,99,0", [0]),  # the end comes before the GPU that is named twice
        ("0,0", []),
        ("0 ,0", []),
        ("1,2,1", []),
        ("1,1,foo", []),
        ("1gpu2,2ampere", [1, 2]),
        (" 3 , 1 ", [3, 1]),
        ("+1,-0,02", [1, 0, 2]),
        ("0x1", [0]),
        ("1 2", [1]),
        ("1;2", [1]),
        ("1,,2", [1]),
        (",1", []),
        ("1,", [1]),
        ("9" * 5000, []),
        ("١", []),  # a digit to Python, not to C
        (_UUIDS[2], [2]),
        ("GPU-bbbb,GPU-aaaa1", [2, 0]),
        ("GPU-b", [2]),
        ("GPU-", []),
        ("GPU-aaaa", []),
        ("GPU-bbbb,GPU-aaaa,GPU-cccc", [2]),
        ("GPU-BBBB3333", [2]),
        ("GPU-bbbb33330000", [2]),  # dashes do not count
        ("gpu-bbbb3333", []),
        ("bbbb3333", []),
        (" GPU-bbbb3333", []),
        (f"{_UUIDS[2]} ,{_UUIDS[1]}", [2, 1]),
        (f"{_UUIDS[2]}, {_UUIDS[1]}", [2]),
        (f"{_UUIDS[2]}x", [2]),
        ("GPU-bbbb3333x", []),
        ("GPU-bbbb,GPU-bbbb3333", []),
        ("GPU-bbbb,GPU-zzzz,GPU-cccc", [2]),
        ("GPU-bbbb,1", [2]),
        ("1,GPU-bbbb", [1]),
        ("1,MIG-dddd5555", [1]),
        ("MIG-dddd5555", []),
    ],
)
def test_cuda_visible_devices_is_read_as_the_driver_reads_it(listed: str | None, ordinals: list[int]) -> None:
    assert _seen(_machine(), listed) == ordinals


@pytest.mark.parametrize(
    ("listed", "instances", "ours"),
    [
        (_MIGS[1], [1], [1]),
        ("MIG-dddd5", [0], [0]),
        ("MIG-DDDD6666", [1], [1]),
        ("MIG-dddd", [], []),
        (f"{_MIGS[1]},{_MIGS[0]}", [1], [1, 0]),
        (f"{_MIGS[1]},{_MIGS[1]}", [], []),
        (f"{_MIGS[1]},0", [1], [1]),
        (f"MIG-{_UUIDS[3]}/2/0", [1], [1]),
        (f"MIG-{_UUIDS[3]}/3/0", [], []),
        (f"MIG-{_UUIDS[3]}", [], []),
        (f"MIG-{_UUIDS[0]}/1/0", [], []),
    ],
)
def test_a_program_sees_one_mig_instance_of_those_it_may_use(
    listed: str, instances: list[int], ours: list[int]
) -> None:
    gpus, environ = _divided(), {"CUDA_VISIBLE_DEVICES": listed}
    assert _uuids(visible(gpus, environ)) == [_MIGS[at] for at in instances]
    assert _uuids(granted(gpus, environ)) == [_MIGS[at] for at in ours]


@pytest.mark.parametrize("listed", [None, "0,3", "3,0", "3", _UUIDS[3], f"{_UUIDS[0]},{_UUIDS[3]}"])
def test_a_divided_gpu_shows_its_first_instance_and_hides_whole_gpus(listed: str | None) -> None:
    environ = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}
    assert _uuids(visible(_divided(), environ)) == [_MIGS[0]]
    assert 3 in choose_gpus(_divided(), ["visible"], environ)


def test_a_gpu_in_mig_mode_without_instances_cannot_be_seen() -> None:
    gpus = _machine()
    gpus[1] = gpus[1].replace(mig_mode=True)
    assert _seen(gpus, None) == [0, 2, 3]
    assert _seen(gpus, "1") == []


def test_whole_gpus_beside_a_divided_one_are_seen_when_it_is_not_listed() -> None:
    assert _seen(_divided(), "2,0") == [2, 0]


def test_cuda_counts_by_bus_whatever_the_driver_does() -> None:
    assert _seen(_machine()[::-1], None) == [0, 1, 2, 3]
    assert _seen(_machine()[::-1], "0,3") == [0, 3]
    assert choose_gpus(_machine()[::-1], ["visible"], {"CUDA_VISIBLE_DEVICES": "0,3"}) == [3, 0]


def test_the_order_is_certain_where_gpus_are_alike_or_named_or_counted_by_bus() -> None:
    mixed = [*_machine()[:2], *_machine(name="A100")[2:]]
    assert order_is_certain([], {})
    assert order_is_certain(_machine(), {"CUDA_VISIBLE_DEVICES": "1,0"})
    assert order_is_certain(mixed, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert order_is_certain(mixed, {"CUDA_VISIBLE_DEVICES": _UUIDS[2]})
    assert not order_is_certain(mixed, {})
    assert not order_is_certain(mixed, {"CUDA_DEVICE_ORDER": "FASTEST_FIRST", "CUDA_VISIBLE_DEVICES": "1"})
    assert order_is_certain([*_machine()[:2], *_machine("amd", "MI300X")[2:]], {})


@pytest.mark.parametrize(
    ("environ", "ordinals"),
    [
        ({}, [0, 1, 2, 3]),
        ({"ROCR_VISIBLE_DEVICES": ""}, []),
        ({"ROCR_VISIBLE_DEVICES": "3,1"}, [3, 1]),
        ({"ROCR_VISIBLE_DEVICES": f"0,{_UUIDS[3]}"}, [0, 3]),
        ({"ROCR_VISIBLE_DEVICES": "3,1", "HIP_VISIBLE_DEVICES": "1"}, [1]),
        ({"ROCR_VISIBLE_DEVICES": "3,1", "HIP_VISIBLE_DEVICES": "2"}, []),
        ({"ROCR_VISIBLE_DEVICES": "3,3,1"}, [3]),
        ({"HIP_VISIBLE_DEVICES": "2,0"}, [2, 0]),
        ({"HIP_VISIBLE_DEVICES": "2,0,-1,1"}, [2, 0]),
        ({"HIP_VISIBLE_DEVICES": "2,0", "CUDA_VISIBLE_DEVICES": "1"}, [2, 0]),
        ({"CUDA_VISIBLE_DEVICES": "1", "GPU_DEVICE_ORDINAL": "3"}, [1]),
        ({"GPU_DEVICE_ORDINAL": "3"}, [3]),
    ],
)
def test_rocm_hides_on_two_levels(environ: dict[str, str], ordinals: list[int]) -> None:
    assert [gpu.index for gpu in visible(_machine("amd", "MI300X"), environ)] == ordinals


@pytest.mark.parametrize(
    ("mask", "ordinals"),
    [
        (None, [0, 1, 2, 3]),
        ("", [0, 1, 2, 3]),
        ("0,1", [0, 1]),
        ("3,1", [1, 3]),
        ("1.0", [1]),
        ("1.0,1.1,2", [1, 2]),
        ("9", []),
        ("x,2", [2]),
    ],
)
def test_intel_masks_and_never_reorders(mask: str | None, ordinals: list[int]) -> None:
    assert _seen(_machine("intel", "Max 1550"), mask, "ZE_AFFINITY_MASK") == ordinals


def test_each_vendor_follows_its_own_variables() -> None:
    gpus = [*_machine()[:2], *_machine("intel", "Arc")[2:3], *_machine("other", "Chip")[3:]]
    environ = {"CUDA_VISIBLE_DEVICES": "1", "ZE_AFFINITY_MASK": "0"}
    assert [gpu.index for gpu in visible(gpus, environ)] == [1, 2, 3]


def test_uuids_of_a_framework_name_gpus_and_instances_in_their_order() -> None:
    gpus = _divided()
    given = [_UUIDS[2].removeprefix("GPU-"), _MIGS[1].removeprefix("MIG-"), _UUIDS[0], _MIGS[0], _UUIDS[2], "unknown"]
    assert _uuids(by_uuid(gpus, given)) == [_UUIDS[2], _MIGS[1], _UUIDS[0], _MIGS[0]]


_VARIABLES = (
    *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
    *("ZE_AFFINITY_MASK", "CUDA_DEVICE_ORDER"),
)
_ENTRY = st.one_of(
    st.text(max_size=6), st.integers(-2, 5).map(str), st.sampled_from([*_UUIDS, *_MIGS, "GPU-a", "MIG-GPU-", "MIG-"])
)
_LISTS = st.one_of(st.text(max_size=20), st.lists(_ENTRY, max_size=5).map(",".join))
_MACHINES = [_machine(), _divided(0), _machine("amd"), _machine("intel"), [*_divided()[2:], *_machine("amd")[:2]], []]


@given(
    gpus=st.sampled_from(_MACHINES),
    environ=st.dictionaries(st.sampled_from(_VARIABLES), _LISTS),
    words=st.lists(_ENTRY),
)
def test_any_text_leaves_some_of_the_gpus_once_each(gpus: list[Gpu], environ: dict[str, str], words: list[str]) -> None:
    known = {id(part) for gpu in gpus for part in (gpu, *gpu.instances)}
    for found in (visible(gpus, environ), granted(gpus, environ), by_uuid(gpus, words)):
        names = [id(gpu) for gpu in found]
        assert len(set(names)) == len(names)
        assert known.issuperset(names)
    assert set(choose_gpus(gpus, ["visible"], environ)) <= set(range(len(gpus)))
    order_is_certain(gpus, environ)
