"""Headers of requests that change something, as pages of this server, other pages and programs send them; for tests of every server."""

from __future__ import annotations

OWN = "{own}"  # replaced by the origin of the server


def _sent(**headers: str) -> dict[str, str]:
    """Return headers with a body of JSON; `_` in a name is a dash."""
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return {"content-type": "application/json"} | named


TAKEN = {
    "a program": _sent(),
    "JSON with a charset": _sent(content_type="Application/JSON; charset=utf-8"),
    "own page": _sent(origin=OWN),
    "own page of a browser that tells": _sent(origin=OWN, sec_fetch_site="same-origin", sec_fetch_mode="cors"),
    "a person": _sent(sec_fetch_site="none"),
}
FOREIGN = {
    "another port": _sent(origin="http://127.0.0.1:1"),
    "another port of a browser that tells": _sent(origin="http://127.0.0.1:1", sec_fetch_site="same-site"),
    "another host": _sent(origin="http://evil.example"),
    "a name that begins alike": _sent(origin=f"{OWN}.evil.example"),
    "a user name alike": _sent(origin=f"{OWN}@evil.example"),
    "no origin": _sent(origin="null"),
    "no origin, they say": _sent(origin="null", sec_fetch_site="same-origin"),
    "an empty origin": _sent(origin=""),
    "two origins": _sent(origin=f"{OWN},http://evil.example"),
    "another scheme": _sent(origin="chrome-extension://abc"),
    "cross-site": _sent(sec_fetch_site="cross-site"),
    "same-site": _sent(sec_fetch_site="same-site"),
    "cross-site with our origin": _sent(origin=OWN, sec_fetch_site="cross-site"),
    "an unknown word": _sent(sec_fetch_site="x"),
    "a form in a new window": _sent(sec_fetch_site="cross-site", sec_fetch_mode="navigate", sec_fetch_dest="document"),
}
WRONG_TYPES = {
    kind: _sent(content_type=kind)
    for kind in (
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/mixed",
        "text/json",
        "application/jsonp",
    )
}


def at(headers: dict[str, str], own: str) -> dict[str, str]:
    """Return the headers as sent to a server with this origin."""
    return {name: value.replace(OWN, own) for name, value in headers.items()}
