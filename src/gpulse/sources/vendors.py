"""The vendors: one line here and one folder or module beside it each. `--help` loads this and nothing else of the sources.

The module named here has the class, and `KEYS`: the GPU metrics that it can have on some machine.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Source

# name: its module and class, and the kernel drivers whose cards make `auto` open it
VENDORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "nvidia": ("nvidia.source.NvidiaSource", ()),
    "amd": ("amd.source.AmdSource", ("amdgpu", "radeon")),
    "intel": ("intel.source.IntelSource", ("i915", "xe")),
    "jetson": ("jetson.JetsonSource", ()),
    "smi": ("smi.source.SmiSource", ()),
}
# what reads a recorded machine; the driver of NVIDIA has no files
RECORDED = tuple(f"{name}:{'FILE' if name == 'smi' else 'DIR'}" for name in VENDORS if name != "nvidia")
NAMES = ("auto", *VENDORS, "demo", "demo:mixed", "replay:FILE", *RECORDED)  # of all sources


def make_vendor(name: str, place: str) -> Source:
    """Return a vendor's source, not yet opened; only its own modules are imported. `place` is its root, or its file."""
    source: Source = getattr(_vendor_module(name), VENDORS[name][0].rpartition(".")[2])(place)
    return source


def vendor_keys(name: str) -> frozenset[str]:
    """Return the GPU metrics that a vendor's source can have on some machine."""
    return frozenset(_vendor_module(name).KEYS)


def metric_sources() -> dict[str, frozenset[str]]:
    """Return the GPU metrics of each vendor's source."""
    return {name: vendor_keys(name) for name in VENDORS}


def _vendor_module(name: str) -> Any:
    return __import__(f"gpulse.sources.{VENDORS[name][0].rpartition('.')[0]}", fromlist=["KEYS"])
