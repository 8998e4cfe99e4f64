"""How nvidia-smi writes values."""

from __future__ import annotations

import time as clock

from .field import MIB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...model.snapshot import Snapshot

# The bit of each reason for which clocks are low; a reason without a word comes as its bits.
REASONS = {
    "gpu_idle": 0x001,
    "applications_clocks_setting": 0x002,
    "sw_power_cap": 0x004,
    "hw_slowdown": 0x008,
    "sync_boost": 0x010,
    "sw_thermal_slowdown": 0x020,
    "hw_thermal_slowdown": 0x040,
    "hw_power_brake_slowdown": 0x080,
    "display_clock_setting": 0x100,
}


def switch(on: str, off: str) -> Callable[[bool], str]:
    """Return what writes true as the first word and false as the second."""
    return lambda value: on if value else off


whole = "{:.0f}".format
watts = "{:.2f}".format
pstate = "P{:.0f}".format
enabled = switch("Enabled", "Disabled")
yes = switch("Yes", "No")
truth = switch("True", "False")
validity = switch("valid", "invalid")
bandwidth = switch("Degraded", "Full")  # of a fabric: whether it is degraded


def mib(count: float) -> str:
    """Write bytes as MiB, started ones counted."""
    return f"{-(-count // MIB):.0f}"


def microseconds(value: float) -> str:
    """Write seconds as whole microseconds."""
    return f"{value * 1e6:.0f}"


def hexadecimal(digits: int) -> Callable[[float], str]:
    """Return a formatter for hexadecimal numbers with a minimum number of digits."""
    return lambda value: f"0x{int(value):0{digits}X}"


def mask(words: Iterable[str]) -> str:
    """Write reasons as the bit mask they came from."""
    return f"0x{sum(REASONS.get(word) or _bits(word) for word in words):016X}"


def _bits(word: str) -> int:
    try:
        return int(word, 16)
    except ValueError:
        return 0


def reason(word: str) -> Callable[[Iterable[str]], str]:
    """Return what tells whether one reason is among those that hold."""
    return lambda words: "Active" if word in words else "Not Active"


def titled(word: str) -> str:
    """Write a word of the catalog as a title: in_progress is In Progress."""
    return " ".join(part.capitalize() for part in word.split("_"))


def spelt(words: Mapping[str, str]) -> Callable[[str], str]:
    """Return what writes a word of the catalog as this table spells it; one that is not there becomes a title."""
    return lambda word: words.get(word) or titled(word)


compute_mode = spelt({"exclusive_process": "Exclusive_Process", "exclusive_thread": "Exclusive_Thread"})
addressing_mode = spelt({"hmm": "HMM", "ats": "ATS"})
peer = spelt({"direct": "Direct Connected", "switch": "Switch Connected"})
recovery = spelt({"drain_p2p": "Drain P2P", "drain_and_reset": "Drain and Reset"})
status = spelt({"unknown": "Unknown Error", "gpu_is_lost": "GPU is lost", "no_permission": "Insufficient Permissions"})
misconfiguration = spelt(
    {
        "incorrect_system_guid": "Incorrect SystemGUID",
        "insufficient_nvlinks": "Insufficient NVLink Resources",
        "gpu_state_invalid": "GPU State Invalid",
    }
)


def program(command: str) -> str:
    """Write the program of a command line, as it was called."""
    return command.split(" ", 1)[0]


def time_stamp(snapshot: Snapshot) -> str:
    """Write the local time of a sample to the millisecond."""
    whole_seconds, millis = divmod(int(snapshot.time * 1000), 1000)
    return f"{clock.strftime('%Y/%m/%d %H:%M:%S', clock.localtime(whole_seconds))}.{millis:03d}"
