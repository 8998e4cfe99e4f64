"""Which requests the handlers of the extension take from browsers."""

from __future__ import annotations

import re

import tornado.web as web
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import ensure_async

from ...live.origin import READS, is_foreign, is_json


class OwnPages(JupyterHandler):  # type: ignore[misc]
    """Refuses requests of other servers' pages unless ServerApp.allow_origin permits them.

    Jupyter itself takes any page that has the token, also for a WebSocket.
    """

    async def prepare(self, **named: bool) -> None:
        """Check who sends a request, and that a change is sent as JSON."""
        await ensure_async(super().prepare(**named))
        request = self.request
        headers = {name.lower(): value for name, value in request.headers.items()}
        foreign = is_foreign(request.method, headers, lambda host: True, request.protocol == "https")
        if foreign and not self._is_permitted(headers.get("origin", "").lower()):
            raise web.HTTPError(403, "a page of another server sent this request")
        if request.method not in (*READS, "OPTIONS") and not is_json(headers):
            raise web.HTTPError(415, "send JSON, with the header Content-Type: application/json")

    def _is_permitted(self, origin: str) -> bool:
        """Return whether the settings of Jupyter permit an origin."""
        if self.allow_origin:
            return self.allow_origin in ("*", origin)
        return bool(self.allow_origin_pat and re.fullmatch(self.allow_origin_pat, origin))
