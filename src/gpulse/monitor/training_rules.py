"""The rules that an agent applies to its samples, so that a training says what happens to its GPUs."""

from __future__ import annotations

import os

from ..analysis.alerts import RuleBook, rules_from
from ..analysis.alerts.diagnosed import Diagnosed
from ..analysis.alerts.rule import duration
from ..errors import GpulseError
from ..model.select import Wanted
from ..store.config import config_path, read_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from ..analysis.alerts.book import Explain
    from ..analysis.alerts.rule import Finding, RuleInput
    from ..model.event import Event
    from ..model.snapshot import Snapshot
    from ..model.verdict import Verdict

RULES = ("lost", "xid", "ecc", "throttled", "memory", "leak", "stalled")
_OFTEN = 0.9  # seconds between two samples that the rules are shown: a measured program is sampled ten times per second
_FULL = 98.0  # percent: frameworks keep freed memory, and a healthy training is often above the usual threshold


class Hanging(Diagnosed):
    """A job whose GPUs spin in a collective, told sooner than other verdicts; one GPU cannot show it."""

    settings = {"for": (duration, 120.0), "clear_for": (duration, 120.0)}

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        return super().findings(sample) if len(sample.snapshot.gpus) > 1 else iter(())

    def _calls_for_a_change(self, verdict: Verdict) -> bool:
        return verdict.key == "hang"


class TrainingRules:
    """The rules for a training, with the thresholds of the settings file; for the agent, so that the program pays nothing."""

    def __init__(self, environ: Mapping[str, str] | None = None, explain: Explain | None = None) -> None:
        table, hang = _table(os.environ if environ is None else environ)
        rules = [*rules_from(table), *([Hanging()] if hang else [])]
        self._book = RuleBook(rules, lambda name, error: None, explain)
        self._at = float("-inf")

    @property
    def wanted(self) -> Wanted:
        """What has to be read for the rules; not the command lines of processes, which only tell servers apart."""
        return self._book.wanted.without_commands()

    def observe(self, at: float, snapshot: Snapshot) -> list[Event]:
        """Return the alerts that fired or cleared, one for all GPUs that the same happened to; `at` is a monotonic time."""
        # a sample without process lists, of which there are several per second, would tell the rules of nobody
        if at - self._at < _OFTEN or any(gpu.gaps.get("processes") == "skipped" for gpu in snapshot.gpus):
            return []
        self._at = at
        turned = [transition.event for transition in self._book.observe(snapshot)]
        lost = {event.uuids for event in turned if event.rule == "lost"}
        lost |= {(alert.uuid,) for alert in self._book.active if alert.rule == "lost"}
        return _merged(
            event for event in turned if event.rule != "xid" or event.uuids not in lost
        )  # lost names its XID


def _table(environ: Mapping[str, str]) -> tuple[dict[str, Any], bool]:
    """Return the [alerts] table for a training, and whether hangs are told; without the settings where they are wrong, which other
    commands report."""
    try:
        given = read_config(config_path(environ)).get("alerts", {})
        rules_from(given)
    except (GpulseError, ImportError, AttributeError):
        given = {}
    kept = {"stalled", *given.get("enable", RULES)} - set(given.get("disable", ()))
    table = {name: given[name] for name in RULES if name in given}
    table["memory"] = {"above": _FULL, **table.get("memory", {})}
    return {**table, "enable": [name for name in RULES if name in kept]}, "diagnosis" not in given.get("disable", ())


def _merged(events: Iterable[Event]) -> list[Event]:
    """Return events of the same kind and moment as one, so that a hot room is one line and not one per GPU."""
    found: dict[object, Event] = {}
    for event in events:
        alone = event.process is not None or event.note
        key = (event.rule, event.alert, event.kind, event.reasons, event.value, event.uuids if alone else ())
        first = found.get(key)
        if first is not None:
            event = first.replace(gpus=(*first.gpus, *event.gpus), uuids=(*first.uuids, *event.uuids))
        found[key] = event
    return list(found.values())
