"""Rules for what breaks: lost GPUs, XIDs, memory errors, throttling and heat."""

from __future__ import annotations

from ...model.catalog import Gpu
from ...model.select import Wanted
from .rule import Finding, Lasting, duration, label, number, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .rule import RuleInput

_SLOWED = {
    "hw_thermal_slowdown": "too hot",
    "sw_thermal_slowdown": "too hot",
    "hw_power_brake_slowdown": "power brake",
    "hw_slowdown": "hardware slowdown",
}
_XID_OF_PROGRAMS = (13, 31, 43, 45, 94)  # end a program and leave the GPU as good as before
_XID_ADVICE = {
    13: "the program failed; restart it",
    31: "the program failed; restart it",
    43: "the program was stopped",
    45: "the program was ended",
    48: "memory error that could not be corrected",
    62: "reset the GPU",
    64: "reset the GPU",
    74: "NVLink error",
    79: "it fell off the bus; the machine must be restarted",
    94: "the program failed; restart it",
    95: "reset the GPU",
    109: "reset the GPU",
    119: "reset the GPU",
    120: "reset the GPU",
    140: "reset the GPU",
    143: "reset the GPU",
}


class Lost(Lasting):
    """A GPU that is lost, that the driver does not answer for, or that is no longer there."""

    name = "lost"
    severity = "critical"
    settings = {"for": (duration, 10.0), "clear_for": (duration, 0.0)}

    def __init__(self, given: dict[str, float] | None = None) -> None:
        super().__init__(given)
        self._known: dict[str, str] = {}

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            self._known[uuid] = number_of(gpu)
            code = {} if gpu.xid_last is None else {"xid_last": gpu.xid_last}
            xid = "" if gpu.xid_last is None else f" (XID {gpu.xid_last:.0f})"
            lost = gpu.state == "lost"
            text = f"{label(gpu)} is lost{xid}" if lost else f"the driver does not answer for {label(gpu)}"
            # a driver may be slow for a moment, but lost is lost
            patience = 0.0 if lost else None
            holds, well = lost or gpu.state == "timeout", f"{label(gpu)} is back"
            yield Finding(uuid, holds, text=text, well=well, gpu=number_of(gpu), values=code, patience=patience)
        for uuid in self._known.keys() - sample.gpus.keys():
            yield Finding(uuid, True, text=f"GPU {self._known[uuid] or '?'} is no longer there", gpu=self._known[uuid])


class Xid(Lasting):
    """An error code of the driver; each code is an alert of its own, so that a second fault is not hidden by the first."""

    name = "xid"
    severity = "critical"
    settings = {"clear_for": (duration, 600.0)}
    wanted = Wanted(gpu=("xid_last",))

    def __init__(self, given: dict[str, float] | None = None) -> None:
        super().__init__(given)
        self._codes: dict[str, set[int]] = {}
        self._last: dict[str, int] = {}

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            if gpu.xid_last is None:
                continue
            code = int(gpu.xid_last)
            fresh = code != self._last.get(uuid)
            self._last[uuid] = code
            known = self._codes.setdefault(uuid, set())
            known.add(code)
            # the last code stays for ever: calm is that it did not come anew, for a while
            yield from (self._finding(uuid, gpu, one, fresh and one == code) for one in sorted(known))

    def _finding(self, uuid: str, gpu: Gpu, code: int, fresh: bool) -> Finding:
        advice = _XID_ADVICE.get(code)
        text = f"{label(gpu)} reported XID {code}" + (f": {advice}" if advice else "")
        severity = "warn" if code in _XID_OF_PROGRAMS else "critical"
        well = f"{label(gpu)} has reported no new XID since XID {code}"
        what, number = str(code), number_of(gpu)
        return Finding(
            uuid, fresh, text=text, well=well, gpu=number, what=what, values={"xid_last": code}, severity=severity
        )


class Ecc(Lasting):
    """Memory errors that could not be corrected, more than at the sample before."""

    name = "ecc"
    severity = "critical"
    settings = {"clear_for": (duration, 600.0)}
    wanted = Wanted(gpu=("ecc_uncorrected",))

    def __init__(self, given: dict[str, float] | None = None) -> None:
        super().__init__(given)
        self._counts: dict[str, float] = {}

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            count = gpu.ecc_uncorrected
            if count is None:
                continue
            rise = count - self._counts.get(uuid, count)  # a driver that was loaded again counts from 0
            self._counts[uuid] = count
            text = f"{label(gpu)} had {rise:.0f} memory errors that could not be corrected ({count:.0f} in all)"
            well = f"{label(gpu)} has no new memory errors ({count:.0f} in all)"
            values = {"ecc_uncorrected": count, "rise": rise}
            yield Finding(uuid, rise > 0, text=text, well=well, gpu=number_of(gpu), values=values)


class Throttled(Lasting):
    """A GPU that slows itself down from heat, a power brake or another fault; its power cap is how a healthy GPU lives."""

    name = "throttled"
    settings = {"for": (duration, 3.0), "clear_for": (duration, 60.0)}
    wanted = Wanted(gpu=("throttle_reasons", "clock_sm", "temperature"))
    slack = 60.0  # seconds: the reasons come and go every second

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            if gpu.throttle_reasons is None:
                continue
            reasons = [word for word in _SLOWED if word in gpu.throttle_reasons]
            why = ", ".join(
                dict.fromkeys(_SLOWED[word] for word in reasons if len(reasons) == 1 or word != "hw_slowdown")
            )
            at = "" if gpu.clock_sm is None else f" to {gpu.clock_sm:.0f} MHz"
            values: dict[str, float | str] = {"throttle_reasons": " ".join(reasons)}
            values |= {
                key: value for key in ("clock_sm", "temperature") if isinstance(value := gpu.get(key), (int, float))
            }
            text, well = f"{label(gpu)} slows down{at}: {why}", f"{label(gpu)} is no longer slowed down"
            yield Finding(uuid, bool(reasons), text=text, well=well, gpu=number_of(gpu), values=values)


class Hot(Lasting):
    """A GPU near the temperature at which it slows itself down: its own limit where it says one, else the catalog's."""

    name = "hot"
    settings = {
        "above": (number, None),
        "for": (duration, 30.0),
        "clear_for": (duration, 60.0),
        "margin": (number, 5.0),
    }
    wanted = Wanted(gpu=("temperature", "temperature_limit", "memory_temperature"))

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            above, limit = self.given("above"), gpu.temperature_limit or Gpu.temperature.critical or 90.0
            if (degrees := gpu.temperature) is not None:
                # a degree early, since at the limit itself it is already slow and no longer gets hotter
                yield self._finding(uuid, gpu, "temperature", degrees, limit - 1 if above is None else above)
            if (degrees := gpu.memory_temperature) is not None:
                yield self._finding(uuid, gpu, "memory_temperature", degrees, Gpu.memory_temperature.critical or 100.0)

    def _finding(self, uuid: str, gpu: Gpu, key: str, degrees: float, above: float) -> Finding:
        memory = key == "memory_temperature"
        who = f"the memory of {label(gpu)}" if memory else label(gpu)
        text, well = f"{who} is at {degrees:.0f} °C", f"{who} has cooled down to {degrees:.0f} °C"
        holds, calm = degrees >= above, degrees <= above - self.value("margin")
        values, what = {key: degrees, "above": above}, "memory" if memory else ""
        return Finding(uuid, holds, calm, text=text, well=well, gpu=number_of(gpu), what=what, values=values)
