"""Whether a settings file is right: every mistake in it, with its line."""

from __future__ import annotations

import os
import re

from ..analysis.alerts import rules_from
from ..errors import ConfigError, GpulseError
from ..model.check import Check
from ..model.select import did_you_mean
from ..store.config import config_path, key_lines, read_config
from .effective import complaints
from .table import TABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_KNOWN = (*TABLES, "alerts")
_LISTED = ", ".join(_KNOWN)


def mistakes(path: str, environ: Mapping[str, str], alerts: Callable[[Any], object] = rules_from) -> list[str]:
    """Return a sentence for each mistake in a file and in the variables, with file, line and key; empty when there is none.

    `alerts` reads the [alerts] table and raises ConfigError for what is wrong there, one mistake at a time.
    """
    try:
        file = read_config(path)
    except ConfigError as error:
        return [str(error)]
    found = [_sentence(path, key, _no_table(key)) for key in file if key not in _KNOWN]
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


def _no_table(key: str) -> str:
    return f"unknown table{did_you_mean(key, _KNOWN) or f'; the tables are {_LISTED}'}."


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
