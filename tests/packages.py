"""Packages that tests need in the programs they start, and not in this process."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def require(*names: str) -> None:
    """Skip a test or a module where a package is missing.

    Unlike `pytest.importorskip` it imports nothing: each test process would spend 2 s of CPU time on torch, MCP and JupyterLab.
    """
    for name in names:
        if find_spec(name) is None:
            pytest.skip(f"needs {name}", allow_module_level=True)
