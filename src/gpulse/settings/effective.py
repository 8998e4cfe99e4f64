"""Which settings are in effect (option, environment, file, default), what is wrong with them, and a file with all of them."""

from __future__ import annotations

import os
import re

from ..analysis.alerts import BUILT_IN, ON_REQUEST, rules_from
from ..analysis.alerts.rule import duration, size
from ..errors import ConfigError, GpulseError
from ..model.select import did_you_mean
from ..model.snapshot import Check
from ..present.text import masked
from ..store.config import config_path, key_lines, read_config
from ..store.lines import replaced
from ..value import Value
from .table import ENVIRONMENT, TABLES, toml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ..model.serving import Tariff
    from .table import Setting


class Effective(Value):
    """A setting with its value and where that comes from: `origin` is default, file or environment."""

    setting: Setting
    value: Any
    origin: str


def effective(table: str, file: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[Effective]:
    """Yield the settings of a table with their values; wrong ones count as not set (see `complaints`)."""
    given = file.get(table, {})
    given = given if isinstance(given, dict) else {}
    for setting in TABLES[table].values():
        value, origin = setting.default, "default"
        if setting.key in given and (taken := setting.check(given[setting.key])[0]) is not None:
            value, origin = taken, "file"
        text = "" if setting.table == "queue" else environ.get(setting.environ, "")
        if text and (taken := setting.parse(text)[0]) is not None:
            value, origin = taken, "environment"
        yield Effective(setting, value, origin)


def tariff_in_force(environ: Mapping[str, str], given: Mapping[str, Any] | None = None) -> Tariff:
    """Return the prices in force, those `given` before all others; raise ConfigError if the settings are wrong."""
    from ..model.serving import Tariff

    path = config_path(environ)
    prices = {**chosen("cost", read_config(path), environ, path), **(given or {})}
    return Tariff(prices.get("price"), prices.get("gpu_price"), prices.get("carbon"), prices.get("currency", "")[:8])


def effective_environment(environ: Mapping[str, str]) -> Iterator[Effective]:
    """Yield the settings that only the environment has."""
    for setting in ENVIRONMENT:
        text = environ.get(setting.environ, "")
        yield Effective(setting, text or setting.default, "environment" if text else "default")


def complaints(table: str, file: Mapping[str, Any], environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what is wrong with the settings of a table, as pairs: the key in the file or the variable, and a sentence."""
    found: list[tuple[str, str]] = []
    given = file.get(table, {})
    if not isinstance(given, dict):
        return [(table, f"it is not a table; put its keys under [{table}].")]
    for key, value in given.items():
        setting = TABLES[table].get(key)
        if setting is None:
            found.append((f"{table}.{key}", f"unknown setting{did_you_mean(key, TABLES[table])}."))
        else:
            found += [(setting.name, sentence) for sentence in setting.check(value)[1]]
    for setting in TABLES[table].values():
        if text := environ.get(setting.environ, ""):
            found += [(setting.environ, sentence) for sentence in setting.parse(text)[1]]
    return found


def chosen(table: str, file: Mapping[str, Any], environ: Mapping[str, str], path: str) -> dict[str, Any]:
    """Return the settings of a table that the file or the environment sets; raise ConfigError for the first that is wrong."""
    for where, sentence in complaints(table, file, environ):
        place = f"{path}{line_of(path, where)}: " if not where.isupper() else ""
        raise ConfigError(f"{place}{where}: {sentence}", "`gpulse config show` lists every setting.")
    return {each.setting.key: each.value for each in effective(table, file, environ) if each.origin != "default"}


_KNOWN = (*TABLES, "alerts")


def mistakes(path: str, environ: Mapping[str, str], alerts: Callable[[Any], object] = rules_from) -> list[str]:
    """Return a sentence for each mistake in a file and in the variables, with file, line and key; empty when there is none.

    `alerts` reads the [alerts] table and raises ConfigError for what is wrong there, one mistake at a time.
    """
    try:
        file = read_config(path)
    except ConfigError as error:
        return [str(error)]
    tables = f"; the tables are {', '.join(_KNOWN)}"
    unknown = {key: f"unknown table{did_you_mean(key, _KNOWN) or tables}." for key in file if key not in _KNOWN}
    found = [_sentence(path, key, text) for key, text in unknown.items()]
    for table in TABLES:
        for where, sentence in complaints(table, file, environ):
            found.append(f"{where}: {sentence}" if where.isupper() else _sentence(path, where, sentence))
    try:
        alerts(file.get("alerts", {}))
    except GpulseError as error:
        found.append(f"{path}{_alert_line(path, file, error.message)}: {error}")
    return found


def settings_check(environ: Mapping[str, str]) -> Check:
    """Return which settings file is used, and whether it is right, for `gpulse doctor`."""
    path = config_path(environ)
    if not os.path.exists(path):
        return Check("ok", "settings", f"{path} does not exist; defaults are used.")
    if found := mistakes(path, environ):
        return Check("warn", "settings", found[0], "`gpulse config check` lists every mistake.")
    count = sum(len(table) for table in read_config(path).values() if isinstance(table, dict))
    return Check("ok", "settings", f"{path}, {count} setting{'' if count == 1 else 's'}.")


def line_of(path: str, name: str) -> str:
    """Return `, line N` for a key such as serve.port, of the key itself or the table it is in; empty where it is not found."""
    wanted = tuple(name.split("."))
    best, line = 0, 0
    for keys, at in key_lines(path):
        if len(keys) <= len(wanted) and wanted[: len(keys)] == keys and len(keys) > best:
            best, line = len(keys), at
    return f", line {line}" if line else ""


def _sentence(path: str, name: str, what: str) -> str:
    return f"{path}{line_of(path, name)}: {name}: {what}"


def _alert_line(path: str, file: Mapping[str, Any], message: str) -> str:
    """Return `, line N` for what an error of the [alerts] table is about, told from the key its message begins with."""
    if found := re.match(r"alerts\.rule ([^:.]+)\.?(\w*)", message):
        return _rule_line(path, file, found[1], found[2])
    where = re.match(r"[\w.]+", message)
    name = where[0].rstrip(".") if where else "alerts"
    unknown = re.search(r"unknown key '([^']+)'", message)
    return line_of(path, f"{name}.{unknown[1]}" if unknown else name)


def _rule_line(path: str, file: Mapping[str, Any], name: str, key: str) -> str:
    """Return the line of a key of a rule with this name, or of the rule's header; a rule without a name has its number."""
    rules = file["alerts"]["rule"]
    names = [str(rule.get("name", at)) for at, rule in enumerate(rules, 1)]
    number, line = names.index(name) + 1 if name in names else 1, 0
    seen = 0
    for keys, at in key_lines(path):
        if keys[:2] != ("alerts", "rule"):
            continue
        seen += len(keys) == 3  # a header
        if seen == number and (not line or (key and keys[-1] == key)):
            line = at
    return f", line {line}" if line else ""


_HEAD = """\
# Settings of gpulse. Remove the # before a setting to change it; `gpulse config check` validates this file.
# Options of the command line come first, then environment variables, then this file.
"""
_TITLES = {
    "serve": "gpulse serve",
    "top": "gpulse top; it saves its own settings here",
    "terminal": "output of all commands on a terminal",
    "cost": "prices for gpulse run, report, usage and history --usage, and for the tokens of model servers",
    "usage": "gpulse usage",
    "serving": "model servers, asked how many tokens they make",
    "privacy": "what others may see, in /etc/gpulse/config.toml for everybody on the machine",
    "queue": "the queue for GPUs; counts only in /etc/gpulse/config.toml, which root must own",
}


def template() -> str:
    """Return the text of a new settings file."""
    return "\n".join([_HEAD, *_tables(), *_alerts()])


def write_template(path: str) -> None:
    """Write a new file; raise ConfigError, and change nothing, when there is one already."""
    if os.path.lexists(path):
        raise ConfigError(f"{path} already exists;", "edit it, or name another file with --path.")
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        with replaced(path) as file:
            file.write(template().encode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from None


def _tables() -> Iterator[str]:
    for table, settings in TABLES.items():
        yield f"[{table}]  # {_TITLES[table]}\n"
        for setting in settings.values():
            otherwise = f" (default: {setting.otherwise})" if setting.otherwise else ""
            value = setting.example if setting.default is None else setting.default
            yield f"# {setting.help}{otherwise}\n# {setting.key} = {toml(value)}\n"


def _alerts() -> Iterator[str]:
    yield "[alerts]  # rules that `gpulse serve` applies to its samples\n"
    for key, (default, help) in OWN.items():
        yield f"# {help}\n# {key} = {toml(default)}\n"
    rule = ""
    for setting in rule_settings():
        if setting.rule != rule:
            rule = setting.rule
            yield f"[alerts.{rule}]\n"
        yield f"# {setting.help}\n# {setting.key} = {toml(setting.example)}\n"
    for key, (help, example) in LISTS.items():
        lines = "\n".join(f"# {name} = {toml(value)}" for name, value in example.items())
        yield f"# {help}\n# [[alerts.{key}]]\n{lines}\n"


# key: default, what it means
OWN: dict[str, tuple[Any, str]] = {
    "enable": ([name for name in BUILT_IN if name not in ON_REQUEST], "Built-in rules that are on"),
    "disable": ([], "Built-in rules that are off"),
    "log": (True, "Print each alert on stderr"),
    "bell": (False, "Ring the terminal: true, or a terminal such as /dev/pts/3"),
    "group_wait": ("5s", "How long to wait for more alerts of a rule, to send them as one message"),
    "repeat": (0, "Time after which an alert that lasts is sent again unless it is acknowledged; 0 for never"),
    "quiet": (
        [],
        'Hours in which only critical alerts are sent, such as ["22:00-07:00", "Sat,Sun"]; the rest follows after them',
    ),
    "maintenance": ([], 'Hours in which nothing is sent, such as ["Sun 02:00-04:00"]'),
    "limit": (30, "Messages per hour and delivery; 0 for no limit"),
    "link": (
        "",
        "Address of the page for links in messages, if others reach it by another one than `gpulse serve` prints",
    ),
}
LISTS: dict[str, tuple[str, dict[str, Any]]] = {  # tables that may be there several times, with an example of each
    "rule": ("Your own rules: a metric above or below a value", {"name": "busy", "metric": "utilization", "above": 95, "for": "10m"}),
    "webhook": (
        "Addresses to send alerts to; apprise:URL reaches Slack, mail and many other services",
        {"url": "https://hooks.example.org/gpulse", "shape": "json"},
    ),
    "command": ("Commands to run on alerts", {"run": ["notify-send", "gpulse"]}),
}  # fmt: skip
_HELP = {
    "for": "How long it must last before the alert fires",
    "clear_for": "How long it must be over before the alert clears",
    "above": "Value at which the alert fires",
    "clear": "Value at which the alert clears",
    "margin": "Degrees it must cool down before the alert clears",
    "memory": "GPU memory that a process must hold to count",
    "cpu": "CPU usage, in percent of a core, above which a process counts as working",
    "over": "Time over which memory must grow",
    "rise": "Amount by which memory must grow",
    "used": "Time a GPU must have been in use before it counts as freed",
    "stalled.used": "Time a process must have used a GPU before it can count as stalled",
    "stalled.for": "How long the GPU must be idle before the alert fires",
    "job_finished.for": "Time a process must have run to be reported when it ends",
    "idle_allocation.for": "How long a process must do nothing before the alert fires",
    "allocation_unused.for": "How long a GPU that a Slurm job has must be unused before the alert fires",
    "serving_queue.above": "Number of waiting requests at which the alert fires",
    "serving_first_token.above": "Seconds to the first token (95th percentile) at which the alert fires",
    "serving_errors.above": "Failed requests per second at which the alert fires",
    "serving_stuck.above": "Time without a token, with requests, at which the alert fires",
    "gpu_free.for": "How long a GPU must be free before the alert fires",
    "xid.clear_for": "Time without the same error code after which the alert clears",
    "ecc.clear_for": "Time without a new error after which the alert clears",
}
_NO_DEFAULT = {
    "hot.above": 85,
    "memory.clear": 92,
}  # these depend on the GPU or on other settings: an example for the template


class RuleSetting:
    """One key of a built-in rule; `default` as it is written in the file, None where it depends on something else."""

    __slots__ = ("default", "example", "help", "key", "rule")

    def __init__(self, rule: str, key: str, default: Any) -> None:
        self.rule = rule
        self.key = key
        self.default = default
        self.example = _NO_DEFAULT.get(f"{rule}.{key}") if default is None else default
        self.help = _HELP.get(f"{rule}.{key}") or _HELP[key]

    @property
    def name(self) -> str:
        """The name as in alerts.hot.above."""
        return f"alerts.{self.rule}.{self.key}"


def rule_settings() -> Iterator[RuleSetting]:
    """Yield the settings of all built-in rules."""
    for name, kind in BUILT_IN.items():
        for key, (reader, default) in kind.settings.items():
            yield RuleSetting(name, key, _written(reader, default))


def effective_alerts(table: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yield name, value and whether the file sets it, of an [alerts] table; addresses and headers are masked."""
    for key, (default, _) in OWN.items():
        yield f"alerts.{key}", table.get(key, default), key in table
    for setting in rule_settings():
        given = table.get(setting.rule)
        there = isinstance(given, dict) and setting.key in given
        yield setting.name, given[setting.key] if there and given else setting.default, there
    for key in LISTS:
        found = table.get(key, [])
        entries = [found] if isinstance(found, dict) else found if isinstance(found, list) else []
        yield f"alerts.{key}", [_masked(entry) for entry in entries], key in table


def _masked(entry: Any) -> Any:
    """Return an entry without its secrets: most of an address, and headers."""
    if not isinstance(entry, dict):
        return entry
    shown = dict(entry)
    if isinstance(shown.get("url"), str):
        shown["url"] = masked(shown["url"])
    if isinstance(shown.get("headers"), dict):
        shown["headers"] = dict.fromkeys(shown["headers"], "…")
    return shown


def _written(reader: Any, default: float | None) -> Any:
    if default is None or reader not in (duration, size):
        return int(default) if default is not None and default == int(default) else default
    if reader is size:
        return f"{default / (1 << 30):g}GiB" if default >= 1 << 30 else f"{default / (1 << 20):g}MiB"
    return f"{default / 60:g}m" if default >= 120 and default % 60 == 0 else f"{default:g}s"
