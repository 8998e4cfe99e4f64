"""Callbacks for training frameworks, each in its own module that loads the framework: lightning, transformers, keras, accelerate."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import accelerate as accelerate
    from . import keras as keras
    from . import lightning as lightning
    from . import transformers as transformers

__all__ = ["lightning", "transformers", "keras", "accelerate"]


if not TYPE_CHECKING:  # else a misspelled name would be an object to type checkers

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'gpulse.callbacks' has no attribute {name!r}")
        return __import__(f"gpulse.callbacks.{name}", fromlist=[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
