"""Test kit for code that uses gpulse: scripted GPUs instead of real ones, in this process, without a driver or a compiler.

with gpulse.testing.scripted(gpus=2, steps=[{0: {"utilization": 95}}, {1: "lost"}]):
    first, second, third = (gpulse.snapshot() for _ in range(3))
"""

from __future__ import annotations

# Type checkers and editors read __init__.pyi, which `make docs` generates from this table.
_HOMES = {"scripted": "script", "Script": "script", "ScriptedSource": "script"}
__all__ = list(_HOMES)  # one table, not two


def __getattr__(name: str) -> object:
    from ..lazy import load_public

    return load_public(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
