"""Settings of all tests: no deadline for a single example, since a busy machine says nothing about correctness.

`pytest --hypothesis-profile=nightly` tries 20,000 examples of each property, where the daily run tries 100 or so.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("rulewright", deadline=None)
settings.register_profile("nightly", deadline=None, max_examples=20_000)
settings.load_profile("rulewright")
