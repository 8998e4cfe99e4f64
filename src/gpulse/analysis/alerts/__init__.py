"""Alerts: rules that check snapshots and report once when a condition begins and once when it ends."""

from __future__ import annotations

from .rule_set import RuleSet
from .settings import BUILT_IN, ON_REQUEST, rules_from
from .transition import Desk, Notice, TellingPolicy, Transition

__all__ = ["BUILT_IN", "ON_REQUEST", "Desk", "Notice", "RuleSet", "TellingPolicy", "Transition", "rules_from"]
