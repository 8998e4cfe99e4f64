"""Sources of values: the only folder that accesses hardware, drivers, /proc and /sys.

May import store, model, plugins, units and errors. Contains no formatting, no rates and no threads.
The names below are for packages that add their own source (entry point group `gpulse.sources`).
"""

from __future__ import annotations

# Type checkers and editors read __init__.pyi, which `make docs` generates from this table.
__all__ = ["Source", "Device", "DeviceSample", "Facts", "Counter", "Machine"]


def __getattr__(name: str) -> object:
    from ..lazy import load_public

    return load_public(__name__, name, dict.fromkeys(__all__, "base"))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
