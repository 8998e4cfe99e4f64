"""Alerts in one object: takes snapshots, and notifies the configured recipients of what they want to know."""

from __future__ import annotations

import os
import time
from collections import deque

from ..analysis.alerts import Desk, Notice, RuleSet, rules_from
from ..errors import ConfigError, GpulseError
from ..model.event import Event, Silence, new_silence
from ..model.identity import GpuIdentities
from ..present.alerts import alert_line, alert_plain
from ..store.alert_file import AlertFile
from .delivery import Callback
from .settings import DeliverySetup, check_keys, deliveries_from, logs, policy_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from ..analysis.alerts import Transition
    from ..analysis.alerts.rule_set import Explain
    from ..model.select import Wanted
    from ..model.snapshot import Snapshot
    from .delivery import Delivery

_RECENT = 200  # transitions that a page which opens later can still be shown


class Alerts:
    """The rules and deliveries of an [alerts] table; raises ConfigError naming what is wrong in it.

    `add` is for one thread; all else may be used by any. `say` is given lines for people: each transition, unless `log` is false, and
    the first failure of each delivery; it is called in threads of deliveries. Nothing waits for any of them. `explain` tells more of a
    program that hangs. `link` is the address of the page. Without `deliver` nobody is told. Close it when done.
    """

    def __init__(
        self,
        table: Mapping[str, Any],
        say: Callable[[str], None],
        *,
        host: str | None = None,
        explain: Explain | None = None,
        link: str = "",
        deliver: bool = True,
    ) -> None:
        if not isinstance(table, dict):
            raise ConfigError("alerts is not a table;", "put its keys under [alerts].")
        check_keys(table)
        rules = rules_from(table)
        self.rules = tuple(rule.name for rule in rules)
        self._say = say
        self._said: set[str] = set()
        self.gpus = GpuIdentities()  # the GPUs of this machine, remembered from before a restart
        self._rule_set = RuleSet(rules, self._rule_failed, explain)
        self._desk = Desk(policy_from(table))
        self._recent: deque[Transition] = deque(maxlen=_RECENT)
        host = os.uname().nodename if host is None else host
        setup = DeliverySetup(table, self.rules, host, link)
        self.deliveries: list[Delivery] = deliveries_from(table, setup) if deliver else []
        self._log = (
            Callback(lambda notice: say(alert_line(notice.alerts[0])), "log") if deliver and logs(table) else None
        )
        self._refreshed = float("-inf")
        self._decided: list[Event] = []
        self._file = AlertFile()
        for delivery in self._all():
            delivery.say = say
            delivery.start()

    @property
    def wanted(self) -> Wanted:
        """What the rules have to be shown."""
        return self._rule_set.wanted

    @property
    def active(self) -> tuple[Transition, ...]:
        """The alerts that last, oldest first."""
        return self._rule_set.active

    @property
    def recent(self) -> tuple[Transition, ...]:
        """The last transitions, oldest first."""
        return tuple(self._recent.copy())

    def resume(self, file: AlertFile) -> None:
        """Go on where another server has ended, before the first sample: what people decided and were told is in a file."""
        self._file = file
        self._guarded(self._take_over)

    def add(self, snapshot: Snapshot) -> list[Transition]:
        """Take a sample, hand on what turned and return it; never waits for a delivery and never raises."""
        snapshot, now = self.gpus.recognized(snapshot), snapshot.time
        if self._file.changed:
            self._guarded(lambda: self._read_decisions(now))
        turned = self._rule_set.observe(snapshot)
        self._recent.extend(turned)
        for transition in turned if self._log is not None else ():
            assert self._log is not None
            self._log.put(Notice(transition.state, now, (transition,)))
        self._send(self._desk.take(turned, self._rule_set.active, now))
        self._refresh(now)
        if self._desk.changed or self.gpus.changed:
            self._desk.changed = self.gpus.changed = False
            self._guarded(self._save)
        return turned

    def decided(self) -> list[Event]:
        """Return what people have decided since it was last asked, for the history."""
        found, self._decided = self._decided, []
        return found

    def standing(self, alert: Transition, now: float) -> dict[str, Any]:
        """Return what people decided about an active alert: `acknowledged`, `silenced`, `told`."""
        return self._desk.standing(alert, now)

    def to_plain(self, now: float) -> dict[str, Any]:
        """Return active alerts and silences as JSON takes them."""
        alerts = [alert_plain(alert) | self.standing(alert, now) for alert in self.active]
        return {"alerts": alerts, "silences": [one.to_plain() for one in self._desk.silences if one.until > now]}

    def silence(
        self, by: str, seconds: float, rule: str = "", gpus: Iterable[str] = (), user: str = "", reason: str = ""
    ) -> Silence:
        """Have nobody told of some alerts for a while, from the next sample on; raises GpulseError for what is no silence."""
        made = new_silence(by, seconds, self.rules, rule=rule, gpus=gpus, user=user, reason=reason)
        self._file.add_silence(made)
        return made

    def unsilence(self, id: str, by: str) -> None:
        """End a silence; raises GpulseError for one that is not known."""
        self._file.end_silence(id, by)

    def acknowledge(self, ids: Sequence[str], by: str) -> None:
        """Have people not told again of some active alerts; raises GpulseError for one that is not known."""
        known = {alert.id for alert in self.active}
        if missing := [id for id in ids if id not in known]:
            raise GpulseError(f"no alert with the id {missing[0][:20]!r} is active.")
        self._file.acknowledge(ids, by)

    def close(self, deadline: float = 5.0) -> bool:
        """Deliver pending messages within `deadline` seconds; return False if some could not be delivered."""
        until = time.monotonic() + deadline
        self._send(self._desk.flush(time.time()))
        self._guarded(self._save)
        self._file.disown()
        for delivery in self._all():
            delivery.close()
        done = [delivery.end(until) for delivery in self._all()]
        return all(done)

    def _all(self) -> list[Delivery]:
        return [*self.deliveries, *([] if self._log is None else [self._log])]

    def _send(self, notices: Iterable[Notice]) -> None:
        for notice in notices:
            for delivery in self.deliveries if notice.alerts else ():
                delivery.put(notice)

    def _refresh(self, now: float) -> None:
        """Tell those again who forget what they are not told of."""
        wanting = [delivery for delivery in self.deliveries if delivery.refresh]
        if not wanting or 0 <= now - self._refreshed < min(delivery.refresh for delivery in wanting):
            return
        self._refreshed = now
        if told := self._desk.told():
            for delivery in wanting:
                delivery.put(Notice("refresh", now, told, len(told)))

    def _take_over(self) -> None:
        self._file.own()
        document = self._file.read()
        rows, gpus = document.get("active"), document.get("gpus")
        self.gpus.remember(gpus)
        strange = self._rule_set.resume(self._desk.restore(rows if isinstance(rows, list) else ()), gpus)
        self._desk.forget(strange)
        self._read_decisions(time.time())

    def _read_decisions(self, now: float) -> None:
        """Take over what others have written into the file; the server that owns it answers with events."""
        document = self._file.read()
        self._desk.silences = tuple(self._file.silences(document, now))
        if not self._file.owned or not self._file.has_news(document):
            return
        taken = self._file.take_news()
        for silence, by in taken.begun:
            self._decided.append(silence.event("alert-silenced", silence.since, by))
        for silence, by in taken.ended:
            self._decided.append(silence.event("alert-unsilenced", now, by))
        for id, by in taken.acknowledged:
            if (notice := self._desk.acknowledge(id, by, now)) is not None:
                self._send([notice])
                event = notice.alerts[0].event
                values: dict[str, float | str] = {"by": by, "rule": event.rule, "id": id}
                self._decided.append(Event(now, "alert-acknowledged", event.gpus, uuids=event.uuids, values=values))

    def _save(self) -> None:
        if self._file.owned:
            self._file.save(self._desk.to_plain(), self.gpus.to_plain())

    def _guarded(self, action: Callable[[], object]) -> None:
        """Do something with the file; without it alerts are still told, perhaps twice after a restart."""
        try:
            action()
        except GpulseError as error:
            if str(error) not in self._said:
                self._said.add(str(error))
                self._say(f"alerts: {error}")

    def _rule_failed(self, name: str, error: Exception) -> None:
        if name not in self._said:
            self._said.add(name)
            self._say(f"alerts: the rule {name} failed: {type(error).__name__}: {error} (reported once).")
