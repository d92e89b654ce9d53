"""Rewriting: rules compiled to Python, matched by decision trees, applied to a fixed point."""

from .fixed_point import LoopError, Report, Step, StopReason
from .ruleset import RuleSet, Trace

__all__ = ["LoopError", "Report", "RuleSet", "Step", "StopReason", "Trace"]
