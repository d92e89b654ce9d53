"""Is a rule right? The cases that stand beside the rules, and checks of what they claim.

For one's own tests: `check_rules`, `RuleStrategy`, `graphs`, `check_pipeline`. They need hypothesis, which is only
imported when one of them is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api import Application, RuleRefuted, RuleStrategy, check_rules
    from .pipelines import check_pipeline, graphs

__all__ = ["Application", "RuleRefuted", "RuleStrategy", "check_pipeline", "check_rules", "graphs"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import api, pipelines

    return getattr(pipelines if name in ("check_pipeline", "graphs") else api, name)
