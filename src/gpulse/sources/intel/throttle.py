"""Why an Intel GT is throttled, with the reasons that all vendors share where they mean the same."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..drm.kernel import Folder
    from .tiles import Gt

_WORDS = {
    "pl1": "sw_power_cap",
    "pl2": "sw_power_cap",
    "pl4": "sw_power_cap",
    "psys_pl1": "sw_power_cap",
    "psys_pl2": "sw_power_cap",
    "thermal": "sw_thermal_slowdown",
    "soc_thermal": "sw_thermal_slowdown",
    "mem_thermal": "sw_thermal_slowdown",
    "soc_avg_thermal": "sw_thermal_slowdown",
    "ratl": "sw_thermal_slowdown",  # the running average of the temperature
    "prochot": "hw_thermal_slowdown",
    "vr_thermal": "hw_thermal_slowdown",
    "vr_thermalert": "hw_thermal_slowdown",
    "vr_tdc": "current_limit",
    "iccmax": "current_limit",
    "fastvmode": "current_limit",
}


def throttle_words(gts: Iterable[Gt], files: Folder) -> tuple[str, ...] | None:
    """Return the reasons active on any GT; None if no GT reports them."""
    words: list[str] = []
    said = False
    for gt in gts:
        status = files.number(gt.status) if gt.status else None
        if status is None and not gt.reasons:
            continue
        if status == 0:
            said = True
            continue
        for reason, path in gt.reasons.items():
            value = files.number(path)
            said = said or value is not None
            if value:
                words.append(_WORDS.get(reason, reason))
    return tuple(dict.fromkeys(words)) if said else None
