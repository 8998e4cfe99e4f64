"""Sources of values: the only folder that accesses hardware, drivers, /proc and /sys.

May import store, model, plugins, units and errors. Contains no formatting, no rates and no threads.
The names below are for packages that add their own source (entry point group `gpulse.sources`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .base import Counter as Counter
    from .base import Device as Device
    from .base import DeviceSample as DeviceSample
    from .base import Facts as Facts
    from .base import Machine as Machine
    from .base import Source as Source

__all__ = ["Source", "Device", "DeviceSample", "Facts", "Counter", "Machine"]


if not TYPE_CHECKING:  # else a misspelled name would be an object to type checkers

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'gpulse.sources' has no attribute {name!r}")
        found = getattr(__import__("gpulse.sources.base", fromlist=[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
