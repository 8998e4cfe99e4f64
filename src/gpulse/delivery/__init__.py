"""Alerts on their way to people: rules over snapshots, and a webhook, a command, a bell or a page for what they find.

May import: analysis, present, store, model. Never here: what an alert is.
"""

from __future__ import annotations

from .alerts import Alerts

__all__ = ["Alerts"]
