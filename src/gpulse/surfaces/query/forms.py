"""How nvidia-smi writes values."""

from __future__ import annotations

from .field import MIB


def whole(value: float) -> str:
    """Write a whole number."""
    return f"{value:.0f}"


def mib(count: float) -> str:
    """Write bytes as MiB, started ones counted."""
    return f"{-(-count // MIB):.0f}"


def watts(value: float) -> str:
    """Write watts with two digits."""
    return f"{value:.2f}"


def enabled(on: bool) -> str:
    """Write a switch."""
    return "Enabled" if on else "Disabled"


def yes(on: bool) -> str:
    """Write a fact."""
    return "Yes" if on else "No"


def pstate(number: float) -> str:
    """Write a performance state."""
    return f"P{number:.0f}"
