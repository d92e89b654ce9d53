"""The functions that every formula may call: their arguments and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Argument = Literal["node", "nodes", "value", "type", "type or node", "text", "operator"]
"""What an argument must be: a name that the left side bound to a node (or to several, `...xs`), a number, …"""


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function of formulas. `doc` completes "it gives …"."""

    arguments: tuple[Argument, ...]
    doc: str

    @property
    def arity(self) -> int:
        return len(self.arguments)


BUILTINS: dict[str, Builtin] = {
    "min": Builtin(("node",), "the least value that the node can have, as far as is known"),
    "max": Builtin(("node",), "the greatest value that the node can have, as far as is known"),
    "divides": Builtin(
        ("value", "node"),
        "whether every value of the node is proven to be a multiple of the number",
    ),
    "aligned": Builtin(
        ("node", "value"),
        "whether every value of the node is proven to be a multiple of the number",
    ),
    "fits": Builtin(
        ("node", "type"),
        "whether every value of the node is proven to be one of the type",
    ),
    "uses": Builtin(
        ("nodes", "nodes"),
        "whether the first varies with one of the ranges that the second names",
    ),
    "varies": Builtin(("node",), "whether the node varies with any range at all"),
    "extent": Builtin(("node",), "the number of steps of a range; none if it is symbolic"),
    "kind": Builtin(
        ("node",),
        'the kind of a range or a hardware index: `"reduce"`, `"upcast"`, `"local"`',
    ),
    "dtype": Builtin(("node",), "the type of one lane of the node"),
    "width": Builtin(("nodes",), "the number of lanes of the node, or how many nodes `...xs` stands for"),
    "bits": Builtin(("type or node",), "the number of bits of one lane"),
    "size": Builtin(
        ("node",),
        "the number of elements of a buffer, in `decreases` the number of nodes",
    ),
    "image": Builtin(("node",), "the width in texels of a buffer that is an image, 0 for another"),
    "constant": Builtin(("node",), "whether the node is a constant"),
    "less": Builtin(
        ("node", "node"), "whether the first is proven to be less than the second, what both share cancelled"
    ),
    "at_most": Builtin(("node", "node"), "whether the first is proven to be at most the second"),
    "factor": Builtin(("node",), "the greatest constant factor that every term of a sum has; 0 for the constant 0"),
    "ratio": Builtin(("node", "node"), "the constant c with x = c * y as sums; 0 if there is none"),
    "cancels": Builtin(
        ("node", "value", "node"),
        "whether every term of the number times the first is in the third with the opposite sign",
    ),
    "modulus": Builtin(("node",), "the greatest known m such that all values are equal modulo m; 0 for one value"),
    "remainder": Builtin(("node",), "the value modulo `modulus`; of a constant the value"),
    "gcd": Builtin(("value", "value"), "the greatest common divisor of two numbers"),
    "identity": Builtin(
        ("operator",),
        "the value that a reduction by the operator starts with; only inside `{…}`",
    ),
    "target.has": Builtin(("text",), "whether the target has the feature"),
    "target.width": Builtin(("value",), "whether the target has vectors of so many lanes"),
    "target.half": Builtin(
        ("value",),
        "about half of so many lanes, a multiple of the widest vector of the target that is narrower",
    ),
}
