"""A refusal: a question that cannot be answered, with the HTTP status that says so."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Refusal(Exception):
    """A question that gets an error for an answer: `status` of HTTP, `detail` in a sentence."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers
