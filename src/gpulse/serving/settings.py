"""What the settings say of model servers: which to ask besides those found, with which tokens, and what GPUs and energy cost."""

from __future__ import annotations

from ..errors import ConfigError
from ..model.tariff import Tariff
from ..sources.files import read_bytes, read_text
from ..store.config_path import config_path
from .address import parse_address, parse_token_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .address import Address

_NO = ("0", "false", "no", "off")


class ServingSettings:
    """`discover`: look for servers on this machine. `token_files` are by host and port. What is wrong in a file is left out."""

    def __init__(self, table: Mapping[str, Any] | None = None) -> None:
        table = table or {}
        self.discover = table.get("discover", True) is not False
        self.endpoints: list[Address] = []
        self.token_files: dict[str, str] = {}
        for text in _words(table.get("endpoints")):
            try:
                self.endpoints.append(parse_address(text))
            except ConfigError:
                continue
        for text in _words(table.get("token_files")):
            try:
                where, path = parse_token_file(text)
                self.token_files[where] = path
            except ConfigError:
                continue

    def token(self, address: Address) -> str:
        """Return the token for an address; empty if it has none. The file is read each time, so that a new token takes effect."""
        path = self.token_files.get(address.name)
        text = (read_text(path, 4096) or "") if path else ""
        return text if text.isascii() and text.isprintable() else ""


def read_settings(environ: Mapping[str, str]) -> ServingSettings:
    """Return the settings of the file and the environment; a file that is wrong counts as none (`gpulse config check` says why)."""
    table = _table("serving", environ)
    for key in ("endpoints", "token_files"):
        if text := environ.get(f"GPULSE_SERVING_{key.upper()}"):
            table[key] = [word.strip() for word in text.split(",") if word.strip()]
    if text := environ.get("GPULSE_SERVING_DISCOVER"):
        table["discover"] = text.strip().lower() not in _NO
    return ServingSettings(table)


def read_tariff(environ: Mapping[str, str]) -> Tariff:
    """Return the prices of the file and the environment; one that is wrong counts as none."""
    table = _table("cost", environ)
    price, gpu_price = (
        _amount(environ.get(f"GPULSE_COST_{key.upper()}") or table.get(key)) for key in ("price", "gpu_price")
    )
    return Tariff(price, gpu_price)


def _table(name: str, environ: Mapping[str, str]) -> dict[str, Any]:
    path = config_path(environ)
    if name.encode() not in (read_bytes(path, 1 << 20) or b""):  # parsing it would load tomllib for nothing
        return {}
    from ..store.config import read_config

    try:
        found = read_config(path).get(name)
    except ConfigError:
        return {}
    return dict(found) if isinstance(found, dict) else {}


def _amount(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0.0 <= number <= 1e12 and not isinstance(value, bool) else None


def _words(value: Any) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
