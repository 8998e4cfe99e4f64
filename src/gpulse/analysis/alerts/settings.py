"""The rules of a configuration: built-in ones with their thresholds, and those that users write for any metric."""

from __future__ import annotations

from ...errors import ConfigError, GpulseError
from ...model.catalog import GPU_METRICS, HOST_METRICS
from ...model.condition import named
from ...model.event import Event
from ...model.metric import Number
from ...model.select import Wanted, did_you_mean, is_called, metric_named
from ...units import BYTES, BYTES_PER_SECOND
from . import faults, work
from .rule import Finding, Lasting, duration, number, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ...model.catalog import Gpu
    from ...model.metric import Metric
    from .rule import AlertRule, RuleInput

_CLASSES: tuple[type[AlertRule], ...] = (
    faults.Lost, faults.XidReported, faults.Ecc, faults.Throttled, faults.Hot, faults.PcieDegraded, faults.LinkErrors,
    faults.NvlinkDown, faults.FabricNotReady, faults.PortFlaps, faults.SlowerThanPeers, faults.MemoryNearlyFull, faults.Leak,
    work.IdleAllocation, work.UnusedAllocation, work.Stalled, work.JobFinished, work.GpuFree, work.ServingQueue,
    work.ServingFirstToken, work.ServingErrors, work.ServingStuck, work.Diagnosed,
)  # fmt: skip
BUILT_IN: dict[str, type[AlertRule]] = {rule.name: rule for rule in _CLASSES}
ON_REQUEST = frozenset({work.Diagnosed.name, work.Stalled.name})  # only with a table of their own or in `enable`
SEVERITIES = ("info", "warn", "critical")
_OWN = ("name", "metric", "above", "below", "clear", "for", "clear_for", "gpu", "severity")


def rules_from(table: Mapping[str, Any]) -> list[AlertRule]:
    """Return the rules of an [alerts] table, of which `enable`, `disable`, `rule` and the tables of rules are looked at.

    Raises ConfigError naming the key that is wrong.
    """
    usual = set(BUILT_IN) - {name for name in ON_REQUEST if name not in table}
    chosen = set(names(table, "enable", BUILT_IN)) if "enable" in table else usual
    chosen -= set(names(table, "disable", BUILT_IN))
    found: list[AlertRule] = []
    for name, kind in BUILT_IN.items():
        given = _given(table.get(name, {}), kind, f"alerts.{name}")
        if name in chosen:
            found.append(kind(given))
    written = table.get("rule", [])
    if not isinstance(written, list) or not all(isinstance(one, dict) for one in written):
        raise ConfigError("alerts.rule is not a list of tables;", "write each as [[alerts.rule]].")
    for at, one in enumerate(written):
        rule = _own(one, f"alerts.rule {one.get('name', at + 1)}")
        if rule.name in BUILT_IN or any(rule.name == other.name for other in found):
            raise ConfigError(f"alerts.rule: there is more than one rule {rule.name!r};", "give each a unique name.")
        found.append(rule)
    return found


def names(table: Mapping[str, Any], key: str, known: Iterable[str], where: str = "alerts") -> list[str]:
    """Return a list of words of a table, each of which must be known."""
    given = table.get(key, [])
    if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
        raise ConfigError(f"{where}.{key} is not a list of names;", f'write it as {key} = ["hot", "xid"].')
    found = [_rule_named(word, known) for word in given]
    for word in found:
        check_name(word, known, f"{where}.{key}", "rule")
    return found


def _rule_named(word: str, known: Iterable[str]) -> str:
    """Return the rule that a word means: its name, or that of a condition which one rule reports, such as memory_leak."""
    rules = {one.alert for one in named(word)} - {""}
    return rules.pop() if word not in known and len(rules) == 1 else word


def check_name(word: Any, known: Iterable[str], where: str, what: str) -> None:
    """Raise ConfigError with a similar name if a word is unknown."""
    words = list(known)
    if word not in words:
        hint = did_you_mean(str(word), words)
        raise ConfigError(f"{where}: unknown {what} {word!r}{hint}", f"use one of {', '.join(words)}.")


def read(value: Any, reader: Callable[[Any], Any], where: str) -> Any:
    """Return what a reader makes of a value; raise ConfigError naming the key."""
    try:
        return reader(value)
    except ValueError as error:
        raise ConfigError(f"{where}: {value!r} is not {error}.") from None
    except GpulseError as error:
        raise ConfigError(f"{where}: {error.message}", error.remedy) from None


def _given(table: Any, kind: type[AlertRule], where: str) -> dict[str, float]:
    if not isinstance(table, dict):
        raise ConfigError(f"{where} is not a table;", f"put its keys under [{where}].")
    given = {}
    for key, value in table.items():
        check_name(key, kind.settings, where, "key")
        given[key] = read(value, kind.settings[key][0], f"{where}.{key}")
    return given


def _own(table: Mapping[str, Any], where: str) -> Threshold:
    for key in table:
        check_name(key, _OWN, where, "key")
    for key in ("name", "metric"):
        if not isinstance(table.get(key), str) or not table[key].strip():
            raise ConfigError(f"{where}: {key} is missing;", f'write {key} = "...".')
    metric, host = _metric(table["metric"], f"{where}.metric")
    sides = [side for side in ("above", "below") if side in table]
    if len(sides) != 1:
        raise ConfigError(f"{where}: either above or below is required;", "write above = 95 or below = 5.")
    amount = size if metric.unit in (BYTES, BYTES_PER_SECOND) else number
    bound = read(table[sides[0]], amount, f"{where}.{sides[0]}")
    clear = read(table["clear"], amount, f"{where}.clear") if "clear" in table else None
    above = sides[0] == "above"
    if clear is not None and (clear > bound if above else clear < bound):
        raise ConfigError(f"{where}.clear is on the wrong side of {sides[0]};", "the alert could never clear.")
    severity = table.get("severity", "warn")
    check_name(severity, SEVERITIES, f"{where}.severity", "severity")
    times = {key: read(table[key], duration, f"{where}.{key}") for key in ("for", "clear_for") if key in table}
    gpus = _gpu_words(table.get("gpu", []), f"{where}.gpu")
    if host and gpus:
        raise ConfigError(f"{where}.gpu: {table['metric']} is a metric of the host, not of a GPU;", "remove gpu.")
    name = table["name"].strip()
    return Threshold(name, metric, bound, times, above=above, clear=clear, host=host, gpus=gpus, severity=severity)


def _metric(name: str, where: str) -> tuple[Metric, bool]:
    host = name.startswith("host.")
    try:
        metric = metric_named(name.removeprefix("host."), HOST_METRICS if host else GPU_METRICS)
    except GpulseError as error:
        raise ConfigError(f"{where}: {error.message}", error.remedy) from None
    if not isinstance(metric, Number) or metric.kind == "identity":
        raise ConfigError(f"{where}: {name} is not a changing number;", "see `gpulse metrics`.")
    return metric, host


def _gpu_words(value: Any, where: str) -> list[str]:
    words = [value] if isinstance(value, (str, int)) and not isinstance(value, bool) else value
    if not isinstance(words, list) or not all(isinstance(word, (str, int)) for word in words):
        raise ConfigError(
            f"{where}: {value!r} is not a list of GPUs;", 'write gpu = "0-3", gpu = 2 or gpu = ["0", "GPU-1a2b"].'
        )
    return [part.strip() for word in words for part in str(word).split(",") if part.strip()]


class Threshold(Lasting):
    """A metric of GPUs, or with `host` of the machine, that is beyond `bound`; it is well again at `clear` or on the other side.

    `gpus` are words for GPUs, empty for all. Which they mean is settled when a GPU is first seen: a new number changes nothing.
    """

    def __init__(
        self,
        name: str,
        metric: Metric,
        bound: float,
        given: Mapping[str, float],
        *,
        above: bool = True,
        clear: float | None = None,
        host: bool = False,
        gpus: Sequence[str] = (),
        severity: str = "warn",
    ) -> None:
        super().__init__(given)
        self.name = name
        self.severity = severity
        self._metric = metric
        self._bound = bound
        self._above = above
        self._clear = clear
        self._host = host
        self._words = tuple(gpus)
        self._chosen: dict[str, bool] = {}
        self.wanted = Wanted(host=(metric.key,)) if host else Wanted(gpu=(metric.key,))

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        if self._host:
            yield self._finding(sample, "", sample.snapshot.host.get(self._metric.key))
            return
        for uuid, gpu in sample.all():
            if uuid not in self._chosen:  # a number is that of a whole GPU; an instance may be named by its UUID
                whole, words = sample.whole(uuid), self._words
                named = any(is_called(one, word) for one in (gpu, whole) for word in words)
                self._chosen[uuid] = not words or named or any(_is_numbered(whole, word) for word in words)
            if self._chosen[uuid]:
                yield self._finding(sample, uuid, gpu.get(self._metric.key))

    def _finding(self, sample: RuleInput, uuid: str, value: object) -> Finding:
        if not isinstance(value, (int, float)):
            return Finding(uuid, None)
        holds = value > self._bound if self._above else value < self._bound
        calm = not holds
        if self._clear is not None:
            calm = value <= self._clear if self._above else value >= self._clear
        values = {self._metric.key: value, "above" if self._above else "below": self._bound, "metric": self._metric.key}
        event = Event(sample.snapshot.time, "threshold") if not uuid else sample.event("threshold", uuid)
        event = event.replace(value=value, values=values, note=sample.name(uuid) if uuid else "")
        return Finding(uuid, holds, calm, event=event)


def _is_numbered(gpu: Gpu, word: str) -> bool:
    first, dash, last = word.partition("-")
    if gpu.index is None or not first.isdecimal() or (dash and not last.isdecimal()):
        return False
    return int(first) <= gpu.index <= int(last or first)
