"""The few things that go wrong, each with its cause, its remedy and its exit code."""

from __future__ import annotations


class GpulseError(Exception):
    """Any failure gpulse reports: `message` says what is wrong, `remedy` what to do about it."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        space = "" if self.message.endswith("\n") else " "
        return f"{self.message}{space}{self.remedy}".rstrip()


class UsageError(GpulseError):
    """The request itself is wrong: an option, a value, a name."""

    exit_code = 2


class UnknownMetric(UsageError):
    """A metric that the catalog does not have."""


class UnknownGpu(UsageError):
    """A GPU that this machine does not have."""


class SourceUnavailable(GpulseError):
    """No GPU can be read from a source; `remedy` says how to change that."""

    exit_code = 3


class DriverTimeout(SourceUnavailable):
    """A driver that does not answer at all."""

    exit_code = 124


class NoFreeGpu(GpulseError):
    """Fewer free GPUs than were asked for; the message says of each that is not free why."""


class RecordingError(GpulseError):
    """A recording that cannot be opened, read or written."""


class ConfigError(GpulseError):
    """A configuration file that cannot be read, understood or written."""

    exit_code = 2
