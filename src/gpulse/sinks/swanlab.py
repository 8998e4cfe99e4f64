"""Log samples to a SwanLab run."""

from __future__ import annotations

from ..errors import GpulseError
from .packages import load
from .tracker import TrackerSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .points import Axis


class SwanlabSink(TrackerSink):
    """Logs to `run`, or to the active run; the program finishes it. Steps are separate for each name, so the program's do not change.

    `step` "seconds" counts seconds elapsed, "train" the program's steps.
    """

    name = "swanlab"

    def __init__(self, run: Any = None, *, step: Axis = "seconds", prefix: str = "gpulse") -> None:
        super().__init__(run, step, prefix)

    def active_run(self) -> Any:
        swanlab = load("swanlab", "swanlab")
        try:
            run = swanlab.get_run()
        except RuntimeError:  # older versions return None
            run = None
        if run is None:
            raise GpulseError("no SwanLab run is active.", "Call swanlab.init() first, or pass SwanlabSink(run).")
        return run

    def runs(self, run: Any) -> bool:
        return bool(getattr(run, "alive", True))

    def log(self, run: Any, values: dict[str, float], step: int) -> None:
        run.log(values, step=step)
