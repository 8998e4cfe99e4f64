"""The log: its sections, its GPUs, processes and instances, what is missing, and hostile names."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings

from gpulse.errors import UsageError
from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.query.log import (
    PROCESS_KEYS,
    SECTIONS,
    Log,
    log_keys,
    log_text,
    log_xml,
    parse_sections,
    shows_processes,
)
from tests.unit.snapshots import snapshots

MIB = 1 << 20
HOSTILE = "]]><!--&\"'\x00\x1b[2J\n\u202e\ud800é</process_name>"


def value(gpu: Gpu, name: str) -> str:
    """Say what the tests need of a card with eight in its machine."""
    said = {"pci.bus_id": "00000000:17:00.0", "count": "8", "memory.used": f"{(gpu.memory_used or 0) / MIB:.0f} MiB"}
    return said.get(name, "[N/A]")


def process(pid: int, **more: str | int) -> Process:
    return Process({"pid": pid, "type": "C", "name": "python3", "memory_used": 512 * MIB, **more})


def text_of(gpu: Gpu, *sections: str) -> list[str]:
    return [line.strip() for line in log_text(Snapshot(0.0, (gpu,)), value, sections)]


def xml_of(gpu: Gpu, *sections: str) -> ElementTree.Element:
    found = ElementTree.fromstring(log_xml(Snapshot(0.0, (gpu,)), value, sections)).find("gpu")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("MEMORY", ("MEMORY",)),
        ("pids,Memory", ("PIDS", "MEMORY")),
        ("MEMORY,,PIDS", ("MEMORY", "PIDS")),
        ("MEMORY, PIDS,", ("MEMORY", "PIDS")),
        ("ECC,ecc", ("ECC",)),
    ],
)
def test_sections_are_read_in_any_case_and_once(text: str, sections: tuple[str, ...]) -> None:
    assert parse_sections(text) == sections


def test_a_wrong_section_is_named_with_the_nearest_and_the_list() -> None:
    with pytest.raises(UsageError) as wrong:
        parse_sections("ECC,UTILISATION")
    assert "'UTILISATION'" in str(wrong.value)
    assert "did you mean 'UTILIZATION'" in str(wrong.value)
    assert all(section in wrong.value.remedy for section in SECTIONS)
    assert "'ECC'" not in wrong.value.message


@pytest.mark.parametrize("text", ["", " ", ",,"])
def test_no_section_at_all_is_a_mistake(text: str) -> None:
    with pytest.raises(UsageError, match="at least one section"):
        parse_sections(text)


def test_sections_come_in_the_order_of_the_log() -> None:
    lines = text_of(Gpu({}), "PIDS", "MEMORY", "PERFORMANCE")
    order = [lines.index(title) for title in ("Clocks Event Reasons", "FB Memory Usage", "BAR1 Memory Usage")]
    processes = next(at for at, line in enumerate(lines) if line.startswith("Processes"))
    assert order == sorted(order)
    assert order[-1] < processes


def test_some_parts_stand_in_the_text_only_when_asked_for() -> None:
    whole = text_of(Gpu({}))
    for section, title in (
        ("POWER", "Power Samples"),
        ("SUPPORTED_GPU_TARGET_TEMP", "Supported GPU_TARGET_TEMP"),
        ("SUPPORTED_CLOCKS", "Supported Clocks"),
        ("ACCOUNTING", "Accounted Processes"),
    ):
        assert not [line for line in whole if line.startswith(title)]
        assert [line for line in text_of(Gpu({}), section) if line.startswith(title)]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_asks_for_less_than_the_whole(section: str) -> None:
    assert log_keys((section,)) < log_keys()
    asked: set[str] = set()

    def listen(gpu: Gpu, name: str) -> str:
        asked.add(name)
        return "[N/A]"

    log_text(Snapshot(0.0, (Gpu({}),)), listen, (section,))
    assert asked <= log_keys((section,))


def test_only_the_sections_with_processes_ask_for_them() -> None:
    assert shows_processes()
    assert [section for section in SECTIONS if shows_processes((section,))] == ["PIDS"]
    assert Log(("PIDS",)).wanted.process == PROCESS_KEYS
    assert Log(("MEMORY",)).wanted.process is None


def test_no_process_is_none_in_the_text_and_an_empty_list_in_the_xml() -> None:
    assert f"{'Processes':<51}: None" in text_of(Gpu({}), "PIDS")
    assert f"{'    Processes':<55}: None" in log_text(Snapshot(0.0, (Gpu({}),)), value, ("PIDS",))
    found = xml_of(Gpu({})).find("processes")
    assert found is not None
    assert len(found) == 0
    assert (found.text or "").strip() == ""


def test_a_process_is_called_as_it_was_started() -> None:
    gpu = Gpu({}, processes=(process(1, name="python3", command="/usr/bin/python3 train.py"),))
    assert xml_of(gpu).findtext("processes/process_info/process_name") == "/usr/bin/python3"


def test_a_log_asks_for_and_shows_what_its_section_holds() -> None:
    gpu = Gpu({"pci_bus_id": "00000000:17:00.0", "memory_used": 1024 * MIB, "temperature": 61, "pstate": 2})
    log = Log(("MEMORY",))
    assert {"memory_used", "memory_total", "bar1_used", "pci_bus_id"} <= log.wanted.gpu
    assert not {"temperature", "power_draw", "pcie_rx"} & log.wanted.gpu
    lines = log.lines(Snapshot(0.0, (gpu,)))
    assert "GPU 00000000:17:00.0" in lines
    assert f"{'        Used':<55}: 1024 MiB" in lines
    whole = "\n".join(Log(xml=True).lines(Snapshot(0.0, (gpu,))))
    found = ElementTree.fromstring(whole)
    assert found.findtext("gpu/temperature/gpu_temp") == "61 C"
    assert found.findtext("gpu/module_power_readings/power_state") == "P2"
    assert whole.endswith("\n\n</nvidia_smi_log>")
    assert {"temperature", "power_draw_average", "pcie_rx", "clock_video_max"} <= Log().wanted.gpu


def test_processes_stand_in_the_order_of_their_pids() -> None:
    gpu = Gpu({}, processes=(process(512, name="b"), process(99, name="a")))
    assert [line.split()[-1] for line in text_of(gpu, "PIDS") if line.startswith("Process ID")] == ["99", "512"]
    assert [entry.text for entry in xml_of(gpu).iterfind("processes/process_info/process_name")] == ["a", "b"]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("C", "C"), ("G", "G"), ("C+G", "C+G"), ("G+C", "C+G"), ("M", "M+C"), ("C+M", "M+C"), ("?", "?")],
)
def test_the_type_of_a_process_is_in_nvidia_smis_letters(ours: str, theirs: str) -> None:
    assert xml_of(Gpu({}, processes=(process(1, type=ours),))).findtext("processes/process_info/type") == theirs


def test_what_a_process_hides_is_said_in_words() -> None:
    gpu = Gpu({}, processes=(Process({"pid": 7}, {"name": "failed", "memory_used": "denied"}), Process({"pid": 8})))
    rows = list(xml_of(gpu).iterfind("processes/process_info"))
    assert [row.findtext("process_name") for row in rows] == ["Unknown Error", "Not Found"]
    assert [row.findtext("used_memory") for row in rows] == ["Insufficient Permissions", "N/A"]
    assert [row.findtext("type") for row in rows] == ["N/A", "N/A"]


def _divided() -> Gpu:
    def part(index: int, gpu_instance: int, used: int, *processes: Process) -> Gpu:
        names: dict[str, str | int] = {"index": index, "gpu_instance": gpu_instance, "compute_instance": 0}
        return Gpu({**names, "memory_used": used * MIB}, processes=processes)

    parts = (part(0, 1, 19, process(40)), part(1, 5, 38))
    return Gpu({"memory_used": 57 * MIB}, processes=(process(50),), instances=parts)


def test_instances_stand_under_their_gpu() -> None:
    lines = log_text(Snapshot(0.0, (_divided(),)), value)
    first = lines.index("    MIG Device")
    assert lines[first - 3].strip() == "MIG Mode"
    assert lines[first + 1 : first + 6] == [
        f"{'        Index':<55}: 0",
        f"{'        GPU Instance ID':<55}: 1",
        f"{'        Compute Instance ID':<55}: 0",
        "        Device Attributes",
        "            Shared",
    ]
    assert lines.count("    MIG Device") == 2
    used = [line.split(": ")[1] for line in lines if line.strip().startswith("Used  ") and "N/A" not in line]
    assert used == ["19 MiB", "38 MiB", "57 MiB"]


def test_instances_in_the_xml_have_the_elements_of_nvidia_smi() -> None:
    gpu = xml_of(_divided())
    parts = gpu.findall("mig_devices/mig_device")
    assert [part.findtext("gpu_instance_id") for part in parts] == ["1", "5"]
    assert [part.findtext("fb_memory_usage/used") for part in parts] == ["19 MiB", "38 MiB"]
    assert [child.tag for child in parts[0]] == [
        "index", "gpu_instance_id", "compute_instance_id", "device_attributes", "ecc_error_count", "fb_memory_usage",
        "bar1_memory_usage",
    ]  # fmt: skip
    shared = parts[0].find("device_attributes/shared")
    assert shared is not None
    assert [child.tag for child in shared] == [
        "multiprocessor_count", "copy_engine_count", "encoder_count", "decoder_count", "ofa_count", "jpg_count",
    ]  # fmt: skip
    rows = gpu.findall("processes/process_info")
    assert [
        (row.findtext("pid"), row.findtext("gpu_instance_id"), row.findtext("compute_instance_id")) for row in rows
    ] == [
        ("50", "N/A", "N/A"),
        ("40", "1", "0"),
    ]


def test_a_gpu_without_instances_says_none() -> None:
    devices = xml_of(Gpu({})).find("mig_devices")
    assert devices is not None
    assert (devices.text or "").strip() == "None"


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("[N/A]", "N/A"),
        ("N/A", "N/A"),
        ("", "N/A"),
        ("[GPU is lost]", "GPU is lost"),
        ("[Insufficient Permissions]", "Insufficient Permissions"),
        ("[Requested functionality has been deprecated]", "Requested functionality has been deprecated"),
        ("57", "57 C"),
    ],
)
def test_reasons_lose_their_brackets_and_values_get_their_unit(said: str, written: str) -> None:
    lines = log_text(Snapshot(0.0, (Gpu({}),)), lambda _, name: said, ("TEMPERATURE",))
    assert f"{'        GPU Current Temp':<55}: {written}" in lines


def test_a_value_missing_in_the_catalog_says_why() -> None:
    lost = Gpu({}, {"bar1_total": "lost", "bar1_used": "lost", "pcie_tx": "pending"}, state="lost")
    assert xml_of(lost).findtext("bar1_memory_usage/used") == "GPU is lost"
    assert xml_of(lost).findtext("bar1_memory_usage/free") == "GPU is lost"
    assert xml_of(lost).findtext("pci/tx_util") == "N/A"


def test_bar1_adds_up_as_nvidia_smi_rounds_it() -> None:
    """An idle H200 uses 1703936 of 274877906944 bytes: 1 MiB used, 262143 free."""
    bar1 = xml_of(Gpu({"bar1_total": 274877906944, "bar1_used": 1703936})).find("bar1_memory_usage")
    assert bar1 is not None
    assert [child.text for child in bar1] == ["262144 MiB", "1 MiB", "262143 MiB"]


def test_a_group_that_is_missing_altogether_is_one_line() -> None:
    said = {"remapped_rows.correctable": "[GPU is lost]"}
    snapshot = Snapshot(0.0, (Gpu({}),))
    lines = log_text(snapshot, lambda _, name: said.get(name, "0"), ("ROW_REMAPPER",))
    assert lines[-2] == f"{'    Remapped Rows':<55}: GPU is lost"
    said = {"remapped_rows.histogram.max": "[N/A]"}
    lines = log_text(snapshot, lambda _, name: said.get(name, "0"), ("ROW_REMAPPER",))
    assert lines[-2] == f"{'        Bank Remap Availability Histogram':<55}: N/A"


def test_retired_pages_that_are_none_are_an_empty_list() -> None:
    def counted(gpu: Gpu, name: str) -> str:
        return {"retired_pages.single_bit_ecc.count": "0", "retired_pages.double_bit.count": "2"}.get(name, "[N/A]")

    root = ElementTree.fromstring(log_xml(Snapshot(0.0, (Gpu({}),)), counted))
    single = root.find("gpu/retired_pages/multiple_single_bit_retirement")
    double = root.find("gpu/retired_pages/double_bit_retirement")
    assert single is not None
    assert double is not None
    assert [(child.text or "").strip() for child in single] == ["0", ""]
    assert [child.text for child in double] == ["2", "N/A"]


@pytest.mark.parametrize(
    ("mode", "text", "element"), [("Disabled", "None", ""), ("Enabled", "N/A", "N/A"), ("[N/A]", "N/A", "N/A")]
)
def test_accounted_processes_are_none_only_where_nothing_is_counted(mode: str, text: str, element: str) -> None:
    snapshot = Snapshot(0.0, (Gpu({}),))

    def counted(gpu: Gpu, name: str) -> str:
        return mode if name == "accounting.mode" else "[N/A]"

    assert f"{'    Accounted Processes':<55}: {text}" in log_text(snapshot, counted, ("ACCOUNTING",))
    root = ElementTree.fromstring(log_xml(snapshot, counted))
    assert (root.findtext("gpu/accounted_processes") or "").strip() == element


def test_a_place_in_a_rack_needs_a_chassis() -> None:
    racked = {"platform.chassis_serial_number": "182", "platform.slot_number": "4"}
    snapshot = Snapshot(0.0, (Gpu({}),))
    with_chassis = log_text(snapshot, lambda _, name: racked.get(name, "0"))
    without = log_text(snapshot, lambda _, name: {**racked, "platform.chassis_serial_number": ""}.get(name, "0"))
    assert f"{'        Slot Number':<55}: 4" in with_chassis
    assert f"{'        Slot Number':<55}: N/A" in without


def test_a_display_that_holds_the_clocks_is_said() -> None:
    tag = "clocks_event_reasons/clocks_event_reason_display_clocks_setting"
    assert xml_of(Gpu({"throttle_reasons": ("display_clock_setting",)})).findtext(tag) == "Active"
    assert xml_of(Gpu({"throttle_reasons": ()})).findtext(tag) == "Not Active"
    assert xml_of(Gpu({})).findtext(tag) == "N/A"


def test_every_gpu_has_its_block_and_all_are_counted() -> None:
    snapshot = Snapshot(0.0, (Gpu({"index": 0}), Gpu({"index": 1})), driver={"version": "580.1"})

    def bus(gpu: Gpu, name: str) -> str:
        return f"00000000:0{gpu.index}:00.0" if name == "pci.bus_id" else "[N/A]"

    lines = log_text(snapshot, bus, ("COMPUTE",))
    assert lines[7:] == [
        f"{'Attached GPUs':<55}: 2",
        "GPU 00000000:00:00.0",
        f"{'    Compute Mode':<55}: N/A",
        "",
        "GPU 00000000:01:00.0",
        f"{'    Compute Mode':<55}: N/A",
        "",
    ]
    assert lines[4] == f"{'Driver Version':<55}: 580.1"
    assert lines[5] == f"{'CUDA Version':<55}: N/A"
    root = ElementTree.fromstring(log_xml(snapshot, bus))
    assert [gpu.get("id") for gpu in root.iterfind("gpu")] == ["00000000:00:00.0", "00000000:01:00.0"]
    assert root.findtext("attached_gpus") == "2"


def test_the_count_is_the_machines_where_fewer_are_shown() -> None:
    assert f"{'Attached GPUs':<55}: 8" in text_of(Gpu({}), "COMPUTE")
    assert log_text(Snapshot(0.0), value)[-2:] == [f"{'Attached GPUs':<55}: 0", ""]


def test_hostile_names_cannot_break_the_xml_or_the_terminal() -> None:
    values: dict[str, str | tuple[str, ...]] = {"architecture": HOSTILE, "clocks_supported": (HOSTILE,)}
    gpu = Gpu(values, processes=(process(1, name=HOSTILE, type=HOSTILE),))
    snapshot = Snapshot(0.0, (gpu,), driver={"version": HOSTILE, "cuda": HOSTILE})
    document = log_xml(snapshot, lambda _, name: HOSTILE)
    assert document.isascii()
    root = ElementTree.fromstring(document)
    written = "]]><!--&\"'\\x00\\x1b[2J\\x0a\\u202e\\ud800é</process_name>"
    assert root.findtext("gpu/processes/process_info/process_name") == written
    assert root.findtext("driver_version") == written
    found = root.find("gpu")
    assert found is not None
    assert found.get("id") == written
    for line in log_text(snapshot, lambda _, name: HOSTILE):
        assert line.isprintable()


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(snapshots())
def test_any_snapshot_makes_a_log(snapshot: Snapshot) -> None:
    root = ElementTree.fromstring(log_xml(snapshot, value))
    assert len(root.findall("gpu")) == len(snapshot.gpus)
    rows = root.findall("gpu/processes/process_info")
    assert len(rows) == sum(len(list(gpu.all_processes())) for gpu in snapshot.gpus)
    lines = log_text(snapshot, value)
    assert sum(line.startswith("GPU 0") for line in lines) == len(snapshot.gpus)
    assert all(line.isprintable() for line in lines)
