"""`gpulse alerts`: what is active, who is told, and what they do not want to be told of."""

from __future__ import annotations

import os
import sys
import time

from ...errors import GpulseError, UsageError
from ...present.alerts import alert_plain, alert_text
from ...present.cells import moment_text
from ...present.events import silence_parts
from ...present.text import aligned, clean
from ...store.claims import user_name
from ...units import count_text, duration_text, parse_duration
from ..options import DEMO, HELP, JSON, SOURCE, Arguments, Option, Verb, checked_action, words
from ..output import write_json
from ..session import source_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ...analysis.alerts import Desk, Transition
    from ...model.event import Silence
    from ...store.alert_file import AlertFile

ACTIONS = ("list", "test", "silence", "ack")
_WATCHED = 1800.0  # simulated seconds that the rules see of the demo
_STEP = 5.0


def run(arguments: Arguments) -> int:
    """Do one of the four."""
    action, *rest = arguments.words or ["list"]
    checked_action("alerts", action, ACTIONS)
    if rest and action in ("list", "test"):
        raise UsageError(f"alerts: {action} takes no {rest[0]!r};", "leave it out.")
    if action == "test":
        return _test()
    file = _file(arguments)
    if action == "silence":
        return _silence(arguments, file, rest)
    return _acknowledge(file, rest) if action == "ack" else _list(arguments, file)


def _file(arguments: Arguments) -> AlertFile:
    from ...store.alert_file import AlertFile, alert_path, known_alert_path

    if arguments.history:
        return AlertFile(alert_path(arguments.history))
    simulated = source_name(arguments).startswith("demo")
    return _simulated(arguments) if simulated else AlertFile(known_alert_path())


def _simulated(arguments: Arguments) -> AlertFile:
    """Return the alerts of the simulated machine after half an hour, in memory: what is decided about them is gone afterwards."""
    from ...analysis.alerts import Desk, RuleSet, TellingPolicy, rules_from
    from ...recordings.demo import simulated_samples
    from ...store.alert_file import AlertFile

    rules, desk, file = RuleSet(rules_from(_table())), Desk(TellingPolicy(0.0)), AlertFile()
    mixed = source_name(arguments) == "demo:mixed"
    for snapshot in simulated_samples(time.time(), _WATCHED, _STEP, rules.wanted, mixed):
        desk.take(rules.observe(snapshot), rules.active, snapshot.time)
    file.save(desk.to_plain(), [])
    return file


def _table() -> Mapping[str, Any]:
    from ...store.config import config_path, read_config

    table = read_config(config_path(os.environ)).get("alerts", {})
    return table if isinstance(table, dict) else {}


def _list(arguments: Arguments, file: AlertFile) -> int:
    from ...analysis.alerts import Desk

    now, document, desk = time.time(), file.read(), Desk()
    rows = document.get("active")
    active = desk.restore(rows if isinstance(rows, list) else ())
    desk.silences = tuple(file.silences(document, now))
    if arguments.json:
        write_json(alerts_to_plain(desk, active, now, file.watched))
    else:
        sys.stdout.write("\n".join([*alert_lines(desk, active, now), ""]))
    if not file.watched and file.path is not None:
        since = "" if not active else "; this is what the last one left"
        sys.stderr.write(f"gpulse: no `gpulse serve` watches this machine{since}.\n")
    return 0


def _silence(arguments: Arguments, file: AlertFile, words: list[str]) -> int:
    from ...analysis.alerts import rules_from
    from ...model.event import new_silence

    if arguments.end is not None:
        if words:
            raise UsageError("alerts: silence --end takes no rule;", "leave it out.")
        ended = file.end_silence(arguments.end, user_name(os.getuid()))
        sys.stdout.write(f"ended the silence of {silence_text(ended)}\n")
        return 0
    if len(words) > 1:
        raise UsageError(f"alerts: silence takes one rule, not {len(words)};", "leave the rule out for all of them.")
    if not words and not arguments.gpu and not arguments.user and not arguments.all:
        raise UsageError("alerts: silence what?", "Name a rule, --gpu or --user, or say --all.")
    rules = [rule.name for rule in rules_from(_table())]
    given = {"rule": "".join(words), "user": arguments.user or "", "reason": arguments.reason or ""}
    made = new_silence(user_name(os.getuid()), getattr(arguments, "for"), rules, gpus=arguments.gpu or (), **given)
    file.add_silence(made)
    sys.stdout.write(f"{made.id}: silenced {silence_text(made)} until {moment_text(made.until)}\n")
    return 0


def _acknowledge(file: AlertFile, words: list[str]) -> int:
    from ...analysis.alerts import Desk

    rows = file.read().get("active")
    desk = Desk()
    known = [alert.id for alert in desk.restore(rows if isinstance(rows, list) else ())]
    ids = known if words == ["all"] else words
    if not words:
        raise UsageError("alerts: acknowledge which?", "`gpulse alerts list` shows their ids; `all` means every one.")
    if missing := [word for word in ids if word not in known]:
        raise GpulseError(f"no alert with the id {missing[0][:20]!r} is active.", "`gpulse alerts list` shows them.")
    file.acknowledge(ids, user_name(os.getuid()))
    sys.stdout.write(f"acknowledged {count_text(len(ids), 'alert')}\n")
    return 0


def _test() -> int:
    """Send a test message over every delivery of the settings, and say how that went; exit 1 if one failed."""
    from ...analysis.alerts import Notice, Transition, rules_from
    from ...delivery.delivery import reason
    from ...delivery.settings import DeliverySetup, check_keys, deliveries_from
    from ...model.event import Event
    from ...store.config import config_path

    table = _table()
    check_keys(table)
    rules = [rule.name for rule in rules_from(table)]
    found = deliveries_from(table, DeliverySetup(table, rules, os.uname().nodename))
    if not found:
        raise GpulseError(
            f"{config_path(os.environ)} names nobody to tell.", "Add [alerts.webhook] or [alerts.command]."
        )
    now, failed = time.time(), 0
    event = Event(now, "test", note="this is a test message of gpulse", rule="test", alert="fire", severity="info")
    for delivery in found:
        try:
            delivery.deliver(Notice("test", now, (Transition(event, once=True),)))
            said = "ok"
        except Exception as error:  # noqa: BLE001  # whatever it is, the others are tested as well
            failed, said = failed + 1, reason(error)
        sys.stdout.write(f"{delivery.name} {delivery.place}: {said}\n")
        sys.stdout.flush()
    return int(failed > 0)


VERB = Verb(
    "alerts",
    (
        Option("words", value="[ACTION] [RULE|ID …]", many=True, default=(), complete=ACTIONS, open=True,
               help="What to do: list, test (send a test message over every delivery in the settings), silence [RULE] or ack ID "
                    "(default: list)"),
        Option("--gpu", value="LIST", parse=words, many=True, complete="gpus",
               help="Silence only these GPUs: index, range (0-3) or UUID prefix"),
        Option("--user", value="NAME", help="Silence only alerts about this user's processes"),
        Option("--all", help="Silence every rule, GPU and user, for maintenance"),
        Option("--for", value="TIME", default=7200.0, parse=parse_duration, help="How long to silence: 2h, 3d (default: 2h)"),
        Option("--reason", value="TEXT", help="Reason, kept in the history"),
        Option("--end", value="ID", help="End this silence"),
        Option("--history", value="FILE", complete="files", help="History beside which the alerts are kept (default: this machine's)"),
        *(JSON, SOURCE, DEMO, HELP),
    ),
    run,
    (
        ("gpulse alerts", "list active alerts and silences"),
        ("gpulse alerts ack 1fe5d8", "acknowledge an alert: it is not sent again"),
        ("gpulse alerts silence hot --gpu 3 --for 8h --reason 'new fan'", "do not be told that GPU 3 is hot"),
        ("gpulse alerts silence --all --for 2h", "silence everything during maintenance"),
        ("gpulse alerts silence --end 9f3a11", "end a silence"),
        ("gpulse alerts test", "send a test message over every delivery in the settings"),
    ),
)  # fmt: skip


def alert_lines(desk: Desk, active: Sequence[Transition], now: float) -> list[str]:
    """Return the lines of the list."""
    lines = ["No alert is active."] if not active else []
    rows = [_row(desk, alert, now) for alert in active]
    lines += (
        [line.rstrip() for line in aligned([("ID", "SEVERITY", "RULE", "FOR", "", "ALERT"), *rows], left=6)]
        if rows
        else []
    )
    silences = [one for one in desk.silences if one.until > now]
    if silences:
        lines += ["", "Silences:"]
        rows = [(one.id, silence_text(one), f"until {moment_text(one.until)}", _whose(one)) for one in silences]
        lines += [line.rstrip() for line in aligned(rows, left=4)]
    return lines


def _row(desk: Desk, alert: Transition, now: float) -> tuple[str, ...]:
    standing, state = desk.standing(alert, now), ""
    if standing["silenced"] is not None:
        state = "silenced"
    elif standing["acknowledged"] is not None:
        state = f"ack by {clean(str(standing['acknowledged'].get('by')))}"
    lasted = duration_text(max(0.0, now - alert.time))
    return alert.id, alert.severity, clean(alert.rule), lasted, state, alert_text(alert)


def _whose(silence: Silence) -> str:
    return f"by {clean(silence.by)}{f': {clean(silence.reason)}' if silence.reason else ''}"


def silence_text(silence: Silence) -> str:
    """Return which alerts a silence is about: hot of ada on GPU 3."""
    return clean("".join(silence_parts(silence.event("alert-silenced", silence.since))))


def alerts_to_plain(desk: Desk, active: Sequence[Transition], now: float, watched: bool) -> dict[str, Any]:
    """Return the list as JSON takes it; `watched` says whether a server is running that keeps it current."""
    alerts = [alert_plain(alert) | desk.standing(alert, now) for alert in active]
    silences = [one.to_plain() for one in desk.silences if one.until > now]
    return {"schema": 1, "time": now, "watched": watched, "alerts": alerts, "silences": silences}
