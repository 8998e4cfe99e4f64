"""The deliveries of a configuration."""

from __future__ import annotations

import re

from ..analysis.alerts import BUILT_IN, TellingPolicy
from ..analysis.alerts.rule import duration
from ..analysis.alerts.settings import check_name, names, read
from ..analysis.alerts.transition import GROUP_WAIT
from ..errors import ConfigError
from ..model.when import Hours
from ..plugins import missing_extra
from ..store.secret_file import read_secret
from .apprise import PREFIX, AppriseDelivery
from .delivery import LIMIT, Bell, Command
from .post import SHAPES, Webhook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .delivery import Delivery

_OWN = (
    "enable", "disable", "rule", "log", "bell", "webhook", "command", "group_wait", "repeat", "quiet", "maintenance",
    "limit", "link",
)  # fmt: skip
_ANY = ("rules", "clears")
_WEBHOOK = ("url", "url_file", "shape", "headers", "timeout", "retries", *_ANY)
_APPRISE = ("url", "url_file", *_ANY)
_COMMAND = ("run", "timeout", *_ANY)


class DeliverySetup:
    """What all deliveries share: the names of rules they may choose from, this machine and its page."""

    def __init__(self, table: Mapping[str, Any], rules: Iterable[str], host: str = "", link: str = "") -> None:
        self.rules = [*rules]
        self.host = host
        self.link = _link(table.get("link", link))
        self.limit = table.get("limit", LIMIT)
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or not 0 <= self.limit <= 10_000:
            raise ConfigError(f"alerts.limit: {self.limit!r} is not a number of messages per hour;", "0 is no limit.")

    def common(self, table: Mapping[str, Any], where: str, known: Iterable[str]) -> dict[str, Any]:
        """Return what every delivery takes from its table."""
        for key in table:
            check_name(key, known, where, "key")
        rules, clears = names(table, "rules", self.rules, where), _flag(table, "clears", where)
        return {"host": self.host, "link": self.link, "limit": self.limit, "rules": rules, "clears": clears}


def check_keys(table: Mapping[str, Any]) -> None:
    """Raise ConfigError for a key of [alerts] that nobody knows."""
    for key in table:
        check_name(key, (*_OWN, *BUILT_IN), "alerts", "key")


def policy_from(table: Mapping[str, Any]) -> TellingPolicy:
    """Return when people are told, as an [alerts] table says."""
    wait = read(table.get("group_wait", GROUP_WAIT), duration, "alerts.group_wait")
    repeat = read(table.get("repeat", 0), duration, "alerts.repeat")
    if 0 < repeat < 60:
        raise ConfigError("alerts.repeat is shorter than a minute;", 'write repeat = "4h", or 0 for never.')
    return TellingPolicy(wait, repeat, hours_from(table, "quiet", "alerts"), hours_from(table, "maintenance", "alerts"))


def hours_from(table: Mapping[str, Any], key: str, where: str) -> list[Hours]:
    """Return a list of hours of a table; one may stand alone."""
    given = table.get(key, [])
    words = [given] if isinstance(given, str) else given
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{where}.{key} is not a list of hours;", f'write {key} = ["22:00-07:00", "Sat,Sun"].')
    return [read(word, Hours, f"{where}.{key}") for word in words]


def deliveries_from(table: Mapping[str, Any], setup: DeliverySetup) -> list[Delivery]:
    """Return the deliveries of an [alerts] table, not started."""
    found: list[Delivery] = [_webhook(one, setup) for one in _tables(table, "webhook")]
    found += [_command(one, setup) for one in _tables(table, "command")]
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


def _webhook(table: Mapping[str, Any], setup: DeliverySetup) -> Delivery:
    where = "alerts.webhook"
    common = setup.common(table, where, _WEBHOOK)
    url = _url(table, where)
    if url.startswith(PREFIX):
        return _apprise(url.removeprefix(PREFIX), table, common, where)
    shape = table.get("shape", "json")
    check_name(shape, SHAPES, f"{where}.shape", "shape")
    retries = table.get("retries", 3)
    if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= 10:
        raise ConfigError(f"{where}.retries: {retries!r} is not a number from 0 to 10.")
    headers = _headers(table.get("headers", {}), f"{where}.headers")
    return Webhook(url, shape, headers, timeout=_timeout(table, 5.0, where), retries=retries, **common)


def _url(table: Mapping[str, Any], where: str) -> str:
    """Return the address, which may be in a file that others cannot read; messages do not repeat it."""
    path = table.get("url_file")
    if ("url" in table) == (path is not None) or not isinstance(path, (str, type(None))):
        raise ConfigError(f"{where} needs url or url_file, one of them;", 'write url = "https://...".')
    url = table["url"] if path is None else read_secret(path, f"{where}.url_file").strip()
    known = isinstance(url, str) and url.startswith(("http://", "https://", PREFIX))
    if not known or not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError(
            f"{where}.{'url' if path is None else 'url_file: the first line'} is not an http or https address, or apprise:URL;",
            'write url = "https://..." or url = "apprise:slack://...".',
        )
    if not url.startswith(PREFIX) and "@" in url.split("/")[2]:
        raise ConfigError(
            f"{where}.url contains a user name;", 'write headers = { Authorization = "Basic ..." } instead.'
        )
    return str(url)


def _apprise(url: str, table: Mapping[str, Any], common: Mapping[str, Any], where: str) -> AppriseDelivery:
    from importlib.util import find_spec

    if other := [key for key in table if key not in _APPRISE]:
        raise ConfigError(f"{where}.{other[0]} is for http and https addresses, not for apprise:URL;", "remove it.")
    if not re.match(r"[a-z][a-z0-9+.-]*://.", url, re.IGNORECASE):
        raise ConfigError(
            f"{where}: what follows apprise: is not a URL of Apprise;", 'write url = "apprise:slack://...".'
        )
    if find_spec("apprise") is None:  # not loaded before there is something to send
        raise missing_extra(f"{where} with apprise:URL", "apprise", "alerts")
    return AppriseDelivery(url, **common)


def _command(table: Mapping[str, Any], setup: DeliverySetup) -> Command:
    where = "alerts.command"
    common = setup.common(table, where, _COMMAND)
    run = table.get("run")
    if not isinstance(run, list) or not run or not all(isinstance(word, str) and "\0" not in word for word in run):
        raise ConfigError(f"{where}.run is not a list of words;", 'write run = ["notify-send", "gpulse"].')
    return Command(run, timeout=_timeout(table, 10.0, where), **common)


def _link(value: Any) -> str:
    if not isinstance(value, str) or (value and not value.startswith(("http://", "https://"))):
        raise ConfigError(
            f"alerts.link: {value!r} is not an address;", 'write link = "https://gpu-box.example.org/gpulse/".'
        )
    return value


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
