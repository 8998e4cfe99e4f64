"""The rule book: passes every sample to all rules, and knows which alerts are active."""

from __future__ import annotations

from ...model.select import Wanted
from ..events import EventDetector
from .holders import Holders
from .latch import WatchedTime
from .rule import RuleInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from .rule import AlertRule
    from .transition import Transition

    Explain: TypeAlias = Callable[[Event, Snapshot], Mapping[str, float | str]]


class RuleBook:
    """Rules over snapshots in the order of their times. `observe` is for one thread; `active` may be read by any.

    `active` are the alerts that last, oldest first, each with the time at which it fired and how it stands now. `wanted` is what the
    rules have to be shown. A rule that raises an error is told to `failed`, and the others go on. `explain` is asked for more values
    of an alert about a program that hangs, when it fires.
    """

    def __init__(
        self,
        rules: Sequence[AlertRule],
        failed: Callable[[str, Exception], None] | None = None,
        explain: Explain | None = None,
    ) -> None:
        self._rules = tuple(rules)
        self._failed = failed
        self._explain = explain
        self._time = WatchedTime()
        self._holders = Holders()
        self._detector = EventDetector()
        self._active: dict[tuple[str, str, str], Transition] = {}
        self.active: tuple[Transition, ...] = ()
        self.wanted = Wanted(("uuid", "index", "name"))
        for rule in self._rules:
            self.wanted |= rule.wanted

    def resume(self, alerts: Iterable[Transition]) -> list[Transition]:
        """Go on with alerts that were active before a restart; return those that belong to no rule any more."""
        rules = {rule.name: rule for rule in self._rules}
        strange = []
        for alert in alerts:
            if (rule := rules.get(alert.rule)) is None:
                strange.append(alert)
                continue
            rule.resume(alert)
            self._active[alert.key] = alert
        self.active = tuple(self._active.values())
        return strange

    def observe(self, snapshot: Snapshot) -> list[Transition]:
        """Take a sample and return what turned, in the order of the rules."""
        now = self._time.advance(snapshot.time)
        events = self._detector.observe(snapshot)
        sample = RuleInput(snapshot, now, self._holders, events, self._detector.links)
        self._holders.observe(list(sample.gpus.items()), now)
        turned: list[Transition] = []
        for rule in self._rules:
            try:
                turned += rule.observe(sample)
            except Exception as error:
                if self._failed is None:
                    raise
                self._failed(rule.name, error)
        for transition in turned:
            if transition.state == "fire" and self._explain is not None and hangs(transition.event):
                self._add_explanation(transition, snapshot)
            if transition.state == "clear":
                self._active.pop(transition.key, None)
            elif not transition.once:
                self._active[transition.key] = transition
        if turned or self._active:
            self.active = tuple(self._renewed(fired) for fired in self._active.values())
        return turned

    def _add_explanation(self, transition: Transition, snapshot: Snapshot) -> None:
        assert self._explain is not None
        try:
            values = {**transition.event.values, **self._explain(transition.event, snapshot)}
            transition.event = transition.event.replace(values=values)
        except Exception as error:  # the alert is told without it
            if self._failed is None:
                raise
            self._failed(transition.rule, error)

    def _renewed(self, fired: Transition) -> Transition:
        """Return an active alert with what its rule saw last."""
        rule = next((rule for rule in self._rules if rule.name == fired.rule), None)
        standing = None if rule is None else rule.standing(fired.uuid, fired.what)
        return fired if standing is None else fired.renewed(standing)


def hangs(event: Event) -> bool:
    """Return whether an alert is about a program that gets nothing done."""
    return event.kind == "stalled" or event.values.get("verdict") == "hang"
