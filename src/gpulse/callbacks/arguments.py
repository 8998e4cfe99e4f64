"""Types of the arguments that callbacks share with Monitor.

They are real objects and not only for type checkers: LightningCLI and jsonargparse read them from the signatures to check and
convert the values of a YAML file. A framework has loaded `typing` already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from ..sinks.base import Sink

Sinks: TypeAlias = Sink | str | Sequence[Sink | str]
Gpus: TypeAlias = str | int | Sequence[str | int]
Flops: TypeAlias = float | Literal["count"] | None
Mode: TypeAlias = Literal["process", "thread"]
Ranks: TypeAlias = Literal["one", "all"]
