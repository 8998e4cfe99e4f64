"""The log against nvidia-smi's own, recorded on an H200: every line, every section, every element."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gpulse.model.catalog import GPU_METRICS, Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.query.log import log_keys, log_text, log_xml

_SHARED = Path(__file__).resolve().parents[4].parent / "shared"
_RECORDED = _SHARED / "h200"
MIB = 1 << 20

# what moves from one second to the next is taken from the recorded log itself, at this place in the text and the XML
_MOVING = {
    "clocks.current.graphics": ("Clocks/Graphics", "clocks/graphics_clock"),
    "clocks.current.sm": ("Clocks/SM", "clocks/sm_clock"),
    "clocks.current.memory": ("Clocks/Memory", "clocks/mem_clock"),
    "clocks.current.video": ("Clocks/Video", "clocks/video_clock"),
    "memory.used": ("FB Memory Usage/Used", "fb_memory_usage/used"),
    "memory.free": ("FB Memory Usage/Free", "fb_memory_usage/free"),
    "power.draw.average": ("GPU Power Readings/Average Power Draw", "gpu_power_readings/average_power_draw"),
    "power.draw.instant": ("GPU Power Readings/Instantaneous Power Draw", "gpu_power_readings/instant_power_draw"),
    "temperature.gpu": ("Temperature/GPU Current Temp", "temperature/gpu_temp"),
    "temperature.gpu.tlimit": ("Temperature/GPU T.Limit Temp", "temperature/gpu_temp_tlimit"),
    "temperature.memory": ("Temperature/Memory Current Temp", "temperature/memory_temp"),
    "utilization.gpu": ("Utilization/GPU", "utilization/gpu_util"),
    "utilization.memory": ("Utilization/Memory", "utilization/memory_util"),
    "clocks_event_reasons_counters.sw_power_cap": (
        "Clocks Event Reasons Counters/SW Power Capping",
        "clocks_event_reasons_counters/clocks_event_reasons_counters_sw_power_cap",
    ),
}
# what no field and no metric of the catalog says, by its place in the text
_UNSAID = {
    "Product Brand",
    "GPU PDI",
    "Minor Number",
    "MultiGPU Board",
    "Board ID",
    "Board Part Number",
    "GPU Part Number",
    "Platform Info/Module Id",
    "GPU Virtualization Mode/Virtualization Mode",
    "GSP Firmware Version",
    "PCI/Replay Number Rollovers",
    "Sparse Operation Mode",
    "FBC Stats/Active Sessions",
    "FBC Stats/Average FPS",
    "FBC Stats/Average Latency",
    "ECC Errors/Channel Repair Pending",
    "ECC Errors/TPC Repair Pending",
    "ECC Errors/Unrepairable Memory",
    "Temperature/GPU Shutdown T.Limit Temp",
    "Temperature/GPU Slowdown T.Limit Temp",
    "Temperature/GPU Max Operating T.Limit Temp",
    "Temperature/Memory Max Operating T.Limit Temp",
    "Max Customer Boost Clocks/Graphics",
    "Capabilities/EGM",
}
_UNSAID_TAGS = {
    "product_brand",
    "pdi",
    "minor_number",
    "multigpu_board",
    "board_id",
    "board_part_number",
    "gpu_part_number",
    "platformInfo/module_id",
    "gpu_virtualization_mode/virtualization_mode",
    "gsp_firmware_version",
    "pci/replay_rollover_counter",
    "sparse_operation_mode",
    "fbc_stats/session_count",
    "fbc_stats/average_fps",
    "fbc_stats/average_latency",
    "ecc_errors/channel_repair_pending",
    "ecc_errors/tpc_repair_pending",
    "ecc_errors/unrepairable_memory",
    "temperature/gpu_temp_max_tlimit_threshold",
    "temperature/gpu_temp_slow_tlimit_threshold",
    "temperature/gpu_temp_max_gpu_tlimit_threshold",
    "temperature/gpu_temp_max_mem_tlimit_threshold",
    "max_customer_boost_clocks/graphics_clock",
    "capabilities/egm",
    "supported_clocks",
}
_SECTIONS = (
    "MEMORY", "UTILIZATION", "ECC", "TEMPERATURE", "POWER", "CLOCK", "COMPUTE", "PIDS", "PERFORMANCE",
    "PAGE_RETIREMENT", "ACCOUNTING", "ENCODER_STATS", "ROW_REMAPPER", "VOLTAGE",
)  # fmt: skip


def _read(name: str) -> str:
    path = _RECORDED / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path.read_text()


def _output(file: str, command: str) -> list[str]:
    """Return the lines a recorded command wrote, its own last empty line with them."""
    after = _read(file).split(f"$ nvidia-smi {command}\n", 1)[1]
    return after.split("\n$ nvidia-smi", 1)[0].split("[exit", 1)[0].split("\n")[:-1]


def _fields(load: str) -> dict[str, str]:
    table = _read(f"smi-every-field-{load}.txt").split("\n\n", 1)[0].splitlines()[1:]
    return {row[0]: row[2] for row in (line.split("\t") for line in table)}


def _places(lines: list[str]) -> list[tuple[str, str]]:
    """Return each line's place, as Title/Label, and its value; the indents are part of the place."""
    titles: list[str] = []
    found = []
    for line in lines:
        label, colon, value = line.partition(": ")
        depth = (len(label) - len(label.lstrip())) // 4
        titles[max(depth - 1, 0) :] = [label.strip() if colon else label.lstrip()]
        found.append(("/".join(titles), value))
    return found


def _recorded_gpu(place: Callable[[str], str], processes: tuple[Process, ...]) -> Gpu:
    """Return the card at the recorded moment, as far as the log takes it from the catalog."""
    bar1 = place("BAR1 Memory Usage/Used").removesuffix(" MiB") or "0"
    busy = place("Clocks Event Reasons/SW Power Cap") == "Active"
    return Gpu(
        {
            "architecture": "Hopper",
            "throttle_reasons": ("sw_power_cap",) if busy else ("gpu_idle",),
            "pcie_replays": 0,
            "pcie_tx": int(place("PCI/Tx Throughput").removesuffix(" KB/s") or "0") * 1000,
            "pcie_rx": int(place("PCI/Rx Throughput").removesuffix(" KB/s") or "0") * 1000,
            "clock_video_max": 1545,
            "memory_power_draw": float(
                place("GPU Memory Power Readings /Average Power Draw").removesuffix(" W") or "0"
            ),
            "bar1_total": 262144 * MIB,
            "bar1_used": int(bar1) * MIB + MIB // 2,
        },
        processes=processes,
    )


def _process(pid: int, mib: int) -> tuple[Process, ...]:
    return (Process({"pid": pid, "type": "C", "name": "python3", "memory_used": mib * MIB}),)


def _snapshot(gpu: Gpu, timestamp: str) -> Snapshot:
    moment = time.mktime(time.strptime(timestamp, "%a %b %d %H:%M:%S %Y"))
    return Snapshot(moment, (gpu,), driver={"version": "580.159.04", "cuda": "13.0"})


def _values(load: str, place: Callable[[str], str], at: int) -> tuple[Callable[[Gpu, str], str], set[str]]:
    """Return the fields as recorded, those that move as they stood in the log, and the set of the names asked for."""
    fields = _fields(load)
    for name, places in _MOVING.items():
        if said := place(places[at]):
            fields[name] = said.removesuffix(" C") if name.startswith("temperature") else said
    asked: set[str] = set()

    def value(gpu: Gpu, name: str) -> str:
        asked.add(name)
        return fields[name]

    return value, asked


def _text_of(load: str, recorded: list[str], processes: tuple[Process, ...], sections: tuple[str, ...]) -> list[str]:
    said = dict(reversed(_places(recorded)))
    value, asked = _values(load, lambda place: said.get(place, ""), 0)
    lines = log_text(
        _snapshot(_recorded_gpu(lambda place: said.get(place, ""), processes), said["Timestamp"]), value, sections
    )
    assert asked <= log_keys(sections)
    return lines


def _labels(lines: list[str]) -> list[str]:
    return [line.partition(": ")[0] for line in lines]


def _different(recorded: list[str], ours: list[str]) -> dict[str, str]:
    pairs = zip(_places(recorded), _places(ours), strict=True)
    return {place: mine for (place, theirs), (_, mine) in pairs if theirs != mine}


def test_the_whole_text_is_nvidia_smis_own() -> None:
    recorded = _output("smi.txt", "-q")
    ours = _text_of("load", recorded, _process(445, 1642), ())
    assert len(recorded) > 250
    assert _labels(ours) == _labels(recorded)
    different = _different(recorded, ours)
    assert set(different) == _UNSAID
    assert set(different.values()) == {"N/A"}


@pytest.mark.parametrize("load", ["idle", "load"])
@pytest.mark.parametrize("section", _SECTIONS)
def test_a_section_is_nvidia_smis_own(load: str, section: str) -> None:
    recorded = _output(f"smi-every-field-{load}.txt", f"-q -d {section}")
    ours = _text_of(load, recorded, _process(3202, 1130) if load == "load" else (), (section,))
    assert len(recorded) >= 10
    assert _labels(ours) == _labels(recorded)
    different = _different(recorded, ours)
    samples = {place for place in different if "Samples/" in place}
    assert set(different) - samples <= _UNSAID
    assert all(different[place] == ("Not Found" if place in samples else "N/A") for place in different)


def test_the_whole_xml_has_every_element_of_nvidia_smis_own() -> None:
    recorded = "\n".join(_output("smi.txt", "-q -x"))
    theirs = ElementTree.fromstring(recorded)

    def place(path: str) -> str:
        return theirs.findtext(f"gpu/{path}") or ""

    def text_place(path: str) -> str:
        tags = {"PCI/Tx Throughput": "pci/tx_util", "PCI/Rx Throughput": "pci/rx_util"}
        tags |= {"GPU Memory Power Readings /Average Power Draw": "gpu_memory_power_readings/average_power_draw"}
        tags |= {"BAR1 Memory Usage/Used": "bar1_memory_usage/used"}
        tags |= {"Clocks Event Reasons/SW Power Cap": "clocks_event_reasons/clocks_event_reason_sw_power_cap"}
        return place(tags[path])

    value, asked = _values("load", place, 1)
    gpu = _recorded_gpu(text_place, _process(445, 1642))
    document = log_xml(_snapshot(gpu, theirs.findtext("timestamp") or ""), value)
    assert asked <= log_keys()
    shape = re.sub(
        r"<supported_clocks>.*</supported_clocks>", "<supported_clocks></supported_clocks>", recorded, flags=re.S
    )
    empty = re.compile(r">[^<\n]*<")
    assert empty.sub("><", document).splitlines() == empty.sub("><", shape).splitlines()
    ours = ElementTree.fromstring(document)
    clocks = theirs.find("gpu/supported_clocks")
    assert clocks is not None
    clocks.clear()
    pairs = list(zip(_elements(theirs), _elements(ours), strict=True))
    assert len(pairs) > 250
    different = {path: mine for (path, said), (_, mine) in pairs if said != mine}
    assert set(different) == _UNSAID_TAGS
    assert set(different.values()) == {"N/A"}


def _elements(element: ElementTree.Element, path: str = "") -> list[tuple[str, str]]:
    text = (element.text or "").strip() or element.get("id", "")
    found = [(path, text)]
    for child in element:
        found += _elements(child, child.tag if element.tag == "gpu" else f"{path}/{child.tag}")
    return found


def test_an_older_chip_has_the_elements_of_an_older_chip() -> None:
    path = _SHARED / "fixtures" / "nvidia-smi-xml" / "telegraf-tesla-t4.xml"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    theirs = ElementTree.parse(path).getroot()
    gpu = Gpu({"architecture": "Turing", "temperature_limit": 93.0})
    ours = ElementTree.fromstring(log_xml(Snapshot(0.0, (gpu,)), lambda _, name: "[N/A]"))
    for block in (
        "ecc_errors",
        "ecc_errors/volatile",
        "ecc_errors/aggregate",
        "retired_pages",
        "clocks",
        "mig_devices",
    ):
        assert _tags(ours, block) == _tags(theirs, block)
    newer = ["gpu_temp_tlimit"]
    assert [tag for tag in _tags(ours, "temperature") if tag not in newer] == _tags(theirs, "temperature")
    assert ours.findtext("gpu/temperature/gpu_temp_slow_threshold") == "93 C"
    assert ours.findtext("gpu/remapped_rows") == theirs.findtext("gpu/remapped_rows") == "N/A"


def _tags(root: ElementTree.Element, block: str) -> list[str]:
    found = root.find(f"gpu/{block}")
    assert found is not None, block
    return [child.tag for child in found]


def test_every_name_asked_for_is_a_field_or_a_metric() -> None:
    assert log_keys() <= set(_fields("load")) | set(GPU_METRICS)
