"""`gpulse config`: the settings file, shown, checked or created."""

from __future__ import annotations

import os
import sys

from ...errors import UsageError
from ..options import DEMO_UNUSED, HELP, Arguments, Option, Verb, checked_action
from ..output import write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


ACTIONS = ("show", "check", "init")


def run(arguments: Arguments) -> int:
    """Do one of the three; exit 2 when the file has a mistake."""
    from ...store.config import config_path

    action = checked_action("config", arguments.action or "show", ACTIONS)
    path = os.path.expanduser(arguments.path) if arguments.path else config_path(os.environ)
    if action == "init":
        if arguments.demo and not arguments.path:
            raise UsageError("config: a demo keeps no settings;", "leave out --demo.")
        from ...settings.effective import write_template

        write_template(path)
        sys.stdout.write(f"wrote {path}\n")
        return 0
    return _check(path) if action == "check" else _show(path, arguments.json)


def _check(path: str) -> int:
    if not os.path.exists(path):
        from ...errors import ConfigError

        raise ConfigError(f"{path} is not there;", "`gpulse config init` creates it.")
    found = _mistakes(path)
    for mistake in found:
        sys.stderr.write(f"gpulse: {mistake}\n")
    if not found:
        sys.stdout.write(f"{path}: ok\n")
    return 2 if found else 0


def _mistakes(path: str) -> list[str]:
    from ...settings.effective import mistakes

    return mistakes(path, os.environ, _alerts)


def _alerts(table: Any) -> None:
    """Read an [alerts] table with its deliveries, of which none is started."""
    from ...analysis.alerts import rules_from
    from ...delivery.settings import DeliverySetup, check_keys, deliveries_from, logs, policy_from
    from ...errors import ConfigError

    if not isinstance(table, dict):
        raise ConfigError("alerts is not a table;", "put its keys under [alerts].")
    check_keys(table)
    logs(table)
    policy_from(table)
    deliveries_from(table, DeliverySetup(table, [rule.name for rule in rules_from(table)]))


def _show(path: str, as_json: bool) -> int:
    from ...store.config import read_config

    rows = list(_rows(path, read_config(path)))
    if wrong := _mistakes(path):
        sys.stderr.write(f"gpulse: {wrong[0]}\n" + "gpulse: `gpulse config check` lists every mistake.\n")
    if as_json:
        plain = [{"setting": name, "value": value, "origin": origin} for name, value, origin in rows]
        return write_json({"file": path, "exists": os.path.exists(path), "settings": plain}, 1)
    from ...present.text import clean
    from ...settings.table import toml

    there = "" if os.path.exists(path) else " (not there; `gpulse config init` creates it)"
    texts = [(name, "-" if value is None else toml(value), origin) for name, value, origin in rows]
    wide, widest = max(len(name) for name, _, _ in texts), 40
    lines = [f"# {path}{there}", "# Options come first, then the environment, then the file, then the default."]
    lines += [f"{name:<{wide}}  {clean(value):<{widest}}  {origin}" for name, value, origin in texts]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _rows(path: str, file: dict[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Yield every setting: its name, its value, and where that comes from."""
    from ...settings.effective import effective, effective_alerts, effective_environment, line_of
    from ...settings.table import TABLES

    found = list(effective_environment(os.environ))
    for table in TABLES:
        found += effective(table, file, os.environ)
    for each in found:
        name, origin = each.setting.name, each.origin
        if origin == "environment":
            origin = each.setting.environ
        elif origin == "file":
            origin = f"file{line_of(path, name)}"
        elif each.value is None:
            origin = f"default: {each.setting.otherwise or 'none'}"
        yield name, each.value, origin
    alerts = file.get("alerts", {})
    for name, value, given in effective_alerts(alerts if isinstance(alerts, dict) else {}):
        yield name, value, f"file{line_of(path, name)}" if given else "default"


VERB = Verb(
    "config",
    (
        Option("action", value="[ACTION]", complete=ACTIONS,
               help="What to do: show (print every setting and its origin), check (validate the file) or init (create a commented "
                    "file) (default: show)"),
        Option("--path", value="FILE", complete="files",
               help="Settings file (default: $GPULSE_CONFIG or gpulse/config.toml in $XDG_CONFIG_HOME or ~/.config)"),
        Option("--json", help="Print the settings as JSON"),
        DEMO_UNUSED,
        HELP,
    ),
    run,
    (
        ("gpulse config", "print every setting and where it comes from"),
        ("gpulse config init", "create a file with every setting, commented out"),
        ("gpulse config check", "validate the file; exit code 2 if it is invalid"),
    ),
)  # fmt: skip
