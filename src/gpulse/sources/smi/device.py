"""One GPU of nvidia-smi's XML, its MIG instances and processes: which element has which metric, and how its text is read."""

from __future__ import annotations

from ..base import Device, DeviceSample, Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias
    from xml.etree.ElementTree import Element

    from ...model.metric import Gap, Value
    from ..base import Key

    Reading: TypeAlias = "tuple[Value | None, Gap]"

_FACTORS = {
    "": 1, "%": 1, "C": 1, "W": 1, "MHz": 1, "x": 1, "MiB": 1 << 20, "KiB": 1 << 10, "GiB": 1 << 30, "B": 1, "mJ": 1e-3, "J": 1,
    "KB/s": 1e3, "MB/s": 1e6, "us": 1, "RPM": 1,
}  # fmt: skip
_LONGEST = 25  # digits; int() refuses thousands of them with an exception
_SWITCHES = {"Enabled": True, "Disabled": False, "Yes": True, "No": False, "On": True, "Off": False}


def text_at(element: Element, path: str) -> str:
    """Return the text at a path; nothing if there is none."""
    found = element.find(path)
    return "" if found is None else (found.text or "").strip()


def gap_of(text: str) -> Gap:
    """Return why a text is not a value."""
    lowered = text.lower()
    if "lost" in lowered or "requires reset" in lowered:
        return "lost"
    if "permission" in lowered:
        return "denied"
    if not lowered or "deprecated" in lowered or lowered.strip("[]") in ("n/a", "not supported", "none", "not found"):
        return "unsupported"
    return "failed"


def number(text: str) -> Reading:
    """Read a number with its unit into ours: bytes, W, °C, MHz, percent, bytes per second."""
    word = text[: len(text) - len(text.lstrip("0123456789."))] if text[:1] != "-" else ""
    factor = _FACTORS.get(text[len(word) :].strip())
    if not word or factor is None or word.count(".") > 1 or word == "." or len(word) > _LONGEST:
        return None, gap_of(text) if not word else "failed"
    plain = float(word) if "." in word else int(word)
    value = plain * factor
    return (round(value) if isinstance(plain, int) and isinstance(value, float) else value), "unsupported"


def state(text: str) -> Reading:
    """Read a performance state: P8 is 8."""
    digits = text.removeprefix("P")
    known = digits.isascii() and digits.isdecimal() and digits != text and len(digits) < 3
    return (int(digits), "unsupported") if known else (None, gap_of(text))


def switch(text: str) -> Reading:
    """Read Enabled, Disabled, Yes or No."""
    return (_SWITCHES[text], "unsupported") if text in _SWITCHES else (None, gap_of(text))


def word(text: str) -> Reading:
    """Read a mode as a word of ours: Exclusive_Process is exclusive_process."""
    gap = gap_of(text)
    return (text.lower(), gap) if gap == "failed" and text.replace("_", "").isalpha() else (None, gap)


def plain(text: str) -> Reading:
    """Read a text as it is; N/A is none."""
    gap = gap_of(text)
    return (text, gap) if gap == "failed" else (None, gap)


IDENTITY = {
    "uuid": "uuid", "name": "product_name", "architecture": "product_architecture", "pci_bus_id": "pci/pci_bus_id", "serial": "serial",
    "vbios": "vbios_version",
}  # fmt: skip
_LINK = "pci/pci_gpu_link_info"


def _power(*names: str) -> str:
    return " ".join(f"{group}/{name}" for group in ("gpu_power_readings", "power_readings") for name in names)


# The paths of the elements that may have a metric: of two names for one thing, the older may be deprecated.
_PATHS: dict[Callable[[str], Reading], dict[str, str]] = {
    number: {
        "utilization": "utilization/gpu_util", "memory_utilization": "utilization/memory_util",
        "encoder_utilization": "utilization/encoder_util", "decoder_utilization": "utilization/decoder_util",
        "jpeg_utilization": "utilization/jpeg_util", "ofa_utilization": "utilization/ofa_util",
        "memory_used": "fb_memory_usage/used", "memory_total": "fb_memory_usage/total", "memory_free": "fb_memory_usage/free",
        "memory_reserved": "fb_memory_usage/reserved",
        "bar1_used": "bar1_memory_usage/used", "bar1_total": "bar1_memory_usage/total",
        "temperature": "temperature/gpu_temp", "memory_temperature": "temperature/memory_temp",
        "temperature_limit": "temperature/gpu_temp_slow_threshold", "fan_speed": "fan_speed",
        "power_draw": _power("power_draw", "average_power_draw", "instant_power_draw"),
        "power_limit": _power("enforced_power_limit", "current_power_limit", "power_limit"),
        "power_default_limit": _power("default_power_limit"),
        "clock_graphics": "clocks/graphics_clock", "clock_sm": "clocks/sm_clock", "clock_memory": "clocks/mem_clock",
        "clock_video": "clocks/video_clock", "clock_sm_max": "max_clocks/sm_clock", "clock_memory_max": "max_clocks/mem_clock",
        "pcie_gen": f"{_LINK}/pcie_gen/current_link_gen {_LINK}/pcie_gen/device_current_link_gen",
        "pcie_gen_max": f"{_LINK}/pcie_gen/max_link_gen",
        "pcie_width": f"{_LINK}/link_widths/current_link_width", "pcie_width_max": f"{_LINK}/link_widths/max_link_width",
        "pcie_rx": "pci/rx_util", "pcie_tx": "pci/tx_util", "pcie_replays": "pci/replay_counter",
    },
    state: {"pstate": f"performance_state {_power('power_state')}"},
    switch: {
        "persistence_mode": "persistence_mode", "mig_mode": "mig_mode/current_mig", "display_active": "display_active",
        "sparse_operation_mode": "sparse_operation_mode",
    },
    word: {"compute_mode": "compute_mode", "driver_model": "driver_model/current_dm", "addressing_mode": "addressing_mode"},
    plain: {"board_part_number": "board_part_number", "chip_part_number": "gpu_part_number"},
}  # fmt: skip
FIELDS = {key: (parse, paths.split()) for parse, found in _PATHS.items() for key, paths in found.items()}
_REASONS = ("clocks_event_reasons", "clocks_throttle_reasons")
_PREFIXES = ("clocks_event_reason_", "clocks_throttle_reason_")
_OUR_WORDS = {"display_clocks_setting": "display_clock_setting"}
_ERRORS = "ecc_errors/volatile"


def throttle(gpu: Element) -> Reading:
    """Read the reasons that are active; R575 and later also count them in elements of other names, which are skipped."""
    group = next((found for name in _REASONS if (found := gpu.find(name)) is not None), None)
    if group is None or not len(group):
        return None, gap_of("" if group is None else (group.text or "").strip())
    words = []
    for child in group:
        reason = child.tag
        for prefix in _PREFIXES:
            reason = reason.removeprefix(prefix)
        if reason != child.tag and (child.text or "").strip() == "Active":
            words.append(_OUR_WORDS.get(reason, reason))
    return tuple(words), "unsupported"


def memory_errors(gpu: Element, corrected: bool) -> Reading:
    """Add up errors since the driver was loaded: of DRAM and SRAM, or the total that schema v10 has."""
    total = text_at(gpu, f"{_ERRORS}/{'single_bit' if corrected else 'double_bit'}/total")
    if total:
        return number(total)
    group = gpu.find(_ERRORS)
    kind = "_correctable" if corrected else "_uncorrectable"
    texts = [(child.text or "").strip() for child in (() if group is None else group) if kind in child.tag]
    counts = [count for text in texts if isinstance(count := number(text)[0], int)]
    return (sum(counts), "unsupported") if counts else (None, gap_of(texts[0] if texts else ""))


def remapped_rows(gpu: Element) -> Reading:
    """Add up rows replaced after corrected and uncorrected errors."""
    texts = [text_at(gpu, f"remapped_rows/remapped_row_{kind}") for kind in ("corr", "unc")]
    counts = [count for text in texts if isinstance(count := number(text)[0], int)]
    return (sum(counts), "unsupported") if len(counts) == 2 else (None, gap_of(texts[0]))


SPECIAL: dict[str, Callable[[Element], Reading]] = {
    "throttle_reasons": throttle,
    "ecc_corrected": lambda gpu: memory_errors(gpu, True),
    "ecc_uncorrected": lambda gpu: memory_errors(gpu, False),
    "remapped_rows": remapped_rows,
}


def identity_of(gpu: Element, index: int) -> dict[str, Reading]:
    """Read who a GPU is."""
    found = {key: plain(text_at(gpu, path)) for key, path in IDENTITY.items()}
    if found["pci_bus_id"][0] is None and gpu.get("id"):
        found["pci_bus_id"] = (str(gpu.get("id")), "unsupported")
    found["index"] = (index, "unsupported")
    return found


# Every GPU metric that this source can have; `gpulse metrics` and the drift test read it.
KEYS = frozenset({
    *FIELDS, *SPECIAL, *IDENTITY, "index", "vendor", "driver_version", "memory_unified", "gpu_instance", "compute_instance",
})  # fmt: skip
_MEMORY = ("memory_used", "memory_total", "memory_free", "memory_reserved", "bar1_used", "bar1_total")
_LOST = ("utilization", "temperature", "memory_total")
_MOST_PIDS = 1 << 32  # Windows counts further than Linux


class SmiDevice(Device):
    """The GPU at one place of the log; `update` gives it the next log's element, or None where it is gone.

    `silent`: the last log is too old to apply.
    """

    silent = False

    def __init__(self, gpu: Element, index: int, driver: str) -> None:
        self._gpu: Element | None = gpu
        self._identity_gaps: dict[str, Gap] = {}
        values: dict[str, Value] = {"vendor": "nvidia"}
        if driver:
            values["driver_version"] = driver
        for key, (value, gap) in identity_of(gpu, index).items():
            if value is None:
                self._identity_gaps[key] = gap
            else:
                values[key] = value
        values.setdefault("uuid", f"PCI-{values.get('pci_bus_id', index)}")
        self._identity_gaps.pop("uuid", None)
        self.identity: Mapping[str, Value] = values

    def update(self, gpu: Element | None) -> None:
        """Read from another log from now on."""
        self._gpu, self.silent = gpu, False

    def parts(self) -> list[Mapping[str, Value]]:
        return [] if self._gpu is None else [self._part(at, part) for at, part in enumerate(self._migs())]

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        sample = DeviceSample()
        gpu = self._gpu
        if gpu is None or self.silent:
            sample.state = "timeout" if self.silent else "lost"
            sample.gaps.update(dict.fromkeys(keys - self.identity.keys(), sample.state))
            return sample
        sample.gaps.update(self._identity_gaps)
        _fill(sample, gpu, keys)
        if "memory_unified" in keys:
            sample.values["memory_unified"] = False
            if "memory_total" not in sample.values and sample.gaps.get("memory_total"):
                del sample.values["memory_unified"]
        sample.gaps.update(dict.fromkeys(keys - sample.values.keys() - sample.gaps.keys(), "unsupported"))
        if all(sample.gaps.get(key) == "lost" for key in _LOST if key in keys) and keys & set(_LOST):
            sample.state = "lost"
        self._read_processes(sample, keys, process_keys)
        return sample

    def _read_processes(self, sample: DeviceSample, keys: Key, process_keys: Key | None) -> None:
        listed = [] if process_keys is None or self._gpu is None else self._gpu.findall("processes/process_info")
        placed: dict[tuple[str, str], dict[int, Facts]] = {}
        for place, pid, facts in map(_process, listed):
            if 0 < pid < _MOST_PIDS:
                _merge(placed.setdefault(place, {}), pid, facts)
        for at, part in enumerate(self._migs()):
            place = (text_at(part, "gpu_instance_id"), text_at(part, "compute_instance_id"))
            instance = DeviceSample()
            instance.values.update(self._part(at, part))
            instance.processes = placed.pop(place, {})
            _fill(instance, part, keys & set(_MEMORY))
            sample.instances.append(instance)
        for processes in placed.values():
            sample.processes.update(processes)

    def _migs(self) -> list[Element]:
        return [] if self._gpu is None else self._gpu.findall("mig_devices/mig_device")

    def _part(self, at: int, part: Element) -> dict[str, Value]:
        ids = [number(text_at(part, name))[0] for name in ("index", "gpu_instance_id", "compute_instance_id")]
        position, gpu_instance, compute_instance = (value if isinstance(value, int) else at for value in ids)
        return {
            "index": position, "vendor": "nvidia", "name": f"MIG {position}", "gpu_instance": gpu_instance,
            "compute_instance": compute_instance,
            "uuid": text_at(part, "uuid") or f"MIG-{self.identity['uuid']}/{gpu_instance}/{compute_instance}",
        }  # fmt: skip


def _fill(sample: DeviceSample, gpu: Element, keys: Key) -> None:
    for key in keys:
        if key in FIELDS:
            value, gap = _first(gpu, *FIELDS[key])
        elif key in SPECIAL:
            value, gap = SPECIAL[key](gpu)
        else:
            continue
        sample.put(key, value, gap)


def _first(gpu: Element, parse: Callable[[str], Reading], paths: Iterable[str]) -> Reading:
    readings = [parse(text_at(gpu, path)) for path in paths]
    return next((reading for reading in readings if reading[0] is not None), readings[0])


def _process(info: Element) -> tuple[tuple[str, str], int, Facts]:
    facts = Facts()
    pid = number(text_at(info, "pid"))[0]
    kind = text_at(info, "type")
    facts.values["type"] = kind if set(kind.split("+")) <= {"C", "G", "M"} and kind else "C"
    memory, gap = number(text_at(info, "used_memory"))
    facts.put("memory_used", memory if isinstance(memory, int) else None, gap)
    command = text_at(info, "process_name")
    if gap_of(command) != "failed":
        facts.gaps["name"] = gap_of(command)
    else:
        facts.values["name"] = command.split(" ")[0].replace("\\", "/").rsplit("/", 1)[-1] or command
    place = (text_at(info, "gpu_instance_id"), text_at(info, "compute_instance_id"))
    return place, pid if isinstance(pid, int) else 0, facts


def _merge(processes: dict[int, Facts], pid: int, facts: Facts) -> None:
    """Join a process that is listed twice, for compute and for graphics."""
    known = processes.setdefault(pid, facts)
    if known is not facts and str(facts.values["type"]) not in str(known.values["type"]):
        known.values["type"] = f"{known.values['type']}+{facts.values['type']}"
    known.values["pid"] = pid
