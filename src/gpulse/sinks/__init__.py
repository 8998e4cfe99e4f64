"""Destinations of samples: files, TensorBoard, experiment trackers, or any function. Names are loaded at their first use."""

from __future__ import annotations

from .base import HOMES as _HOMES

# Type checkers and editors read __init__.pyi, which `make docs` generates from this table.
__all__ = list(_HOMES)  # a single table of names


def __getattr__(name: str) -> object:
    from ..lazy import load_public

    return load_public(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
