"""The files of the page, read once and kept compressed in memory: no request can name a file of the machine."""

from __future__ import annotations

import gzip
import hashlib
import os

from starlette.responses import Response

from .answers import takes_gzip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.types import Scope

FOLDER = os.path.join(os.path.dirname(__file__), "static")
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


def read_assets(folder: str = FOLDER) -> dict[str, Asset]:
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
