"""Metrics as typed descriptors: read on the class, they are the catalog entry; read on an instance, the value."""

from __future__ import annotations

from types import MappingProxyType

from ..units import NONE, Unit

TYPE_CHECKING = False  # importing typing would cost every command 9 ms
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Generic, Literal, TypeAlias, TypeVar, overload

    from typing_extensions import Self

    Gap: TypeAlias = Literal["unsupported", "denied", "failed", "lost", "timeout", "asleep", "skipped", "pending"]
    Kind: TypeAlias = Literal["gauge", "counter", "state", "identity"]
    Is = TypeVar("Is")
    Cost: TypeAlias = Literal["static", "fast", "slow"]
    Value: TypeAlias = float | int | str | bool | tuple[float, ...] | tuple[str, ...]

MOST = 1e18  # no metric exceeds this: sums over a year stay finite
GAPS: tuple[Gap, ...] = ("unsupported", "denied", "failed", "lost", "timeout", "asleep", "skipped", "pending")


class Metric:
    """One metric, declared once. Everything a surface shows about it is derived from this declaration.

    `kind`: a gauge varies, a counter only grows, a state is a word, an identity never changes.
    `cost`: static values are read once, fast ones with every sample, slow ones every few seconds.
    `low` and `high` are the plausible range: a value outside is dropped (model/plausible.py). `warn` and `critical` set its color.
    `window` is the time that one value of a rate, share or mean covers; empty for what is read at one moment.
    `whole` is the key of what it is a part of, `limit` that of what bounds it: charts end at the one and mark the other.
    `smi`, `dcgm` and `otel` are the names other tools use; the first of `smi` is nvidia-smi's current name.
    `presets` are words, explained at the end of the catalog, for the surfaces that it belongs to, apart from those that show every metric.
    """

    __slots__ = (
        "cost", "critical", "dcgm", "group", "help", "high", "key", "kind", "limit", "low", "otel", "presets", "short", "smi", "title",
        "unit", "warn", "whole", "window",
    )  # fmt: skip

    def __init__(
        self,
        title: str,
        help: str,
        *,
        unit: Unit = NONE,
        kind: Kind = "gauge",
        cost: Cost = "fast",
        group: str = "",
        short: str = "",
        smi: tuple[str, ...] = (),
        dcgm: str = "",
        otel: str = "",
        low: float = 0.0,
        high: float = MOST,
        warn: float | None = None,
        critical: float | None = None,
        window: str = "",
        presets: str = "",
        whole: str = "",
        limit: str = "",
    ) -> None:
        self.key = ""
        self.title = title
        self.help = help
        self.unit = unit
        self.kind = kind
        self.cost = "static" if kind == "identity" else cost
        self.group = group
        self.short = short or title
        self.smi = smi
        self.dcgm = dcgm
        self.otel = otel
        self.low = low
        self.high = min(high, MOST)
        self.warn = warn
        self.critical = critical
        self.window = window
        self.presets = presets
        self.whole = whole
        self.limit = limit

    def __set_name__(self, owner: type[Reading], name: str) -> None:
        self.key = name

    def __get__(self, reading: Any, owner: Any) -> Any:
        return (
            self if reading is None else reading._values.get(self.key)
        )  # `get`, without a call: a screen reads 2,000 a second

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key}>"


if TYPE_CHECKING:

    class _Typed(Metric, Generic[Is]):
        @overload
        def __get__(self, reading: None, owner: Any) -> Self: ...
        @overload
        def __get__(self, reading: Reading, owner: Any) -> Is | None: ...
        def __get__(self, reading: Reading | None, owner: Any) -> Any: ...

else:

    class _Typed(Metric):
        __slots__ = ()

        def __class_getitem__(cls, kind):
            return cls


class Number(_Typed[float]):
    """A metric whose value is a number, or None if it is missing."""

    __slots__ = ()


class Text(_Typed[str]):
    """A metric whose value is text. The text is untrusted: processes and firmware can put anything there."""

    __slots__ = ()


class Flag(_Typed[bool]):
    """A metric that is true or false, or None when unknown."""

    __slots__ = ()


class Words(_Typed["tuple[str, ...]"]):
    """A metric that is a list of words; an empty tuple means that none applies, None that it is unknown."""

    __slots__ = ()


class Numbers(_Typed["tuple[float, ...]"]):
    """A metric that is a list of numbers, for example one per core."""

    __slots__ = ()


class Reading:
    """The values of one object at one point in time, immutable. A missing metric is None, and `gaps` holds the reason.

    Subclasses declare their metrics as class attributes; `metrics()` yields them in order of declaration.
    """

    __slots__ = ("_values", "gaps")
    gaps: Mapping[str, Gap]
    _values: Mapping[str, Value]

    def __init__(self, values: Mapping[str, Value], gaps: Mapping[str, Gap] = MappingProxyType({})) -> None:
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "gaps", gaps)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; use replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable")

    def get(self, key: str) -> Value | None:
        """Return the value of a catalog key, or None."""
        return self._values.get(key)

    def gap(self, key: str) -> Gap | None:
        """Return why a value is missing, or None if it is not; the reason of a key that was not requested is `skipped`."""
        if key in self._values:
            return None
        return self.gaps.get(key, "skipped")

    def items(self) -> Iterable[tuple[str, Value]]:
        """Return the known values with their keys."""
        return self._values.items()

    def replace(self, **values: Value | None) -> Self:
        """Return a copy with some values changed; None removes a value."""
        merged = {key: value for key, value in {**self._values, **values}.items() if value is not None}
        return type(self)(merged, self.gaps)

    @classmethod
    def metrics(cls) -> Iterator[Metric]:
        """Yield the metrics of this class in order of declaration."""
        for base in reversed(cls.__mro__):
            for entry in vars(base).values():
                if isinstance(entry, Metric):
                    yield entry

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, name) == getattr(other, name) for name in self._fields())

    def __hash__(self) -> int:
        return hash((type(self), *sorted(self._values)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self._values)!r})"

    @classmethod
    def _fields(cls) -> Iterator[str]:
        for base in cls.__mro__:
            yield from getattr(base, "__slots__", ())
