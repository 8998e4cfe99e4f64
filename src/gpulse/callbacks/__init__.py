"""Callbacks for training frameworks, each in its own module that loads the framework: lightning, transformers, keras, accelerate."""

from __future__ import annotations

# Type checkers and editors read __init__.pyi, which `make docs` generates from this table.
__all__ = ["lightning", "transformers", "keras", "accelerate"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'gpulse.callbacks' has no attribute {name!r}")
    return __import__(f"gpulse.callbacks.{name}", fromlist=[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
