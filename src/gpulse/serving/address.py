"""Addresses of servers: where they were found, or what the settings say."""

from __future__ import annotations

import os

from ..errors import ConfigError

_PORTS = {"http": 80, "https": 443}
_FORM = "write http://HOST:PORT, or http://HOST:PORT/metrics."


class Address:
    """Where to ask. `path` is empty if it depends on the kind of server; `tls` for https."""

    __slots__ = ("host", "path", "port", "tls")

    def __init__(self, host: str, port: int, path: str = "", tls: bool = False) -> None:
        self.host = host
        self.port = port
        self.path = path
        self.tls = tls

    @property
    def name(self) -> str:
        """The host and port, as people write them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return self.host, self.port, self.path, self.tls

    def __repr__(self) -> str:
        return f"<Address {self.name}{self.path}>"


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
