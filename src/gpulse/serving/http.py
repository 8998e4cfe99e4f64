"""One GET request that never blocks: for the thread that asks all servers at once, each with its own deadline."""

from __future__ import annotations

import errno
import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..model.metric import Gap
    from .settings import Address

MOST_BODY = 2 << 20  # bytes; the answers of real servers are 10 to 200 KB
_MOST_HEAD = 16 << 10
_PIECE = 1 << 16


class NoAnswer(Exception):
    """Why there is no answer: `gap` for the values, and a sentence about the server."""

    def __init__(self, gap: Gap, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.gap: Gap = gap
        self.sentence = sentence
        self.status = status


class HttpRequest:
    """One request on a connection, which may be reused for the next if `reusable`. Call `step` whenever the socket is ready."""

    def __init__(self, address: Address, path: str, token: str = "", connection: Any = None) -> None:
        self.address = address
        self.body: bytes | None = None
        self.reusable = False
        self.reused = connection is not None
        self._head: bytes | None = None
        self._status = 0
        self._length: int | None = None
        self._chunked = False
        self._received = bytearray()
        self._secured = not address.tls or connection is not None
        self.socket: Any = connection or self._connect()
        secret = f"Authorization: Bearer {token}\r\n" if token else ""
        self._unsent = (
            f"GET {path} HTTP/1.1\r\nHost: {address.name}\r\nAccept: text/plain, application/json\r\n"
            f"User-Agent: gpulse\r\n{secret}\r\n"
        ).encode()

    @property
    def sending(self) -> bool:
        """Whether it waits to write rather than to read."""
        return bool(self._unsent) and self._secured

    def step(self) -> bool:
        """Go on as far as possible without waiting; return whether the answer is complete. Raises NoAnswer."""
        try:
            if not self._secured:
                self.socket.do_handshake()
                self._secured = True
            while self._unsent:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
            while not self._complete():
                piece = self.socket.recv(_PIECE)
                if not piece:
                    return self._ended()
                self._received += piece
        except BlockingIOError:
            return False
        except OSError as error:
            if type(error).__name__ in ("SSLWantReadError", "SSLWantWriteError"):  # ssl may not be loaded
                return False
            raise self._failure(error) from None
        return True

    def close(self) -> None:
        """Give up the connection."""
        self.socket.close()

    def _connect(self) -> socket.socket:
        family, _, _, _, where = _resolved(self.address)
        plain = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            code = plain.connect_ex(where)
            if code not in (0, errno.EINPROGRESS):
                raise self._failure(OSError(code, os.strerror(code)))
            if not self.address.tls:
                return plain
            import ssl

            context = ssl.create_default_context()
            return context.wrap_socket(plain, server_hostname=self.address.host, do_handshake_on_connect=False)
        except BaseException:  # also Ctrl-C must not leak the socket
            plain.close()
            raise

    def _failure(self, error: OSError) -> NoAnswer:
        why = error.strerror or str(error)
        return NoAnswer("failed", f"the connection fails ({why[:80]})")

    def _complete(self) -> bool:
        if self._head is None and not self._take_head():
            return False
        if len(self._received) > MOST_BODY:
            raise NoAnswer("failed", f"the answer is longer than {MOST_BODY >> 20} MiB")
        if self._chunked:
            if self._received.endswith(b"0\r\n\r\n"):  # or every byte of a slow answer would parse it anew
                self.body = _unchunked(self._received)
        elif self._length is not None and len(self._received) >= self._length:
            self.body = bytes(self._received[: self._length])
        return self.body is not None

    def _ended(self) -> bool:
        """Take what there is as the answer if the end of the connection is the end of it."""
        if self._head is None or self._chunked or self._length is not None:
            raise NoAnswer("failed", "the connection ended before the answer did")
        self.reusable = False
        self.body = bytes(self._received)
        return True

    def _take_head(self) -> bool:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            if len(self._received) > _MOST_HEAD:
                raise NoAnswer("failed", "what it answers is not HTTP")
            return False
        lines = bytes(self._received[:end]).split(b"\r\n")
        del self._received[: end + 4]
        self._head = lines[0]
        words = lines[0].split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise NoAnswer("failed", "what it answers is not HTTP")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])
        }
        self._check(int(words[1]), headers)
        self._chunked = headers.get(b"transfer-encoding", b"").lower() == b"chunked"
        length = headers.get(b"content-length", b"")
        if length.isdigit() and not self._chunked:
            self._length = int(length)
            if self._length > MOST_BODY:
                raise NoAnswer("failed", f"the answer is longer than {MOST_BODY >> 20} MiB")
        self.reusable = words[0] != b"HTTP/1.0" and headers.get(b"connection", b"").lower() != b"close"
        return True

    def _check(self, status: int, headers: dict[bytes, bytes]) -> None:
        if status in (401, 403):
            raise NoAnswer("denied", f"it asks for a token (HTTP {status})", status)
        if 300 <= status < 400:
            raise NoAnswer("unsupported", f"it redirects elsewhere (HTTP {status}), which is not followed", status)
        if status != 200:
            gap: Gap = "unsupported" if status in (404, 405, 501) else "failed"
            raise NoAnswer(gap, f"it answers HTTP {status}", status)
        if headers.get(b"content-type", b"").lower().startswith(b"text/html"):
            raise NoAnswer("unsupported", "it answers with a web page instead of figures", status)


def _unchunked(received: bytearray) -> bytes | None:
    """Return the body of a chunked answer; None if it is not complete yet."""
    at = 0
    parts: list[bytes] = []
    while (line := received.find(b"\r\n", at)) >= 0:
        try:
            size = int(bytes(received[at:line]).partition(b";")[0], 16)
        except ValueError:
            size = -1
        if not 0 <= size <= MOST_BODY:
            raise NoAnswer("failed", "what it answers is not HTTP")
        if size == 0:
            return b"".join(parts)
        at = line + 2 + size + 2
        if at > len(received):
            break
        parts.append(bytes(received[line + 2 : at - 2]))
    return None


def _resolved(address: Address) -> Any:
    try:
        return socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:  # the second: a part of the name is too long
        raise NoAnswer("failed", f"its name is not known ({getattr(error, 'strerror', error)})") from None
