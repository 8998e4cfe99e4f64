"""The server against its own OpenAPI document: schemathesis asks whatever the document allows, and more; see test_serve_openapi.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from gpulse.surfaces.web.openapi import QUESTIONS, document
from tests.e2e.serving import Serving

ASKED = [question.path for question in QUESTIONS] + ["/healthz", "/readyz", "/metrics"]  # a stream would never end


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("serve"), "--interval", "0.2") as server:
        server.until("/readyz", 200)
        yield server
        assert server.err == ""


def loaded() -> Any:
    plain = json.loads(json.dumps(document(QUESTIONS)))
    plain["paths"] = {path: entry for path, entry in plain["paths"].items() if path in ASKED}
    return schemathesis.openapi.from_dict(plain)


schema = loaded()


def test_the_document_that_is_served_is_this_one(server: Serving) -> None:
    assert server.json("/api/openapi.json") == json.loads(json.dumps(document(QUESTIONS)))


@schema.parametrize()  # type: ignore[untyped-decorator]
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_one_that_the_document_names(case: Any, server: Serving) -> None:
    answer = case.call(
        base_url=f"http://127.0.0.1:{server.port}", headers={"Authorization": f"Bearer {server.token}"}, timeout=30
    )
    case.validate_response(answer, excluded_checks=excluded(case))


def excluded(case: Any) -> list[Any]:
    """Checks that do not fit: from after to is refused although each is fine, and what is open needs no token."""
    from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

    return (
        [ignored_auth, positive_data_acceptance]
        if case.path in ("/api/history", "/api/events", "/api/processes", "/api/usage", "/api/compare", "/api/alerts")
        else [ignored_auth]
    )
