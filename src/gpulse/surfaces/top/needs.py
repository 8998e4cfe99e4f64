"""Which metrics the screen needs now; a hidden panel costs nothing, and a full-screen view asks for more."""

from __future__ import annotations

from ...model.condition import CONDITIONS
from ...model.presets import EVIDENCE, GLANCE, HOST_CURVES, HOST_VIEW, PROCESS_EVIDENCE, USERS
from ...model.process_filter import ProcessFilter
from ...model.select import Wanted
from .processes import filter_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .state import State

_HOST = (
    "name",
    "cpu_count",
    "cpu_per_core",
    "load",
    "memory_total",
    "swap_used",
    "swap_total",
    *HOST_CURVES,
    "port_names",
    "port_rx",
    "port_tx",
)
_JUDGED = (
    "sm_occupancy",
    "fp32_active",
    "pcie_rx",
    "pcie_tx",
    "clock_sm_max",
    "power_default_limit",
)  # for the verdict
_WATCHED = [key for name in ("nvlink_down", "slower_than_peers") for key in CONDITIONS[name].needs]  # for events
_ENGINES = ("encoder_utilization", "decoder_utilization", "video_utilization")  # shown only while used


def wanted(state: State) -> Wanted:
    """Return what the screen shows now and so needs."""
    shown = () if "charts" in state.hidden else state.settings.charts
    gpu = {*GLANCE, *_JUDGED, *EVIDENCE, *_WATCHED, *_ENGINES, "xid_last", "xids", "fan_speed", *shown}
    process = {*USERS, *PROCESS_EVIDENCE, "command"}
    if "processes" not in state.hidden:
        process |= {key for key in (*state.settings.columns, state.sort, *dict(state.ties)) if key != "gpu"}
        process |= ProcessFilter(filter_text(state)).keys
    host = {"name"} if "host" in state.hidden else {*_HOST}
    if state.dialog == "gpu":
        from .panels.gpu_view import view_keys

        gpu |= view_keys()
    elif state.dialog == "host":
        host |= {*_HOST, *HOST_VIEW}
    return Wanted(gpu, process, host, serving=True)
