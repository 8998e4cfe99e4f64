"""Snapshot: everything known about one machine at one point in time; and the results of `gpulse doctor`'s checks."""

from __future__ import annotations

from types import MappingProxyType

from .catalog import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal, TypeAlias

    from .catalog import Gpu, Server

    Level: TypeAlias = Literal["ok", "note", "warn", "fail"]


class Problem:
    """A problem that is not tied to one value: `source` says where, `message` what, `remedy` what to do."""

    __slots__ = ("message", "remedy", "source")

    def __init__(self, source: str, message: str, remedy: str = "") -> None:
        self.source = source
        self.message = message
        self.remedy = remedy

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and (self.source, self.message, self.remedy) == (
            other.source,
            other.message,
            other.remedy,
        )

    def __hash__(self) -> int:
        return hash((self.source, self.message, self.remedy))

    def __repr__(self) -> str:
        from .brief import printable

        return f"<Problem {printable(self.source)}: {printable(str(self.message), 120)}>"


class Snapshot:
    """One machine at one point in time, immutable. `time` is in seconds since 1970, `driver` has the keys version and cuda.

    `serving` are the model servers on its GPUs and those that the settings name.
    """

    __slots__ = ("driver", "gpus", "host", "problems", "serving", "time")
    time: float
    host: Host
    driver: Mapping[str, str]
    gpus: tuple[Gpu, ...]
    problems: tuple[Problem, ...]
    serving: tuple[Server, ...]

    def __init__(
        self,
        time: float,
        gpus: tuple[Gpu, ...] = (),
        host: Host | None = None,
        driver: Mapping[str, str] = MappingProxyType({}),
        problems: tuple[Problem, ...] = (),
        serving: tuple[Server, ...] = (),
    ) -> None:
        assign = object.__setattr__
        assign(self, "time", time)
        assign(self, "serving", serving)
        assign(self, "gpus", gpus)
        assign(self, "host", host or Host({}))
        assign(self, "driver", driver)
        assign(self, "problems", problems)

    def replace(self, **parts: Any) -> Snapshot:
        """Return a copy with some of its parts changed."""
        return Snapshot(**{name: getattr(self, name) for name in self.__slots__} | parts)

    def with_gpus(self, gpus: tuple[Gpu, ...]) -> Snapshot:
        """Return a copy with only these GPUs, and the servers on them."""
        uuids = {part.uuid for gpu in gpus for part in (gpu, *gpu.instances)}
        serving = tuple(one for one in self.serving if not one.gpus or not uuids.isdisjoint(one.gpus))
        return self.replace(gpus=gpus, serving=serving)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Snapshot is a value and cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Snapshot is a value and cannot be changed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.time, len(self.gpus)))

    def __repr__(self) -> str:
        from .brief import snapshot_brief

        return snapshot_brief(self)

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks; the renderer is in a higher layer, so it is looked up through the package."""
        import gpulse

        return gpulse.snapshot_html(self)


class Check:
    """`about` is a word or two, `found` a sentence, `remedy` what to do. All of it may be published after masking."""

    __slots__ = ("about", "found", "level", "remedy")

    def __init__(self, level: Level, about: str, found: str, remedy: str = "") -> None:
        self.level = level
        self.about = about
        self.found = found
        self.remedy = remedy

    def __repr__(self) -> str:
        return f"Check({self.level!r}, {self.about!r}, {self.found!r}, {self.remedy!r})"
