"""Answers: JSON, problems, small pages, the files of the page, and streams of server-sent events."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import html
import os

from starlette.responses import Response

from ...live import STATIC
from ...live.machine import StreamClient, StreamClients
from ...live.parameters import Refusal
from ...live.wire import compact
from .access import is_loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Message, Receive, Scope, Send

    from ...live.wire import StreamLog

_WORTH = 1024  # bytes below which packing gains nothing
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:15vh auto;padding:0 1em}"
    "input,button{font:inherit;padding:.4em .6em}input{width:60%}:root{color-scheme:light dark}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_PAGE_CSP = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as RFC 9457 has it."""
    plain = Refusal(status, detail).to_plain()
    return Response(compact(plain), status, dict(headers or {}), "application/problem+json")


def packed(scope: Scope, data: bytes, kind: str = "application/json") -> Response:
    """Return bytes as an answer, with gzip where the client takes it; large ones take time, so call it in a worker thread."""
    # as a header: old versions of starlette add a charset to a media type
    more = {"content-type": kind, "vary": "Accept-Encoding"}
    if len(data) > _WORTH and takes_gzip(scope):
        data = gzip.compress(data, 5, mtime=0)
        more["content-encoding"] = "gzip"
    return Response(data, 200, more)


def takes_gzip(scope: Scope) -> bool:
    """Tell whether the client unpacks gzip."""
    accepted = b",".join(value for key, value in scope["headers"] if key == b"accept-encoding")
    for word in accepted.lower().split(b","):
        name, _, quality = word.strip().partition(b";")
        if name.strip() in (b"gzip", b"*"):
            return quality.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def page(title: str, text: str, status: int = 200, *, form: bool = False) -> Response:
    """Return a small page of our own, without script; `form` asks for the token."""
    asking = (
        "<form><label>Token <input name=token type=password autocomplete=current-password autofocus required></label> "
        "<button>Open</button></form>"
    )
    body = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(text)}</p>{asking if form else ''}"
    )
    return Response(body.encode("utf-8", "replace"), status, {"content-security-policy": _PAGE_CSP}, "text/html")


_KINDS = {
    "css": "text/css; charset=utf-8", "html": "text/html; charset=utf-8", "ico": "image/x-icon", "js": "text/javascript; charset=utf-8",
    "json": "application/json", "png": "image/png", "svg": "image/svg+xml", "txt": "text/plain; charset=utf-8",
    "webmanifest": "application/manifest+json", "woff2": "font/woff2",
}  # fmt: skip


class Asset:
    """One file: its bytes, compressed if that is smaller, and an ETag."""

    __slots__ = ("data", "kind", "packed", "tag")

    def __init__(self, name: str, data: bytes) -> None:
        packed = gzip.compress(data, 9, mtime=0)
        self.kind = _KINDS.get(name.rpartition(".")[2], "application/octet-stream")
        self.data = data
        self.packed = packed if len(packed) < len(data) else None
        self.tag = f'"{hashlib.sha256(data).hexdigest()[:20]}"'

    def response(self, scope: Scope) -> Response:
        """Return the file, or 304 if the client has it; names do not change between versions, so clients must revalidate."""
        headers = {"etag": self.tag, "cache-control": "private, no-cache", "vary": "Accept-Encoding"}
        known = b",".join(value for key, value in scope["headers"] if key == b"if-none-match").decode("latin-1")
        if self.tag in [word.strip().removeprefix("W/") for word in known.split(",")]:
            return Response(b"", 304, headers)
        headers["content-type"] = self.kind  # as a header: old versions of starlette add a charset to a media type
        if self.packed is not None and takes_gzip(scope):
            return Response(self.packed, 200, headers | {"content-encoding": "gzip"})
        return Response(self.data, 200, headers)


def read_assets(folder: str = STATIC) -> dict[str, Asset]:
    """Return the files of a folder by name, those in subfolders as folder/name; {} if it does not exist."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            if name.startswith(".") or name.endswith((".map", ".gz", ".py", ".pyc")):
                continue
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder).replace(os.sep, "/")] = Asset(name, file.read())
    return found


MOST = 512  # clients at once, if nobody says how many connections there may be
_RETRY = b"retry: 2000\n\n"
_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]


class Streams:
    """Server-sent events to any number of clients.

    At most `most`; with `by_address` at most half of them to one address of another machine. Clients that have shown the token need
    no such limit, and those behind a proxy all come from its address.
    """

    def __init__(self, hub: StreamLog, most: int = MOST, *, by_address: bool = False) -> None:
        self._clients = StreamClients(hub)
        self._most = most
        self._by_address = by_address

    @property
    def count(self) -> int:
        """How many clients listen."""
        return self._clients.count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client until it leaves, falls behind, or the hub ends."""
        peer = (scope.get("client") or ("",))[0]
        if reached := self._limit_reached(peer):
            await problem(503, reached, {"retry-after": "10"})(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        if scope["method"] != "HEAD":
            client = StreamClient(peer)
            leaving = asyncio.get_running_loop().create_task(_leaving(receive, client))
            last = next((value.decode("latin-1") for key, value in scope["headers"] if key == b"last-event-id"), "")
            try:
                await self._clients.serve(client, last, lambda data: send(_part(data)), _RETRY)
            finally:
                leaving.cancel()
        await send({"type": "http.response.body", "body": b""})

    def _limit_reached(self, peer: str) -> str:
        """Return which limit keeps a new client out; empty if none does."""
        if self.count >= self._most:
            return f"the limit of {self._most} streams is reached."
        half = max(1, self._most // 2)
        if self._by_address and peer and not is_loopback(peer) and self._clients.count_of(peer) >= half:
            return f"the limit of {half} streams of one address is reached."
        return ""


async def _leaving(receive: Receive, client: StreamClient) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    client.leave()


def _part(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}
