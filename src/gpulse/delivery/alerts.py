"""Alerts in one object: takes snapshots and notifies the configured recipients."""

from __future__ import annotations

import os
import time
from collections import deque

from ..analysis.alerts import RuleBook, rules_from
from ..errors import ConfigError
from ..present.alerts import alert_line
from .bell import Callback
from .settings import check_keys, deliveries_from, logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..analysis.alerts import Transition
    from ..analysis.alerts.book import Explain
    from ..model.select import Wanted
    from ..model.snapshot import Snapshot
    from .delivery import Delivery

_RECENT = 200  # transitions that a page which opens later can still be shown


class Alerts:
    """The rules and deliveries of an [alerts] table; raises ConfigError naming what is wrong in it.

    `add` is for one thread; `active`, `recent` and `wanted` may be read by any. `say` is given lines for people: each transition,
    unless `log` is false, and the first failure of each delivery; it is called in threads of deliveries. `page` is called with
    each transition in a thread of its own. Nothing waits for any of them. `explain` tells more of a
    program that hangs. Close it when done.
    """

    def __init__(
        self,
        table: Mapping[str, Any],
        say: Callable[[str], None],
        *,
        page: Callable[[Transition], None] | None = None,
        host: str | None = None,
        explain: Explain | None = None,
    ) -> None:
        if not isinstance(table, dict):
            raise ConfigError("alerts is not a table;", "put its keys under [alerts].")
        check_keys(table)
        rules = rules_from(table)
        self._say = say
        self._told: set[str] = set()
        self._book = RuleBook(rules, self._rule_failed, explain)
        self._recent: deque[Transition] = deque(maxlen=_RECENT)
        names = [rule.name for rule in rules]
        host = os.uname().nodename if host is None else host
        self.deliveries: list[Delivery] = deliveries_from(table, names, host)
        if logs(table):
            self.deliveries.append(Callback(lambda transition: say(alert_line(transition)), "log"))
        if page is not None:
            self.deliveries.append(Callback(page))
        for delivery in self.deliveries:
            delivery.say = say
            delivery.start()

    @property
    def wanted(self) -> Wanted:
        """What the rules have to be shown."""
        return self._book.wanted

    @property
    def active(self) -> tuple[Transition, ...]:
        """The alerts that last, oldest first."""
        return self._book.active

    @property
    def recent(self) -> tuple[Transition, ...]:
        """The last transitions, oldest first."""
        return tuple(self._recent.copy())

    def add(self, snapshot: Snapshot) -> list[Transition]:
        """Take a sample, hand on what turned and return it; never waits for a delivery and never raises."""
        turned = self._book.observe(snapshot)
        for transition in turned:
            self._recent.append(transition)
            for delivery in self.deliveries:
                delivery.put(transition)
        return turned

    def close(self, deadline: float = 5.0) -> bool:
        """Deliver pending transitions within `deadline` seconds; return False if some could not be delivered."""
        until = time.monotonic() + deadline
        for delivery in self.deliveries:
            delivery.close()
        done = [delivery.end(until) for delivery in self.deliveries]
        return all(done)

    def _rule_failed(self, name: str, error: Exception) -> None:
        if name not in self._told:
            self._told.add(name)
            self._say(f"alerts: the rule {name} failed: {type(error).__name__}: {error} (reported once).")
