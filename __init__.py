"""Rulewright: fast kernels from declarative rewrite rules.

import rulewright as rw

a = rw.tensor("a", (64, 128), "float32")
b = rw.tensor("b", (128, 32), "float32")
program = rw.compile(rw.kernel((a[:, :, None] * b[None]).sum(1)))
c = program(a=..., b=...)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .engine.errors import RulewrightError as RulewrightError
    from .engine.rewriting import RuleSet as RuleSet
    from .kernels.build import kernel as kernel
    from .kernels.einsum import einsum as einsum
    from .kernels.functions import abs_ as abs
    from .kernels.functions import ceil as ceil
    from .kernels.functions import cos as cos
    from .kernels.functions import exp as exp
    from .kernels.functions import exp2 as exp2
    from .kernels.functions import floor as floor
    from .kernels.functions import log as log
    from .kernels.functions import log2 as log2
    from .kernels.functions import maximum as maximum
    from .kernels.functions import minimum as minimum
    from .kernels.functions import recip as recip
    from .kernels.functions import relu as relu
    from .kernels.functions import round_ as round
    from .kernels.functions import sigmoid as sigmoid
    from .kernels.functions import sin as sin
    from .kernels.functions import sqrt as sqrt
    from .kernels.functions import tanh as tanh
    from .kernels.json_form import read_kernel as read_kernel
    from .kernels.json_form import read_kernels as read_kernels
    from .kernels.json_form import write_kernel as write_kernel
    from .kernels.kernel import Kernel as Kernel
    from .kernels.sizes import var as var
    from .kernels.tensor import Tensor as Tensor
    from .kernels.tensor import tensor as tensor
    from .kernels.tensor import where as where
    from .program import Program as Program
    from .program import compile_kernel as compile

_PLACES = {
    "RulewrightError": ("engine.errors", "RulewrightError"),
    "RuleSet": ("engine.rewriting", "RuleSet"),
    "kernel": ("kernels.build", "kernel"),
    "einsum": ("kernels.einsum", "einsum"),
    "Kernel": ("kernels.kernel", "Kernel"),
    "var": ("kernels.sizes", "var"),
    "Tensor": ("kernels.tensor", "Tensor"),
    "tensor": ("kernels.tensor", "tensor"),
    "where": ("kernels.tensor", "where"),
    "Program": ("program", "Program"),
    "compile": ("program", "compile_kernel"),
    **{name: ("kernels.json_form", name) for name in ("read_kernel", "read_kernels", "write_kernel")},
    **{
        name.rstrip("_"): ("kernels.functions", name)
        for name in (
            "abs_", "ceil", "cos", "exp", "exp2", "floor", "log", "log2", "maximum", "minimum", "recip", "relu", "round_",
            "sigmoid", "sin", "sqrt", "tanh",
        )
    },
}  # fmt: skip
"""Public names and where they live: loaded when first asked for, so that importing the package is quick."""

__all__ = [
    "Kernel",
    "Program",
    "RuleSet",
    "RulewrightError",
    "Tensor",
    "abs",
    "ceil",
    "compile",
    "cos",
    "einsum",
    "exp",
    "exp2",
    "floor",
    "kernel",
    "log",
    "log2",
    "maximum",
    "minimum",
    "read_kernel",
    "read_kernels",
    "recip",
    "relu",
    "round",
    "sigmoid",
    "sin",
    "sqrt",
    "tanh",
    "tensor",
    "var",
    "where",
    "write_kernel",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _PLACES[name]
    value = getattr(import_module(f".{module}", __name__), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
