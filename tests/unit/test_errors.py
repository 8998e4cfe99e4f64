"""Every error has a cause, a remedy and the exit code of the contract."""

from __future__ import annotations

import pytest

import gpulse
from gpulse import errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.GpulseError, 1),
        (errors.NoFreeGpu, 1),
        (errors.RecordingError, 1),
        (errors.ConfigError, 2),
        (errors.UsageError, 2),
        (errors.UnknownMetric, 2),
        (errors.UnknownGpu, 2),
        (errors.SourceUnavailable, 3),
        (errors.DriverTimeout, 124),
    ],
)
def test_exit_codes_are_those_of_the_contract(error: type[errors.GpulseError], code: int) -> None:
    assert error.exit_code == code
    assert issubclass(error, gpulse.GpulseError)


def test_an_error_reads_as_cause_and_remedy() -> None:
    assert str(errors.UsageError("it is wrong;", "do it right.")) == "it is wrong; do it right."
    assert str(errors.UsageError("it is wrong", "do it right.")) == "it is wrong; do it right."
    assert str(errors.UsageError("it is wrong.", "Do it right.")) == "it is wrong. Do it right."
    assert str(errors.UsageError("here:\n  ^\n", "Do it right.")) == "here:\n  ^\nDo it right."
    assert str(errors.GpulseError("it is wrong.")) == "it is wrong."


def test_every_error_is_public() -> None:
    classes = {name for name, entry in vars(errors).items() if isinstance(entry, type)}
    assert classes <= set(gpulse.__all__)
