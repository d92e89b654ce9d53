"""Settings of all tests: no deadline for a single example, since a busy machine says nothing about correctness."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("rulewright", deadline=None)
settings.load_profile("rulewright")
