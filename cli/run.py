"""`rulewright run`: compiles one kernel and runs it on arrays from files, or on made-up ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table
from rich.text import Text

from ..engine.arrays import Array, numpy_dtype
from ..kernels.kernel import Argument, Kernel
from ..kernels.reference import default_variables, differences, make_buffers
from ..program import compile_kernel
from .choices import check_choices
from .console import InputError, console, duration, reading
from .kernel_files import find_kernel
from .rule_files import with_builtin


def run_command(
    name: str,
    device: str,
    schedule: str,
    math: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    variables: Sequence[str],
    check: bool,
    rules: Sequence[str] = (),
) -> int:
    """Prints what went in and came out; 1 if `check` finds a difference from NumPy."""
    check_choices(device, schedule)
    kernel = find_kernel(name)
    rule_set = with_builtin(rules) if rules else None
    given = {_argument(kernel, key).slot: Path(path) for key, path in map(_pair, inputs)}
    wanted = {_argument(kernel, key, written=True).slot: Path(path) for key, path in map(_pair, outputs)}
    values = _variables(kernel, variables)
    buffers = _buffers(kernel, values, given)
    begin = time.perf_counter()
    program = compile_kernel(kernel, device, schedule, math, rules=rule_set)
    compiled = time.perf_counter() - begin
    before = [buffer.copy() for buffer in buffers] if check else []
    begin = time.perf_counter()
    program.run_in_place(buffers, values)
    elapsed = time.perf_counter() - begin
    out = console()
    out.print(_table(kernel, buffers, given), Text(f"{program.name} on {device}: "), sep="\n", end="")
    out.print(f"compiled in {duration(compiled)}, run in {duration(elapsed)}")
    for slot, path in wanted.items():
        _save(path, _shaped(kernel.arguments[slot], buffers[slot]))
    return _compare(kernel, before, buffers, values) if check else 0


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise InputError(f"{text!r}: write NAME=VALUE, for example data1=a.npy")
    return key, value


def _argument(kernel: Kernel, key: str, *, written: bool = False) -> Argument:
    """The buffer argument of this name or number."""
    for argument in kernel.arguments:
        if key in (argument.name, str(argument.slot)):
            if written and not argument.written:
                raise InputError(f"the kernel does not write {argument.name}; it writes {_named(kernel.outputs)}")
            return argument
    raise InputError(f"the kernel has no buffer {key!r}; it has {_named(kernel.arguments)}")


def _named(arguments: Sequence[Argument]) -> str:
    return ", ".join(argument.name for argument in arguments)


def _variables(kernel: Kernel, texts: Sequence[str]) -> dict[str, int]:
    values = default_variables(kernel)
    for name, text in map(_pair, texts):
        if name not in values:
            known = ", ".join(values) or "none"
            raise InputError(f"the kernel has no variable {name!r}; it has {known}")
        low, high = kernel.variables[name]
        if not text.lstrip("-").isdecimal() or not low <= int(text) <= high:
            raise InputError(f"variable {name} must be a whole number in {low}..{high}, got {text}")
        values[name] = int(text)
    return values


def _buffers(kernel: Kernel, values: Mapping[str, int], given: Mapping[int, Path]) -> list[Array]:
    """Contents by slot: from the files, else random numbers for what is only read and zeros for what is written."""
    buffers = make_buffers(kernel, values)
    for argument in kernel.arguments:
        made = buffers[argument.slot]
        if argument.slot in given:
            buffers[argument.slot] = _load(given[argument.slot], argument, made)
        elif argument.written:
            made[...] = 0
    return buffers


def _load(path: Path, argument: Argument, like: Array) -> Array:
    with reading(str(path)):
        try:
            array: Array = np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as problem:
            raise InputError(f"{path} is not a NumPy .npy file: {problem}") from None
    expected = numpy_dtype(argument.dtype)
    if not isinstance(array, np.ndarray) or array.dtype != expected:
        raise InputError(f"{path}: {argument.name} holds {expected}, not {getattr(array, 'dtype', 'an archive')}")
    if array.size != like.size:
        raise InputError(f"{path}: {argument.name} needs {like.size} elements, not {array.size}")
    return np.array(array, order="C").reshape(-1)


def _shaped(argument: Argument, buffer: Array) -> Array:
    shape = argument.shape
    if shape is None or not all(isinstance(size, int) for size in shape):
        return buffer
    return buffer.reshape([size for size in shape if isinstance(size, int)])


def _save(path: Path, array: Array) -> None:
    try:
        with path.open("wb") as file:
            np.save(file, array)
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem.strerror}") from None


def _table(kernel: Kernel, buffers: Sequence[Array], given: Mapping[int, Path]) -> Table:
    table = Table("buffer", "type", "shape", "from", "first values", show_edge=False, pad_edge=False)
    for argument in kernel.arguments:
        buffer = buffers[argument.slot]
        origin = str(given.get(argument.slot, "the kernel" if argument.written else "random numbers"))
        shape = "x".join(map(str, _shaped(argument, buffer).shape))
        first = ", ".join(f"{value:.5g}" for value in buffer[:4].tolist()) + (", …" if buffer.size > 4 else "")
        table.add_row(argument.name, argument.dtype.name, shape, Text(origin), first)
    return table


def _compare(kernel: Kernel, before: Sequence[Array], after: Sequence[Array], values: Mapping[str, int]) -> int:
    problems = list(differences(kernel, before, after, values))
    for problem in problems:
        console().print(Text.assemble(("differs from NumPy: ", "bold red"), problem), soft_wrap=True)
    if not problems:
        console().print(Text.assemble(("ok", "bold green"), ": the same as NumPy"))
    return 1 if problems else 0
