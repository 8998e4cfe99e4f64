"""The server's socket: a TCP port, or a Unix socket for one user."""

from __future__ import annotations

import errno
import os
import socket
import stat

from ...errors import GpulseError, UsageError

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
