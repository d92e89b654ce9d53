"""Einstein summation: products of tensors, summed over the letters that the result does not have."""

from __future__ import annotations

from ..engine.errors import KernelError
from .sizes import Dim
from .tensor import Tensor, diagonal


def einsum(formula: str, *operands: Tensor) -> Tensor:
    """`einsum("ik,kj->ij", a, b)`. A letter twice in an operand takes its diagonal.

    Without `->` the result has the letters that occur once, in alphabetical order.

    Raises KernelError for letters that do not fit the operands.
    """
    if not isinstance(formula, str):
        raise KernelError(f"einsum needs a formula such as 'ij,jk->ik', got {formula!r}")
    left, arrow, result = formula.replace(" ", "").partition("->")
    terms = left.split(",")
    if not all(isinstance(operand, Tensor) for operand in operands):
        raise KernelError(f"einsum({formula!r}): the operands must be tensors; make inputs with tensor(name, shape)")
    if len(terms) != len(operands):
        raise KernelError(f"einsum({formula!r}) names {len(terms)} operands, got {len(operands)}")
    if not arrow:
        result = "".join(sorted(letter for letter in set(left) - {","} if left.count(letter) == 1))
    sizes = _sizes(formula, terms, operands)
    unknown = [letter for letter in result if letter not in sizes]
    if unknown or len(set(result)) != len(result):
        raise KernelError(f"einsum({formula!r}): the result has the letter {(unknown or list(result))[0]!r} wrongly")
    order = [*result, *(letter for letter in sizes if letter not in result)]
    product: Tensor | None = None
    for term, operand in zip(terms, operands, strict=True):
        aligned = _aligned(term, operand, order)
        product = aligned if product is None else product * aligned
    assert product is not None
    summed = tuple(range(len(result), len(order)))
    full = product.expand(*(sizes[letter] for letter in order))
    return full.sum(summed) if summed else full


def _sizes(formula: str, terms: list[str], operands: tuple[Tensor, ...]) -> dict[str, Dim]:
    sizes: dict[str, Dim] = {}
    for term, operand in zip(terms, operands, strict=True):
        if not term.isalpha() and term or len(term) != operand.ndim:
            raise KernelError(f"einsum({formula!r}): {term!r} needs one letter for each of {operand.ndim} dimensions")
        for letter, size in zip(term, operand.shape, strict=True):
            if sizes.setdefault(letter, size) == 1:
                sizes[letter] = size
            if size not in (1, sizes[letter]):
                raise KernelError(f"einsum({formula!r}): {letter!r} has the sizes {sizes[letter]} and {size}")
    return sizes


def _aligned(term: str, operand: Tensor, order: list[str]) -> Tensor:
    """The operand with its axes in the common order, size 1 where it has no such letter."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            second = term.rindex(letter)
            operand = diagonal(operand, term.index(letter), second)
            term = term[:second] + term[second + 1 :]
    present = [letter for letter in order if letter in term]
    moved = operand.permute(*(term.index(letter) for letter in present))
    return moved[tuple(slice(None) if letter in term else None for letter in order)]
