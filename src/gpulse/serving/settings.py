"""The [serving] table of the settings: which servers to ask besides those found, and with which tokens."""

from __future__ import annotations

from ..errors import ConfigError
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
    table: dict[str, Any] = {}
    path = config_path(environ)
    if b"serving" in (read_bytes(path, 1 << 20) or b""):  # parsing it would load tomllib for nothing
        from ..store.config import read_config

        try:
            found = read_config(path).get("serving")
        except ConfigError:
            found = None
        table = dict(found) if isinstance(found, dict) else {}
    for key in ("endpoints", "token_files"):
        if text := environ.get(f"GPULSE_SERVING_{key.upper()}"):
            table[key] = [word.strip() for word in text.split(",") if word.strip()]
    if text := environ.get("GPULSE_SERVING_DISCOVER"):
        table["discover"] = text.strip().lower() not in _NO
    return ServingSettings(table)


def _words(value: Any) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
