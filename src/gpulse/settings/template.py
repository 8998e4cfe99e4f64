"""A new settings file: every setting with its default, commented out, so that it changes nothing until somebody edits it."""

from __future__ import annotations

import os

from ..errors import ConfigError
from .alerts import LISTS, OWN, rule_settings
from .setting import toml
from .table import TABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """\
# Settings of gpulse. Remove the # before a setting to change it; `gpulse config check` validates this file.
# Options of the command line come first, then environment variables, then this file.
"""
_TITLES = {
    "serve": "gpulse serve",
    "remote_write": "samples that gpulse serve pushes",
    "top": "gpulse top; it saves its own settings here",
    "terminal": "output of all commands on a terminal",
    "cost": "prices for gpulse run, report, usage and history --usage, and for the tokens of model servers",
    "usage": "gpulse usage",
    "serving": "model servers, asked how many tokens they make",
    "privacy": "what others may see, in /etc/gpulse/config.toml for everybody on the machine",
    "mail": "how mail is sent",
    "reclaim": "gpulse reclaim: memory that is held for nothing; in force only in /etc/gpulse/config.toml",
    "queue": "the queue for GPUs; counts only in /etc/gpulse/config.toml, which root must own",
}


def template() -> str:
    """Return the text of a new settings file."""
    return "\n".join([_HEAD, *_tables(), *_alerts()])


def write_template(path: str) -> None:
    """Write a new file; raise ConfigError, and change nothing, when there is one already."""
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise ConfigError(f"{path} already exists;", "edit it, or name another file with --path.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from None
    with open(handle, "w", encoding="utf-8") as file:
        file.write(template())


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
