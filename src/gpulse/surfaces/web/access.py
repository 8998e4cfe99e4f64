"""Who can reach the server: its socket, the token, the session of a browser, and the allowed host names."""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import re
import secrets
import socket
import stat

from ...errors import GpulseError, UsageError
from ...store.secret_file import read_secret
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Headers = Iterable[tuple[bytes, bytes]]

_UNSENT = 131_072  # send buffer per client; without a limit it grows to 4 MB for each client that does not read
_DEAD = 20_000  # milliseconds after which the kernel closes the connection of a client that does not read


def parse_bind(text: str, port: int) -> tuple[str, int]:
    """Return host and port of 0.0.0.0:9440, [::1]:9440, box or :8080; raise UsageError if it is invalid."""
    host, colon, digits = text.rpartition(":")
    if not colon or text.endswith("]") or (":" in host and not host.endswith("]")):  # a name, [::1], ::1
        host = text
    else:
        if not (digits.isascii() and digits.isdecimal() and int(digits) < 65_536):
            raise UsageError(f"--bind: {text!r} has an invalid port;", "write it as 127.0.0.1:9440 or [::1]:9440.")
        port = int(digits)
    return host.strip("[]") or "127.0.0.1", port


def tcp_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to a port, not yet listening; raise GpulseError with what to do if it cannot be bound."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise GpulseError(f"cannot listen on {host}: {error.strerror}.") from None
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # accepted connections inherit these
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNSENT)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise GpulseError(*_refused(host, port, error)) from None
    return bound


def _refused(host: str, port: int, error: OSError) -> tuple[str, str]:
    place = f"port {port} of {host}"
    if error.errno == errno.EADDRINUSE:
        return f"{place} is in use;", f"another `gpulse serve` may be running: open its page, or use --port {port + 1}."
    if error.errno == errno.EACCES:
        return f"this user may not use {place};", "use a port from 1024 on: --port 9440."
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"{host} is not an address of this machine;",
            "use 127.0.0.1 for this machine only, or 0.0.0.0 for all networks.",
        )
    return f"{place} cannot be used: {error.strerror}.", ""


def unix_socket(path: str) -> socket.socket:
    """Return a socket bound to a file that only this user can open; a file left by a dead server is replaced."""
    if os.path.lexists(path):
        _clear(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            bound.bind(path)
        finally:
            os.umask(before)
    except OSError as error:
        bound.close()
        why = error.strerror or str(error)  # a path that is too long has only the latter
        raise GpulseError(
            f"{path} cannot be listened on: {why};", "name a file in a folder you can write to."
        ) from None
    return bound


def _clear(path: str) -> None:
    """Remove an unused socket file; raise GpulseError if it is in use or not a socket."""
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise GpulseError(f"{path} exists and is not a socket;", "name another file.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except OSError as error:
            raise GpulseError(f"{path} cannot be listened on: {error.strerror};", "name another file.") from None
        else:
            raise GpulseError(
                f"{path} is in use;", "another `gpulse serve` is using it: use that one, or name another file."
            )


_SHORTEST = 22  # characters: 128 bits in base64
_SAFE = re.compile(r"[A-Za-z0-9._~-]+")  # needs no quoting in links and cookies


def new_token() -> str:
    """Return a token of 192 bits."""
    return secrets.token_urlsafe(24)


def token_of(path: str) -> str:
    """Return the token in a file, which is created, readable by its owner only, if it does not exist.

    Raises GpulseError if it belongs to another user, if others can read it, or if it does not contain a token.
    """
    try:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return _read(path)
        token = new_token()
        with open(handle, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
        return token
    except OSError as error:
        raise GpulseError(f"the token file {path} cannot be used: {error.strerror};", "name another one.") from None


def _read(path: str) -> str:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):  # opening a FIFO would block
        raise GpulseError(f"the token file {path} is not a regular file;", "name another one.")
    if status.st_uid not in (0, os.geteuid()):  # its owner knows the token, or chooses it
        raise GpulseError(f"the token file {path} belongs to another user;", "name a file of your own.")
    token = read_secret(path, "the token file").strip()
    if len(token) < _SHORTEST or not _SAFE.fullmatch(token):
        raise GpulseError(
            f"{path} does not contain a token ({_SHORTEST} or more letters, digits, - or _ on one line);",
            "delete it to create a new one.",
        )
    return token


def is_token(given: bytes, token: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given, token.encode())


class Session(Value):
    """The cookie that lets a browser in: `name` and `value`."""

    name: str
    value: str

    @classmethod
    def derive(cls, token: str, server: str) -> Session:
        """Return the session of a server, the same as long as its token is.

        Browsers send a cookie to every port of the host. A server that receives it there learns neither the token nor a way into a server
        elsewhere that has the same token. The name is different for each server, so that two on one host do not overwrite each other's.
        """
        name = hashlib.sha256(server.encode()).hexdigest()[:12]
        return cls(f"gpulse_{name}", hmac.new(token.encode(), f"session of {server}".encode(), "sha256").hexdigest())

    def header(self, path: str, secure: bool) -> str:
        """Return the Set-Cookie header that keeps it in a browser, inaccessible to scripts and other sites."""
        return f"{self.name}={self.value}; Path={path}; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"


def carries(headers: Headers, token: str, session: Session) -> bool:
    """Return whether a request has the token as a bearer, or the session as a cookie."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, given = value.partition(b" ")
            if scheme.lower() == b"bearer" and is_token(given.strip(), token):
                return True
        elif name == b"cookie":
            for pair in value.split(b";"):
                key, _, given = pair.strip().partition(b"=")
                if key == session.name.encode() and is_token(given.strip(b'"'), session.value):
                    return True
    return False


class Hosts:
    """The allowed host names of this server: requests with another name (DNS rebinding) are rejected.

    IP addresses cannot be rebound, so any of them is allowed if the server listens beyond loopback.
    """

    def __init__(self, names: Iterable[str], addresses: bool = False) -> None:
        self._names = frozenset(name.lower().rstrip(".").strip("[]") for name in names)
        self._addresses = addresses

    def permit(self, header: str) -> bool:
        """Return whether a Host header, with or without port, names this server."""
        found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:]+))(?::\d{1,5})?", header.strip().lower())
        if not found:
            return False
        name = (found[1] or found[2]).rstrip(".")
        return name in self._names or (self._addresses and is_address(name))


def is_address(name: str) -> bool:
    """Return whether a name is an IP address."""
    import ipaddress

    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    """Return whether only this machine can reach an address; localhost counts."""
    import ipaddress

    return name == "localhost" or (is_address(name) and ipaddress.ip_address(name).is_loopback)
