"""The server against its own OpenAPI document, in a pytest of its own, because the plugin of schemathesis is slow to load."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from gpulse.live.api import QUESTIONS
from tests.e2e.lab import ROOT
from tests.packages import require


def test_every_answer_is_one_that_the_document_names() -> None:
    require("schemathesis", "uvicorn")
    cases = Path(__file__).with_name("openapi_cases.py")
    options = ("-p", "schemathesis.pytest.plugin", "-p", "no:cacheprovider", "--tb=short")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(cases)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout
    assert int(passed[1]) > len(QUESTIONS), "one for each question, and the document itself"
