"""What the settings say of model servers: which to ask besides those found, with which tokens, and what GPUs and energy cost."""

from __future__ import annotations

import os

from ..errors import ConfigError
from ..model.serving import Tariff
from ..sources.files import read_bytes
from ..store.place import config_path
from ..store.secret_file import read_secret
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


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
        """Return the token for an address; empty if it has none. The file is read each time, so that a new token takes effect.

        Raises ConfigError if its file cannot be read, or if other users can read it.
        """
        path = os.path.expanduser(self.token_files.get(address.name, ""))
        token = read_secret(path, "token file") if os.path.isfile(path) else ""  # a pipe would block the sample
        return token if token.isascii() and token.isprintable() else ""


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


_PORTS = {"http": 80, "https": 443}
_FORM = "write http://HOST:PORT, or http://HOST:PORT/metrics."


class Address(Value, frozen=True):
    """Where to ask. `path` is empty if it depends on the kind of server; `tls` for https."""

    host: str
    port: int
    path: str = ""
    tls: bool = False

    @property
    def name(self) -> str:
        """The host and port, as people write them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Return the address that a setting means; raise ConfigError if it is none."""
    scheme, slashes, rest = text.partition("://")
    if not slashes:
        scheme, rest = "http", text
    where, slash, path = rest.partition("/")
    if scheme not in _PORTS or "@" in where or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(f"{text!r} is not an address;", _FORM)
    host, port = _host_and_port(where)
    if not host or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise ConfigError(f"{text!r} is not an address;", _FORM)
    return Address(host, int(port) if port else _PORTS[scheme], slash + path if path else "", scheme == "https")


def parse_token_file(text: str) -> tuple[str, str]:
    """Return the host and port of a server and the file with its token; raise ConfigError if the setting is something else."""
    where, equals, path = text.partition("=")
    if not equals or not path.strip() or not _host_and_port(where.strip())[1].isdecimal():
        raise ConfigError(f"{text!r} does not name a server and a file;", "write HOST:PORT=FILE.")
    return where.strip(), os.path.expanduser(path.strip())


def _host_and_port(where: str) -> tuple[str, str]:
    if where.startswith("["):
        host, _, rest = where[1:].partition("]")
        return host, rest.removeprefix(":")
    host, _, port = where.partition(":")
    return host, port
