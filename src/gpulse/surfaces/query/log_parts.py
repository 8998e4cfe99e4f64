"""Parts of a log that recur, and how a log writes values that a query writes otherwise."""

from __future__ import annotations

from .field import MIB, spelt, whole
from .log_line import Group, LogEntry, LogLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

celsius = "{} C".format  # of a text that a query gives without its unit
lanes = "{}x".format
banks = "{} bank(s)".format
degrees = "{:.0f} C".format
megahertz = "{:.0f} MHz".format
watts = "{:.2f} W".format


def threshold(label: str, tag: str, key: str, *, since: str = "", before: str = "") -> LogLine:
    """Return the line of a temperature that does not change."""
    return LogLine(label, tag, keys=(key,), form=degrees, since=since, before=before)


def kilobytes(rate: float) -> str:
    """Write a rate."""
    return f"{rate / 1000:.0f} KB/s"


def full_mib(count: float) -> str:
    """Write bytes as whole MiB, a started one left out."""
    return f"{count // MIB:.0f} MiB"


def rest(total: float, used: float) -> str:
    """Write what is left of a total, so that the MiB add up."""
    return f"{total // MIB - used // MIB:.0f} MiB"


def generation(name: str) -> str:
    """Write a generation of chips by its full name."""
    return "Ada Lovelace" if name == "Ada" else name


def display(reasons: tuple[str, ...]) -> str:
    """Write whether a display holds the clocks."""
    return "Active" if "display_clock_setting" in reasons else "Not Active"


def pages(count: str) -> str:
    """Write the pages behind a count: there are none, or nobody lists them."""
    return "None" if count == "0" else "N/A"


def accounted(mode: str) -> str:
    """Write the accounted processes: there are none, or nobody lists them."""
    return "None" if mode == "Disabled" else "N/A"


def samples(title: str, section: str, key: str, unit: str) -> Group:
    """Return the statistics of the samples that the driver keeps; where it keeps none, nvidia-smi says Not Found."""
    digits = 2 if unit == "W" else 0

    def line(label: str, form: Callable[[Sequence[float]], str]) -> LogLine:
        return LogLine(label, "", keys=(key,), form=form, missing="Not Found")

    def value(at: int) -> Callable[[Sequence[float]], str]:
        return lambda kept: f"{kept[at] if digits else int(kept[at]):.{digits}f} {unit}"

    return Group(
        title,
        "",
        line("Duration", lambda kept: f"{kept[0]:.2f} sec"),
        line("Number of Samples", lambda kept: f"{kept[1]:.0f}"),
        line("Max", value(2)),
        line("Min", value(3)),
        line("Avg", value(4)),
        sections=section,
        asked=True,
    )


def hexadecimal(value: float) -> str:
    """Write a number in hex."""
    return f"0x{int(value):x}"


def board(on: bool) -> str:
    """Write a fact about the board."""
    return "Yes" if on else "No"


def onoff(on: bool) -> str:
    """Write a switch."""
    return "On" if on else "Off"


def able(on: bool) -> str:
    """Write a capability."""
    return "enabled" if on else "disabled"


def latency(seconds: float) -> str:
    """Write a time as whole microseconds."""
    return f"{seconds * 1e6:.0f}"


virtualization = spelt(
    {"pass_through": "Pass-Through", "vgpu": "VGPU", "host_vgpu": "Host VGPU", "host_vsga": "Host VSGA"}
)


def reason(label: str, name: str, deeper: bool = False) -> LogLine:
    """Return the line of a reason to run slower."""
    return LogLine(label, f"clocks_event_reason_{name}", f"clocks_event_reasons.{name}", deeper=deeper)


def counter(label: str, tag: str, name: str) -> LogLine:
    """Return the line of the time spent with a reason."""
    return LogLine(label, f"clocks_event_reasons_counters_{tag}", f"clocks_event_reasons_counters.{name}")


def errors(label: str, scope: str, *more: LogLine) -> Group:
    """Return the ECC errors since the start or of a life time."""
    bad = f"ecc.errors.uncorrected.{scope}"
    good = f"ecc.errors.corrected.{scope}"
    return Group(label, scope,
        LogLine("SRAM Correctable", "sram_correctable", f"{good}.sram"),
        LogLine("SRAM Uncorrectable", "sram_uncorrectable", f"{bad}.sram", before="Ampere"),
        LogLine("SRAM Uncorrectable Parity", "sram_uncorrectable_parity", f"{bad}.sram.parity", since="Ampere"),
        LogLine("SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", f"{bad}.sram.secded", since="Ampere"),
        LogLine("DRAM Correctable", "dram_correctable", f"{good}.dram"),
        LogLine("DRAM Uncorrectable", "dram_uncorrectable", f"{bad}.dram"),
        *more,
    )  # fmt: skip


def source(label: str, name: str) -> LogLine:
    """Return a line about uncorrectable errors in SRAM over the life time."""
    field = {"microcontroller": "mcu", "threshold_exceeded": "thresholdExceeded"}.get(name, name)
    return LogLine(label, f"sram_{name}", f"ecc.errors.uncorrected.aggregate.sram.{field}", since="Ampere")


def retired(tag: str, field: str) -> Group:
    """Return the retired pages as the XML nests them."""
    return Group(
        "", tag, LogLine("", "retired_count", field), LogLine("", "retired_pagelist", field, pages, lists=True)
    )


def histogram(label: str, name: str) -> LogLine:
    """Return the line for memory banks with this number of spare rows left."""
    return LogLine(label, f"row_remapper_histogram_{name}", f"remapped_rows.histogram.{name}", banks)


def platform(label: str, name: str) -> LogLine:
    """Return the line of a place in a rack; a machine without a chassis has none."""
    return LogLine(label, name, f"platform.{name}", needs="platform.chassis_serial_number")


def health(label: str, name: str) -> LogLine:
    """Return the line of one part of a fabric's health."""
    return LogLine(label, name, f"fabric.health.{name}")


def limits(enforced: str, power: str) -> tuple[LogLine, ...]:
    """Return the lines of the power of a GPU or of its module."""
    return (
        LogLine("", "power_state", "pstate"),
        LogLine("Average Power Draw", "average_power_draw", f"{power}.draw.average"),
        LogLine("Instantaneous Power Draw", "instant_power_draw", f"{power}.draw.instant"),
        LogLine("Current Power Limit", "current_power_limit", enforced),
        LogLine("Requested Power Limit", "requested_power_limit", f"{power}.limit"),
        LogLine("Default Power Limit", "default_power_limit", f"{power}.default_limit"),
        LogLine("Min Power Limit", "min_power_limit", f"{power}.min_limit"),
        LogLine("Max Power Limit", "max_power_limit", f"{power}.max_limit"),
    )


def memory(sections: str = "") -> Group:
    """Return the memory of a GPU or an instance."""
    return Group("FB Memory Usage", "fb_memory_usage",
        LogLine("Total", "total", "memory.total"),
        LogLine("Reserved", "reserved", "memory.reserved"),
        LogLine("Used", "used", "memory.used"),
        LogLine("Free", "free", "memory.free"),
        sections=sections,
    )  # fmt: skip


def bar1(sections: str = "") -> Group:
    """Return the BAR1 window of a GPU or an instance."""
    return Group("BAR1 Memory Usage", "bar1_memory_usage",
        LogLine("Total", "total", keys=("bar1_total",), form=full_mib),
        LogLine("Used", "used", keys=("bar1_used",), form=full_mib),
        LogLine("Free", "free", keys=("bar1_total", "bar1_used"), form=rest),
        sections=sections,
    )  # fmt: skip


def _engine(name: str, key: str) -> LogLine:
    return LogLine(f"{name} count", f"{name.lower().replace(' ', '_')}_count", keys=(key,), form=whole)


# fmt: off
_ENGINES = {
    "Multiprocessor": "mig_multiprocessors", "Copy Engine": "mig_copy_engines", "Encoder": "mig_encoders",
    "Decoder": "mig_decoders", "OFA": "mig_ofas", "JPG": "mig_jpegs",
}
INSTANCE: tuple[LogEntry, ...] = (
    LogLine("Index", "index", keys=("index",), form=whole),
    LogLine("GPU Instance ID", "gpu_instance_id", keys=("gpu_instance",), form=whole),
    LogLine("Compute Instance ID", "compute_instance_id", keys=("compute_instance",), form=whole),
    Group("Device Attributes", "device_attributes",
        Group("Shared", "shared", *(_engine(each, key) for each, key in _ENGINES.items()))),
    Group("ECC Errors", "ecc_error_count",
        Group("Volatile", "volatile_count", LogLine("SRAM Uncorrectable", "sram_uncorrectable", keys=("ecc_uncorrected",), form=whole))),
    memory(),
    bar1(),
)
# fmt: on
