"""Public names and their parameters stay as they are: what a release has promised is compared, name by name."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import gpulse
from gpulse import sinks, testing

PROMISED = Path(__file__).parents[1] / "golden" / "public_names.txt"


def parameters(value: object) -> str:
    """Return the parameters without their types: names, and = where there is a default."""
    try:
        found = inspect.signature(value).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    shown = [
        str(one).split(":")[0].split("=")[0].strip() + ("=" if one.default is not one.empty else "") for one in found
    ]
    names = ["*" * name.count("*") or name for name in shown]  # what collects the rest has a name only inside
    return f"({', '.join(name for name in names if name != 'self')})"


def names(module: ModuleType) -> Iterator[str]:
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            continue
        yield f"{module.__name__}.{name}{parameters(value) if callable(value) else ''}"
        hooks = (
            inspect.isclass(value) and issubclass(value, sinks.Sink) and value is not sinks.Sink
        )  # its members are Sink's
        for key in sorted(dir(value)) if inspect.isclass(value) and not hooks else ():
            if not key.startswith("_") and not hasattr(BaseException, key):
                member = getattr(value, key)
                yield f"{module.__name__}.{name}.{key}{parameters(member) if inspect.isfunction(member) else ''}"


def test_public_names_and_parameters_are_those_of_the_release() -> None:
    """What goes or changes breaks programs (docs/stability.md); GPULSE_UPDATE=1 adds what is new."""
    found = [line for module in (gpulse, sinks, testing) for line in names(module)]
    if os.environ.get("GPULSE_UPDATE"):
        PROMISED.write_text("\n".join(found) + "\n")
    promised = PROMISED.read_text().splitlines()
    assert [line for line in promised if line not in found] == [], "gone or changed"
