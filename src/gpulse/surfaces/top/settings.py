"""Settings of the screen: what a user chose, with the defaults."""

from __future__ import annotations


class Settings:
    """What is kept between runs; every attribute is one key of the [top] table of the configuration file."""

    def __init__(self) -> None:
        self.interval = 1.0
        self.columns = [
            "gpu",
            "pid",
            "user",
            "type",
            "memory_used",
            "sm_utilization",
            "cpu_percent",
            "host_memory",
            "running_time",
            "command",
        ]
        self.charts = ["utilization", "sm_active", "memory_percent"]
        self.sort = "memory_used"
        self.falling = True
        self.theme = "dark"
        self.fahrenheit = False
        self.decimal = False  # MB instead of MiB
        self.panels = ["host", "charts", "processes"]
