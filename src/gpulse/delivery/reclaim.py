"""Warnings about memory held for nothing: to the owner on their terminals, to people by mail and over a webhook."""

from __future__ import annotations

import os
import pwd
import stat
import threading

from ..analysis.alerts import Notice, Transition
from ..present.cells import moment_text, zone_text
from ..present.events import holding_text
from ..present.text import clean
from ..store.claims import user_name
from .delivery import Failed
from .mail import Mailer
from .post import Webhook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ..analysis.reclaim import ReclaimPolicy, ReclaimStep
    from ..model.event import Event

_TERMINALS = "/dev/pts"


def write_to(user: str, text: str, folder: str = _TERMINALS) -> Iterator[str]:
    """Write to the terminals of a user who allows it, as write(1) does; yield the names of those that took it."""
    try:
        uid, names = pwd.getpwnam(user).pw_uid, sorted(os.listdir(folder))
    except (KeyError, OSError):
        return
    line = f"\n\a{text}\n".replace("\n", "\r\n").encode()
    for name in names:
        path = os.path.join(folder, name)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            found = os.fstat(handle)
            # without S_IWGRP the user has said `mesg n`
            if found.st_uid == uid and found.st_mode & stat.S_IWGRP and os.isatty(handle):
                os.write(handle, line)
                yield f"terminal {name}"
        except OSError:
            pass  # a terminal that is stopped or gone
        finally:
            os.close(handle)


class ReclaimDesk:
    """Tells people what is held for nothing, as a table [reclaim] says, with the table [mail] under `mail`."""

    def __init__(self, settings: Mapping[str, Any], policy: ReclaimPolicy) -> None:
        self._policy = policy
        self._terminal = settings.get("terminal", True)
        self._owner_mail = settings.get("owner_mail") or ""  # a form such as {user}@example.org
        self._admins = settings.get("admins") or []
        self._mailer = Mailer(settings.get("mail") or {}) if self._owner_mail or self._admins else None
        hook, shape = settings.get("webhook"), settings.get("shape") or "slack"
        self._webhook = Webhook(hook, shape, host=os.uname().nodename, retries=1) if hook else None

    def tell(self, step: ReclaimStep, now: float) -> tuple[bool, str, Event | None]:
        """Warn the owner or tell the administrators; return whether anybody was reached, a line about it, and what happened."""
        kind = "reclaim-warned" if step.action == "warn" else "reclaim-reported"
        event = reclaim_event(step, kind, now, [])
        notice = Notice("fire", now, (Transition(event.replace(rule="reclaim", alert="fire"), once=True),))
        text, subject = self._text(step, now), f"{os.uname().nodename}: {holding_text(step)}"
        user = step.holding.process.user or ""
        if step.action == "warn":
            who, told = f"warned {clean(user)}", [*write_to(user, text)] if self._terminal else []
            to = [self._owner_mail.replace("{user}", user)] if self._owner_mail else []
        else:
            who, told, to = "told the administrators", [], self._admins
        wrong: list[str] = []
        if to and self._mailer is not None:
            try:
                self._mailer.send(to, subject, f"{text}\n", stopping=threading.Event())
                told.append(f"mail to {', '.join(to)}")
            except (Failed, ValueError) as error:
                wrong.append(f"mail: {error}")
        if self._webhook is not None:
            try:
                self._webhook.deliver(notice)
                told.append(f"webhook {self._webhook.place}")
            except Failed as error:
                wrong.append(f"webhook: {error}")
        said = f"{who} ({', '.join(told)})" if told else "nobody could be reached, so nothing follows"
        line = "; ".join([f"{holding_text(step)}: {said}", *wrong])
        return bool(told), line, reclaim_event(step, kind, now, told)

    def _text(self, step: ReclaimStep, now: float) -> str:
        lines = [f"{os.uname().nodename}: {holding_text(step)}.", "Please end it if it is not needed any more."]
        if self._policy.terminate:
            end = now + self._policy.grace - (0.0 if step.action == "warn" else self._policy.admin_after)
            lines.append(f"Otherwise it is ended after {moment_text(end)} {zone_text(end)}, unless it works again.")
        return "\n".join(lines)


def reclaim_event(step: ReclaimStep, kind: str, now: float, told: Sequence[str]) -> Event:
    """Return what was done about a process: who did it, why and how long it was idle."""
    event = step.holding.event(now, kind, step.idle)
    by = user_name(os.geteuid())
    return event.replace(values={**event.values, "by": by, "told": ", ".join(told)})
