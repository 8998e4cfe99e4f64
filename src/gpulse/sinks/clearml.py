"""Log samples to a ClearML task."""

from __future__ import annotations

from ..errors import GpulseError
from .packages import load
from .tracker import TrackerSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Alert
    from .points import Axis

_LEVELS = {"critical": 40, "warn": 30}  # of the module logging


class ClearmlSink(TrackerSink):
    """Logs to `task`, or to the current task; the program closes it. Each tag is a plot of its own.

    `step` "seconds" counts seconds elapsed as iterations, "train" the program's steps, which is better for a task that will be continued:
    ClearML goes on from its largest iteration. An alert is a line of the task's console log, which also
    ends with the lines of code that kept the GPU waiting.
    """

    name = "clearml"

    def __init__(self, task: Any = None, *, step: Axis = "seconds", prefix: str = "gpulse") -> None:
        super().__init__(task, step, prefix)

    def active_run(self) -> Any:
        task = load("clearml", "clearml").Task.current_task()
        if task is None:
            raise GpulseError(
                "no ClearML task is active.", "Call clearml.Task.init() first, or pass ClearmlSink(task)."
            )
        return task

    def log(self, run: Any, values: dict[str, float], step: int) -> None:
        logger = run.get_logger()
        for name, value in values.items():
            logger.report_scalar(name, name, value, step)

    def note(self, run: Any, text: str) -> None:
        run.get_logger().report_text(f"gpulse:\n{text}", print_console=False)

    def report(self, run: Any, alert: Alert) -> None:
        level = _LEVELS.get(alert.severity, 20)
        run.get_logger().report_text(f"gpulse: {alert.text}", level=level, print_console=False)
