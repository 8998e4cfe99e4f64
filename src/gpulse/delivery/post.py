"""One HTTP POST: certificates are checked, redirects are not followed, since they would carry headers elsewhere."""

from __future__ import annotations

from ..present.text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LONGEST_DETAIL = 200


class Answer:
    """What came of a POST: `why` it failed, empty if it did not; whether to try `again`, and `after` how many seconds if the
    other side says so; and the `detail` it gave, one line of untrusted text."""

    __slots__ = ("after", "again", "detail", "why")

    def __init__(self, why: str = "", again: bool = False, after: float | None = None, detail: str = "") -> None:
        self.why = why
        self.again = again
        self.after = after
        self.detail = detail


class Poster:
    """Posts to a URL, which may be a secret; `ca_file` names the certificates to trust instead of the system's."""

    def __init__(self, url: str, timeout: float, ca_file: str | None = None) -> None:
        self.url = url
        self._timeout = timeout
        self._ca_file = ca_file
        self._opener: Any = None

    def post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Post once; what may get better (no answer, 408, 429, 5xx) is worth another try."""
        import http.client
        from urllib.error import HTTPError
        from urllib.request import Request

        try:
            request = Request(self.url, body, dict(headers), method="POST")
            with self._opened().open(request, timeout=self._timeout):
                return Answer()
        except HTTPError as error:
            with error:
                moved = "; use the address it redirects to" if 300 <= error.code < 400 else ""
                again = error.code in (408, 429) or error.code >= 500
                return Answer(
                    f"responded with status {error.code}{moved}", again, _seconds(error.headers), _detail(error)
                )
        except OSError as error:
            reason = getattr(error, "reason", None) or error
            told = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            return Answer("no response in time" if isinstance(reason, TimeoutError) else told, True)
        except (http.client.HTTPException, ValueError) as error:
            return Answer(f"invalid response ({type(error).__name__})", True)  # their texts repeat the URL

    def _opened(self) -> Any:
        if self._opener is None:
            from urllib.request import HTTPRedirectHandler, HTTPSHandler, build_opener

            class Stay(HTTPRedirectHandler):
                def redirect_request(self, *_: Any) -> None:
                    return None

            handlers: list[Any] = [Stay]
            if self._ca_file is not None:
                import ssl

                handlers.append(HTTPSHandler(context=ssl.create_default_context(cafile=self._ca_file)))
            self._opener = build_opener(*handlers)
        return self._opener


def masked(url: str) -> str:
    """Return a URL as it may be shown: user, path and query are often the secret itself."""
    scheme, _, rest = url.partition("://")
    place, *more = rest.replace("?", "/").replace("#", "/").split("/", 1)
    return f"{scheme}://{place.rpartition('@')[2]}" + ("/***" if more and more[0] else "")


def _detail(error: Any) -> str:
    try:
        lines = error.read(4096).decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return clean(lines[0])[:_LONGEST_DETAIL] if lines else ""


def _seconds(headers: Any) -> float | None:
    given = (headers.get("Retry-After") or "").strip()
    return float(given) if given.isdecimal() and len(given) < 6 else None
