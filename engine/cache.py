"""Where compiled rules and kernels are kept between processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_directory() -> Path:
    """`$RULEWRIGHT_CACHE`, or `rulewright` in the user's cache directory."""
    if chosen := os.environ.get("RULEWRIGHT_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "rulewright"
