"""The exceptions that Rulewright raises: one root, a few kinds below it.

Each message says what is wrong, where, and what to do next. The command line prints the message of a
`RulewrightError` without a traceback; anything else that escapes is a bug of ours.
"""

from __future__ import annotations


class RulewrightError(Exception):
    """Root of every error that a user's input can cause."""


class GraphError(RulewrightError):
    """A node or a graph breaks the rules of the intermediate form (types, arity, scope)."""


class KernelError(RulewrightError):
    """A kernel description or a schedule option is not legal."""


class RewriteError(RulewrightError):
    """Rewriting stopped before a fixed point: the rules loop or the fuel ran out."""


class RenderError(RulewrightError):
    """A target cannot express a node; names the operator and the device."""


class DeviceError(RulewrightError):
    """A device is absent, or refused to build or run a program."""


class LaunchError(RulewrightError):
    """A compiled program was called with arguments that do not fit it."""
