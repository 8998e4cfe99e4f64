"""Snapshot: everything known about one machine at one point in time; and the results of `gpulse doctor`'s checks."""

from __future__ import annotations

from types import MappingProxyType

from ..value import Value
from .catalog import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypeAlias

    from .catalog import Gpu, Server

    Level: TypeAlias = Literal["ok", "note", "warn", "fail"]


class Problem(Value, frozen=True):
    """A problem that is not tied to one value: `source` says where, `message` what, `remedy` what to do."""

    source: str
    message: str
    remedy: str = ""

    def __repr__(self) -> str:
        from .brief import printable

        return f"<Problem {printable(self.source)}: {printable(str(self.message), 120)}>"


class Snapshot(Value, frozen=True):
    """One machine at one point in time, immutable. `time` is in seconds since 1970, `driver` has the keys version and cuda.

    `serving` are the model servers on its GPUs and those that the settings name.
    """

    time: float
    gpus: tuple[Gpu, ...] = ()
    host: Host = Host({})
    driver: Mapping[str, str] = MappingProxyType({})
    problems: tuple[Problem, ...] = ()
    serving: tuple[Server, ...] = ()

    def with_gpus(self, gpus: tuple[Gpu, ...]) -> Snapshot:
        """Return a copy with only these GPUs, and the servers on them."""
        uuids = {part.uuid for gpu in gpus for part in (gpu, *gpu.instances)}
        serving = tuple(one for one in self.serving if not one.gpus or not uuids.isdisjoint(one.gpus))
        return self.replace(gpus=gpus, serving=serving)

    def __hash__(self) -> int:
        return hash((self.time, len(self.gpus)))

    def __repr__(self) -> str:
        from .brief import snapshot_brief

        return snapshot_brief(self)

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks; the renderer is in a higher layer, so it is looked up through the package."""
        import gpulse

        return gpulse.snapshot_html(self)


class Check(Value):
    """The result of one check of `gpulse doctor`: `about` is a word or two, `found` a sentence, `remedy` what to do.

    All of it may be published after masking.
    """

    level: Level
    about: str
    found: str
    remedy: str = ""
