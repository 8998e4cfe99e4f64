"""A scripted NVIDIA driver for tests.

``library/`` holds the C sources of a ``libnvidia-ml.so.1`` that answers what a
scenario file says; ``scenarios/`` holds such files. `Scenario` loads or builds
one and returns the environment in which any NVML client sees it;
``python -m tests.fake_nvml SCENARIO -- COMMAND`` does that for one command.
"""

from .build import BuildError, library
from .scenario import Clock, Scenario, Work, calls

__all__ = ["BuildError", "Clock", "Scenario", "Work", "calls", "library"]
