"""Answers: JSON, problems and small pages, packed where the client can unpack them."""

from __future__ import annotations

import base64
import hashlib
import html
from http import HTTPStatus

from starlette.responses import Response

from ...live.wire import compact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Scope

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
    plain = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return Response(compact(plain), status, dict(headers or {}), "application/problem+json")


def packed(scope: Scope, data: bytes, kind: str = "application/json") -> Response:
    """Return bytes as an answer, with gzip where the client takes it; large ones take time, so call it in a worker thread."""
    more = {
        "content-type": kind,
        "vary": "Accept-Encoding",
    }  # as a header: old versions of starlette add a charset to a media type
    if len(data) > _WORTH and takes_gzip(scope):
        import gzip

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
