"""Destinations of samples: files, TensorBoard, experiment trackers, or any function. Names are loaded at their first use."""

from __future__ import annotations

from .table import HOMES as _HOMES

# Type checkers and editors read __init__.pyi, which `make docs` generates from this table.
__all__ = list(_HOMES)  # a single table of names


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'gpulse.sinks' has no attribute {name!r}")
    from ..hints import prepare

    found = getattr(__import__(f"gpulse.sinks.{_HOMES[name]}", fromlist=[name]), name)
    globals()[name] = found
    prepare(found)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
