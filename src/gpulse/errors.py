"""Errors, each with its cause, its remedy and its exit code."""

from __future__ import annotations

on_command_line = False  # set by the command line, so that remedies name its options instead of Python's arguments


class GpulseError(Exception):
    """Base class of all errors of gpulse: `message` says what is wrong, `remedy` what to do about it.

    `option` is the remedy on the command line, where it has other words for it than Python.
    """

    exit_code = 1

    def __init__(self, message: str, remedy: str = "", *, option: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = option if option and on_command_line else remedy

    def __str__(self) -> str:
        if not self.remedy:
            return self.message
        joint = "" if self.message.endswith("\n") else " " if self.message.endswith((".", ";", ":", "?")) else "; "
        return f"{self.message}{joint}{self.remedy}"


class UsageError(GpulseError):
    """An invalid request: a wrong option, value or name."""

    exit_code = 2


class UnknownMetric(UsageError):
    """A metric that is not in the catalog."""


class UnknownGpu(UsageError):
    """A GPU that this machine does not have."""


class SourceUnavailable(GpulseError):
    """A source cannot read any GPU; `remedy` says how to fix it, `driver_code` is what NVML returned, if anything."""

    exit_code = 3

    def __init__(self, message: str, remedy: str = "", driver_code: int = 0, *, option: str = "") -> None:
        super().__init__(message, remedy, option=option)
        self.driver_code = driver_code


class DriverTimeout(SourceUnavailable):
    """A driver that does not respond."""

    exit_code = 124


class NoFreeGpu(GpulseError):
    """Fewer free GPUs than requested; the message says why each of the others is not free."""


class RecordingError(GpulseError):
    """A recording that cannot be opened, read or written."""


class ConfigError(GpulseError):
    """A configuration file that cannot be read, parsed or written."""

    exit_code = 2
