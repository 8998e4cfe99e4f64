"""Test kit for code that uses gpulse: scripted GPUs instead of real ones, in this process, without a driver or a compiler.

with gpulse.testing.scripted(gpus=2, steps=[{0: {"utilization": 95}}, {1: "lost"}]):
    first, second, third = (gpulse.snapshot() for _ in range(3))
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .script import Script as Script
    from .script import scripted as scripted
    from .source import ScriptedSource as ScriptedSource

_HOMES = {"scripted": "script", "Script": "script", "ScriptedSource": "source"}
__all__ = list(_HOMES)  # one table, not two


if not TYPE_CHECKING:  # else a misspelled name would be an object to type checkers

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'gpulse.testing' has no attribute {name!r}")
        found = getattr(__import__(f"gpulse.testing.{_HOMES[name]}", fromlist=[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
