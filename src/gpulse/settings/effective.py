"""What is in force: an option before the environment, the environment before the file, the file before the default."""

from __future__ import annotations

from ..errors import ConfigError
from ..model.select import did_you_mean
from .table import ENVIRONMENT, TABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ..model.tariff import Tariff
    from .setting import Setting


class Effective:
    """A setting with its value and where that comes from: `origin` is default, file or environment."""

    __slots__ = ("origin", "setting", "value")

    def __init__(self, setting: Setting, value: Any, origin: str) -> None:
        self.setting = setting
        self.value = value
        self.origin = origin

    def __repr__(self) -> str:
        return f"<Effective {self.setting.name} = {self.value!r} ({self.origin})>"


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
    from ..model.tariff import Tariff
    from ..store.config import config_path, read_config

    path = config_path(environ)
    prices = {**chosen("cost", read_config(path), environ, path), **(given or {})}
    return Tariff(prices.get("price"), prices.get("gpu_price"), prices.get("carbon"), prices.get("currency", "")[:8])


def mail_settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return how mail is sent: [mail] of the machine's settings, those of the user before them; raise ConfigError if they are wrong."""
    from ..store.config import config_path, read_config, read_machine_config
    from ..store.config_path import machine_path

    path, machine = config_path(environ), machine_path(environ)
    of_machine = chosen("mail", read_machine_config(environ), {}, machine)
    return {**of_machine, **chosen("mail", read_config(path), environ, path)}


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
    from .check import line_of

    for where, sentence in complaints(table, file, environ):
        place = f"{path}{line_of(path, where)}: " if not where.isupper() else ""
        raise ConfigError(f"{place}{where}: {sentence}", "`gpulse config show` lists every setting.")
    return {each.setting.key: each.value for each in effective(table, file, environ) if each.origin != "default"}
