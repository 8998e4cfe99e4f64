"""Secrets in command lines are masked; everything else stays readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.sources.secrets import mask


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["x", "--password", "hunter2"], "x --password ***"),
        (["x", "--password=hunter2", "y"], "x --password=*** y"),
        (["x", "--api-key=abc"], "x --api-key=***"),
        (["x", "--api_key", "abc", "run"], "x --api_key *** run"),
        (["x", "--hf-token", "hf_abc"], "x --hf-token ***"),
        (["x", "-token", "abc"], "x -token ***"),
        (["x", "--db-passwd=a=b"], "x --db-passwd=***"),
        (["WANDB_API_KEY=abc", "python"], "WANDB_API_KEY=*** python"),
        (["env", "AWS_SECRET_ACCESS_KEY=abc"], "env AWS_SECRET_ACCESS_KEY=***"),
        (["x", "hf_abcdef"], "x ***"),
        (["x", "--key=hf_abcdef"], "x --key=***"),
        (["x", "--model-key=sk-abc"], "x --model-key=***"),
        (["x", "ghp_abc", "glpat-abc", "sk-abc"], "x *** *** ***"),
        (["x", "https://me:pass@host/path"], "x https://me:***@host/path"),
        (["x", "--url=postgres://me:pass@db:5432/x"], "x --url=postgres://me:***@db:5432/x"),
        (["x", "https://me:p@ss@host/path"], "x https://me:***@host/path"),
        (["x", "https://abcdef@host/path"], "x https://***@host/path"),
        (["x", "https://host/?token=abc"], "x https://host/?token=***"),
        (["x", "--secret", "--verbose"], "x --secret --verbose"),
        (["x", "--password"], "x --password"),
    ],
)
def test_secrets_are_masked(arguments: list[str], shown: str) -> None:
    assert mask(arguments) == shown


def test_a_header_with_a_secret_is_masked() -> None:
    assert "abcdef" not in mask(["x", "--header", "Authorization: Bearer abcdef"])


@pytest.mark.parametrize(
    "command",
    [
        "python train.py --max-tokens 100",
        "python train.py --max_new_tokens=100",
        "python train.py --tokenizer foo",
        "python train.py --tokenizer-path=/models/foo",
        "git log --author me",
        "vllm serve Qwen/Qwen3-32B --port 8000 --gpu-memory-utilization 0.90",
        "python -m http.server https://host/path@v2",
        "python sketch.py --keyboard us --monkey banana",
        "ssh user@host",
    ],
)
def test_what_is_no_secret_stays(command: str) -> None:
    assert mask(command.split()) == command


@given(secret=st.text("abcdefXYZ0123456789", min_size=8), before=st.lists(st.text("abc", max_size=3), max_size=3))
def test_the_value_of_a_secret_option_is_never_shown(secret: str, before: list[str]) -> None:
    assert secret not in mask([*before, "--password", secret])
    assert secret not in mask([*before, f"--password={secret}"])
    assert secret not in mask([*before, f"https://me:{secret}@host/"])
