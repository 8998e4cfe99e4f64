"""Delivery of alerts: webhook, Apprise, command, bell and page.

May import: analysis, present, store, model. Never here: what an alert is.
"""

from __future__ import annotations

from .alerts import Alerts

__all__ = ["Alerts"]
