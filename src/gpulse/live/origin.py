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
    """Return whether an origin is that of this server, as the client or a proxy names it.

    A proxy may have removed the port from Host; then a browser's word that the origin is the same is enough for a name of this server.
    Pages cannot set X-Forwarded-Host: browsers would ask this server first, which allows no such request.
    """
    scheme, _, host = origin.lower().partition("://")
    if scheme not in _PORTS or not host or (secure and scheme != "https"):
        return False  # `null`, for example
    named = [value for key in ("host", "x-forwarded-host") if (value := headers.get(key))]
    if (own := _place(scheme, host)) is not None and own in [_place(scheme, value.strip().lower()) for value in named]:
        return True
    return headers.get("sec-fetch-site") == "same-origin" and permit(host)


def _place(scheme: str, host: str) -> tuple[str | None, int] | None:
    """Return name and port of a host; None if it is not one."""
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname, parts.port or _PORTS[scheme]) if parts.netloc == host else None
    except ValueError:
        return None
