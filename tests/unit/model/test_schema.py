from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

import gpulse
from gpulse.model.codec import snapshot_schema, to_plain

VALID = Draft202012Validator(snapshot_schema())


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return to_plain(gpulse.snapshot(source="demo"))


def test_the_schema_is_a_schema_and_has_every_metric() -> None:
    Draft202012Validator.check_schema(snapshot_schema())
    assert snapshot_schema()["$defs"]["gpu"]["properties"]["memory_used"]["type"] == ["number", "null"]
    assert "Unit: B." in snapshot_schema()["$defs"]["gpu"]["properties"]["memory_used"]["description"]


def test_a_snapshot_is_valid_and_wrong_types_are_not(plain: dict[str, Any]) -> None:
    VALID.validate(plain)
    for key, value in (("utilization", "97"), ("state", "gone"), ("gaps", {"utilization": "because"})):
        wrong = json.loads(json.dumps(plain))
        wrong["gpus"][0][key] = value
        with pytest.raises(ValidationError):
            VALID.validate(wrong)
