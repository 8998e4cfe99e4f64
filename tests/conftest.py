"""What every test runs under."""

from __future__ import annotations

from hypothesis import settings

# No test fails because the machine is busy: speed is measured in bench/, side by side with peers.
settings.register_profile("gpulse", deadline=None)
settings.load_profile("gpulse")
