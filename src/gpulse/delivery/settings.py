"""The deliveries of a configuration."""

from __future__ import annotations

from ..analysis.alerts import BUILT_IN
from ..analysis.alerts.rule import duration
from ..analysis.alerts.settings import check_name, names, read
from ..errors import ConfigError
from .bell import Bell
from .command import Command
from .webhook import SHAPES, Webhook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .delivery import Delivery

_OWN = ("enable", "disable", "rule", "log", "bell", "webhook", "command")
_WEBHOOK = ("url", "shape", "headers", "timeout", "retries", "rules", "clears")
_COMMAND = ("run", "timeout", "rules", "clears")


def check_keys(table: Mapping[str, Any]) -> None:
    """Raise ConfigError for a key of [alerts] that nobody knows."""
    for key in table:
        check_name(key, (*_OWN, *BUILT_IN), "alerts", "key")


def deliveries_from(table: Mapping[str, Any], rules: Iterable[str], host: str) -> list[Delivery]:
    """Return the deliveries of an [alerts] table, not started; `rules` are the names they may choose from."""
    known = [*rules]
    found: list[Delivery] = [_webhook(one, known, host) for one in _tables(table, "webhook")]
    found += [_command(one, known, host) for one in _tables(table, "command")]
    bell = table.get("bell", False)
    if not isinstance(bell, (bool, str)):
        raise ConfigError(f"alerts.bell: {bell!r} is neither true nor a terminal;", 'write true or "/dev/tty".')
    if bell:
        found.append(Bell("/dev/tty" if bell is True else bell))
    return found


def logs(table: Mapping[str, Any]) -> bool:
    """Tell whether each transition is to be said as a line, too."""
    return _flag(table, "log", "alerts")


def _tables(table: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return one table or several: [alerts.webhook] and [[alerts.webhook]] are both fine."""
    given = table.get(key, [])
    found = [given] if isinstance(given, dict) else given
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ConfigError(f"alerts.{key} is not a table;", f"put its keys under [alerts.{key}].")
    return found


def _webhook(table: Mapping[str, Any], known: list[str], host: str) -> Webhook:
    where = "alerts.webhook"
    for key in table:
        check_name(key, _WEBHOOK, where, "key")
    url = table.get("url")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")) or not url.isascii() or " " in url:
        raise ConfigError(f"{where}.url is not an http or https address;", 'write url = "https://...".')
    if "@" in url.split("/")[2]:
        raise ConfigError(
            f"{where}.url contains a user name;", 'write headers = { Authorization = "Basic ..." } instead.'
        )
    shape = table.get("shape", "json")
    check_name(shape, SHAPES, f"{where}.shape", "shape")
    retries = table.get("retries", 3)
    if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= 10:
        raise ConfigError(f"{where}.retries: {retries!r} is not a number from 0 to 10.")
    return Webhook(
        url,
        shape,
        _headers(table.get("headers", {}), f"{where}.headers"),
        host=host,
        timeout=_timeout(table, 5.0, where),
        retries=retries,
        rules=names(table, "rules", known, where),
        clears=_flag(table, "clears", where),
    )


def _command(table: Mapping[str, Any], known: list[str], host: str) -> Command:
    where = "alerts.command"
    for key in table:
        check_name(key, _COMMAND, where, "key")
    run = table.get("run")
    if not isinstance(run, list) or not run or not all(isinstance(word, str) and "\0" not in word for word in run):
        raise ConfigError(f"{where}.run is not a list of words;", 'write run = ["notify-send", "gpulse"].')
    rules = names(table, "rules", known, where)
    return Command(
        run, host=host, timeout=_timeout(table, 10.0, where), rules=rules, clears=_flag(table, "clears", where)
    )


def _headers(value: Any, where: str) -> dict[str, str]:
    words = [*value.keys(), *value.values()] if isinstance(value, dict) else [None]
    if not all(isinstance(word, str) and word.isascii() and word.isprintable() for word in words):
        # the values are not repeated: they are often secrets
        raise ConfigError(
            f"{where} is not a table of plain texts;", 'write headers = { Authorization = "Bearer ..." }.'
        )
    return dict(value)


def _timeout(table: Mapping[str, Any], default: float, where: str) -> float:
    seconds: float = read(table.get("timeout", default), duration, f"{where}.timeout")
    if not 0 < seconds <= 60:
        raise ConfigError(f"{where}.timeout is not between 0 and 60 s.")
    return seconds


def _flag(table: Mapping[str, Any], key: str, where: str) -> bool:
    given = table.get(key, True)
    if not isinstance(given, bool):
        raise ConfigError(f"{where}.{key}: {given!r} is neither true nor false.")
    return given
