"""Public names of a package that are loaded at their first use."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def load_public(package: str, name: str, homes: Mapping[str, str]) -> object:
    """Return a public name of a package; `homes` has the module of each. Raise AttributeError for any other name."""
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    found = getattr(__import__(f"{package}.{homes[name]}", fromlist=[name]), name)
    setattr(sys.modules[package], name, found)
    return found
