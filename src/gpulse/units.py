"""Units: one stored unit per kind, and formatting and parsing of sizes, durations and lists of numbers."""

from __future__ import annotations

from .errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Unit:
    """A stored unit: `symbol` follows a number on screens, `suffix` ends a Prometheus name, `base` converts to Prometheus' base unit."""

    __slots__ = ("base", "name", "suffix", "symbol")

    def __init__(self, name: str, symbol: str, suffix: str = "", base: float = 1.0) -> None:
        self.name = name
        self.symbol = symbol
        self.suffix = suffix
        self.base = base

    def __repr__(self) -> str:
        return f"Unit({self.name!r})"


PERCENT = Unit("percent", "%", "_ratio", 0.01)
BYTES = Unit("bytes", "B", "_bytes")
BYTES_PER_SECOND = Unit("bytes per second", "B/s", "_bytes_per_second")
WATT = Unit("watts", "W", "_watts")
JOULE = Unit("joules", "J", "_joules")
CELSIUS = Unit("degrees Celsius", "°C", "_celsius")
MEGAHERTZ = Unit("megahertz", "MHz", "_hertz", 1e6)
LATENCY = Unit("seconds", "seconds", "_seconds")  # written with its digits: 12.3 ms, 1.42 s
SECOND = Unit("seconds", "s", "_seconds")
PER_SECOND = Unit("per second", "/s", "_per_second")
TOKENS_PER_SECOND = Unit("tokens per second", "tok/s", "_tokens_per_second")
TOKENS_PER_JOULE = Unit("tokens per joule", "tok/J", "_tokens_per_joule")
MONEY = Unit("currency of the prices", "")
RPM = Unit("revolutions per minute", "rpm", "_rpm")
COUNT = Unit("count", "")
NONE = Unit("none", "")

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")
_SIZE_WORDS = {
    "": 1, "b": 1,
    "k": 1 << 10, "kib": 1 << 10, "kb": 10**3,
    "m": 1 << 20, "mib": 1 << 20, "mb": 10**6,
    "g": 1 << 30, "gib": 1 << 30, "gb": 10**9,
    "t": 1 << 40, "tib": 1 << 40, "tb": 10**12,
}  # fmt: skip
_TIME_WORDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def size_text(count: float, like: float | None = None, unit: bool = True, decimal: bool = False) -> str:
    """Format bytes in the largest binary or `decimal` unit that keeps three digits: 71.2 GiB; `like` takes the unit of another size."""
    base, units = (1000, _DECIMAL_SIZES) if decimal else (1024, _SIZES)
    step = 0
    scale = abs(like if like is not None else count)
    most = 1000 if like is None else 10_000  # with a total, 126/1007 GiB is easier to read than 0.1/1.0 TiB
    while scale >= most and step < len(units) - 1:
        scale /= base
        step += 1
    value = count / base**step
    digits = 0 if step == 0 or abs(value) >= 99.95 or value == 0 else 1
    return f"{value:.{digits}f} {units[step]}" if unit else f"{value:.{digits}f}"


def duration_text(seconds: float) -> str:
    """Format a duration with its two largest units: 45s, 12m05s, 3h20m, 2d04h."""
    whole = int(max(0.0, seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def count_text(count: float, noun: str) -> str:
    """Return how many: 1 GPU, 3 GPUs."""
    return f"{count:.0f} {noun}{'' if round(count) == 1 else 's'}"


def parse_size(text: str) -> float:
    """Parse a size such as 512, 1.5GiB or 300 MB into bytes; raise UsageError that quotes the text if it is wrong."""
    return _parse(text, _SIZE_WORDS, "size", "write it as 512MiB, 1.5GiB or 300MB")


def parse_duration(text: str) -> float:
    """Parse a duration such as 0.5, 500ms, 10s, 5m, 2h, 1d or 1h30m into seconds; raise UsageError if it is wrong."""
    how = "write it as 0.5, 500ms, 10s, 5m, 2h, 1d or 1h30m"
    parts = _parts(text.strip())
    if len(parts) > 1 and all(part.lstrip("0123456789") in ("s", "m", "h", "d", "w") for part in parts):
        return sum(_parse(part, _TIME_WORDS, "duration", how) for part in parts)
    return _parse(text, _TIME_WORDS, "duration", how)


def _parts(text: str) -> list[str]:
    """Split 1h30m into 1h and 30m."""
    parts: list[str] = []
    for at, char in enumerate(text):
        if not parts or (char.isdecimal() and text[at - 1].isalpha()):
            parts.append("")
        parts[-1] += char
    return parts


def _parse(text: str, words: dict[str, int] | dict[str, float], what: str, how: str) -> float:
    stripped = text.strip()
    digits = len(stripped) - len(stripped.lstrip("0123456789."))
    scale = words.get(stripped[digits:].strip().lower())
    try:
        number = float(stripped[:digits])
    except ValueError:
        number = -1.0
    if scale is None or not 0 <= number < 1e300:
        raise UsageError(f"{text!r} is not a {what};", f"{how}.")
    return number * scale


def ranges(labels: Iterable[str]) -> str:
    """Return labels with a dash for three or more numbers in a row: 0-3, 7."""
    parts: list[list[str]] = []
    for label in labels:
        before = parts[-1][-1] if parts else ""
        if label.isdecimal() and before.isdecimal() and int(label) == int(before) + 1:
            parts[-1].append(label)
        else:
            parts.append([label])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(part) for part in parts)


def gpus_text(labels: Sequence[str]) -> str:
    """Return which GPUs: GPU 0, GPUs 0-3, GPU 0 MIG 1 for the label 0:1."""
    return f"GPU{'s' if len(labels) > 1 else ''} {ranges(labels).replace(':', ' MIG ') or '?'}"
