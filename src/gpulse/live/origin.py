"""Which requests come from the pages of other servers; for `gpulse serve` and Jupyter's server alike.

Browsers send the cookies of a host to all its ports, and a page on one port may send requests to another. What they say about the page
that sends a request, its script cannot change.
"""

from __future__ import annotations

from urllib.parse import urlsplit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

READS = frozenset({"GET", "HEAD"})
_OWN = ("same-origin", "none")  # Sec-Fetch-Site of a request from a page of this server, and of one that a person made
_PORTS = {"http": 80, "https": 443}


def is_foreign(method: str, headers: Mapping[str, str], permit: Callable[[str], bool], secure: bool = False) -> bool:
    """Return whether a page of another origin sent a request; programs other than browsers send none of these headers.

    Names of `headers` are lower-case. `permit` returns whether a host, with or without port, is this server; `secure` is whether it is
    known to be reached by https. A link on another page may be followed.
    """
    site = headers.get("sec-fetch-site")
    if site is not None and site not in _OWN and not _is_link(method, headers):
        return True
    origin = headers.get("origin")
    return origin is not None and not _is_own(origin, headers, permit, secure)


def is_json(headers: Mapping[str, str]) -> bool:
    """Return whether the body of a request is JSON; a form, which needs no script and no permission, cannot send it."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _is_link(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a person follows a link, in a window of its own."""
    return (
        method in READS and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    )


def _is_own(origin: str, headers: Mapping[str, str], permit: Callable[[str], bool], secure: bool) -> bool:
    """Return whether an origin is that of this server: as the client names it, or as a proxy and `permit` do.

    A proxy may have replaced Host, or removed its port. Then X-Forwarded-Host counts, which other pages cannot send because browsers
    would ask this server first, and so does the word of a browser that the origin is the same.
    """
    scheme, _, host = origin.lower().partition("://")
    own = _place(scheme, host) if scheme in _PORTS and not (secure and scheme == "http") else None
    if own is None:
        return False  # `null`, for example
    if own == _place(scheme, headers.get("host", "")):
        return True
    told = own == _place(scheme, headers.get("x-forwarded-host", "")) or headers.get("sec-fetch-site") == "same-origin"
    return told and permit(host)


def _place(scheme: str, host: str) -> tuple[str, int] | None:
    """Return name and port of a host; None if it is not one."""
    try:
        parts = urlsplit(f"//{host.strip().lower()}")
        port = parts.port or _PORTS[scheme]
    except ValueError:
        return None
    return (
        (parts.hostname, port) if parts.hostname and parts.netloc == host.strip().lower() and "@" not in host else None
    )
