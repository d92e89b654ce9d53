"""From a kernel to a program that runs: lower, rewrite by the rules, linearize, render, build, launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .engine.errors import KernelError, LaunchError
from .engine.linear import BufferParam, LinearKernel
from .engine.linearize import linearize
from .engine.rewriting import RuleSet, Trace
from .engine.target import MATH_MODES, Context
from .engine.uop import UOp
from .kernels.heuristic import default_schedule
from .kernels.kernel import Argument, Kernel
from .kernels.lower import lower
from .kernels.schedule import Option, Schedule, parse_schedule
from .kernels.sizes import evaluate
from .runtimes import devices
from .runtimes.base import Array, Executable, Runtime, numpy_dtype

DEFAULT_DEVICE = "llvm"


@dataclass(frozen=True)
class Program:
    """A compiled kernel. Call it with the inputs, by position or by name; it returns the output, or a tuple of them.

    `source` is the rendered text, `uops` the linear form, `trace` what the rules did, stage by stage.
    """

    kernel: Kernel
    device: str
    schedule: Schedule
    linear: LinearKernel
    source: str
    trace: Trace
    executable: Executable

    @property
    def name(self) -> str:
        return self.linear.name

    @property
    def uops(self) -> tuple[UOp, ...]:
        return self.linear.uops

    @cached_property
    def _slots(self) -> dict[str, Argument]:
        return {argument.name: argument for argument in self.kernel.arguments}

    def __call__(self, *arrays: object, **named: object) -> Any:
        """Runs the kernel. Arrays must have the declared shape and type; variables are passed by name.

        A written buffer that is passed by name gives the starting contents; it is not changed itself.
        Raises LaunchError naming the argument that does not fit.
        """
        variables = self._variables(named)
        given = self._given(arrays, named)
        buffers = [self._buffer(argument, given.get(argument.name), variables) for argument in self.kernel.arguments]
        self.executable([buffer.reshape(-1) for buffer in buffers], variables)
        results = tuple(buffers[argument.slot] for argument in self.kernel.outputs)
        return results[0] if len(results) == 1 else results

    def run_in_place(self, buffers: list[Array], variables: Mapping[str, int] | None = None) -> None:
        """Runs on flat contiguous buffers in slot order; the written ones change in place."""
        self.executable(buffers, dict(variables or {}))

    def _variables(self, named: Mapping[str, object]) -> dict[str, int]:
        values = {}
        for name, (low, high) in self.kernel.variables.items():
            value = named.get(name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool):
                raise LaunchError(f"{self.name}: pass the variable {name}=… as a whole number in {low}..{high}")
            if not low <= value <= high:
                raise LaunchError(f"{self.name}: variable {name} = {value} is outside its bounds {low}..{high}")
            values[name] = int(value)
        return values

    def _given(self, arrays: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
        inputs = [argument.name for argument in self.kernel.inputs]
        if len(arrays) > len(inputs):
            raise LaunchError(f"{self.name} takes {len(inputs)} inputs ({', '.join(inputs)}), got {len(arrays)}")
        given: dict[str, object] = dict(zip(inputs, arrays, strict=False))
        for name, value in named.items():
            if name in self.kernel.variables:
                continue
            if name not in self._slots:
                raise LaunchError(f"{self.name} has no argument {name}; it has {', '.join(self._slots)}")
            if name in given:
                raise LaunchError(f"{self.name}: {name} was passed twice")
            given[name] = value
        missing = [name for name in inputs if name not in given]
        if missing:
            raise LaunchError(f"{self.name}: missing input {', '.join(missing)}")
        return given

    def _buffer(self, argument: Argument, value: object, variables: Mapping[str, int]) -> Array:
        """A contiguous array for one argument; outputs are always fresh."""
        shape = None if argument.shape is None else tuple(evaluate(size, variables) for size in argument.shape)
        dtype = numpy_dtype(argument.dtype)
        if value is None:
            if shape is None:
                raise LaunchError(f"{self.name}: the size of {argument.name} is symbolic; pass an array for it")
            return np.zeros(shape, dtype)
        array = np.asarray(value)
        if array.dtype != dtype:
            raise LaunchError(
                f"{self.name}: {argument.name} must be {dtype}, got {array.dtype}; convert it with .astype"
            )
        if shape is not None and array.shape != shape:
            raise LaunchError(f"{self.name}: {argument.name} must have the shape {shape}, got {array.shape}")
        return np.array(array, order="C") if argument.written else np.ascontiguousarray(array)


def compile_kernel(
    kernel: Kernel,
    device: str = DEFAULT_DEVICE,
    schedule: str | Iterable[Option] = "default",
    math: str = "strict",
    rules: RuleSet | None = None,
    after_stage: Callable[[str, UOp], None] | None = None,
) -> Program:
    """Compiles a kernel for a device.

    `schedule` is "default", "none", options, or their text such as "UPCAST(1, 4)"; `math="fast"` grants all float
    flags. `after_stage(name, graph)` sees the graph after lowering and after each stage of the rules.
    Raises KernelError, RewriteError, RenderError or DeviceError.
    """
    if not isinstance(kernel, Kernel):
        raise KernelError(f"compile needs a kernel, got {kernel!r}; make one with rulewright.kernel(…)")
    if math not in MATH_MODES:
        raise KernelError(f"math is one of {', '.join(MATH_MODES)}, got {math!r}")
    runtime = devices.get(device)
    options = _schedule(kernel, schedule, runtime)
    linear, trace = generate(kernel, runtime, options, math, rules, after_stage)
    source = runtime.renderer.render(linear)
    return Program(kernel, device, options, linear, source, trace, runtime.build(linear, source))


def generate(
    kernel: Kernel,
    runtime: Runtime,
    options: Schedule,
    math: str = "strict",
    rules: RuleSet | None = None,
    after_stage: Callable[[str, UOp], None] | None = None,
) -> tuple[LinearKernel, Trace]:
    """The linear form of a kernel, and what the rules did on the way."""
    if math not in MATH_MODES:
        raise KernelError(f"math must be one of {', '.join(MATH_MODES)}, got {math!r}")
    target = runtime.renderer.target
    graph = lower(kernel, options, target)
    if after_stage is not None:
        after_stage("lower", graph)
    ruleset = rules or RuleSet.builtin()
    graph, trace = ruleset.rewrite(graph, "kernel", Context(target, MATH_MODES[math]), after_stage=after_stage)
    return _with_all_buffers(kernel, linearize(graph, kernel.name)), trace


def _with_all_buffers(kernel: Kernel, linear: LinearKernel) -> LinearKernel:
    """Also the buffers that the rules found not to be needed: callers pass every argument."""
    used = {param.slot: param for param in linear.buffers}
    unused = {a.slot: BufferParam(a.slot, a.dtype, None, a.written) for a in kernel.arguments}
    return replace(linear, buffers=tuple((unused | used)[slot] for slot in sorted(unused)))


def _schedule(kernel: Kernel, schedule: str | Iterable[Option], runtime: Runtime) -> Schedule:
    if not isinstance(schedule, str):
        if not isinstance(schedule, list | tuple) or not all(isinstance(option, Option) for option in schedule):
            raise KernelError(f"a schedule is `default`, `none`, options or their text, got {schedule!r}")
        return tuple(schedule)
    if schedule == "default":
        return default_schedule(kernel, runtime.renderer.target, devices.default_threads())
    return () if schedule == "none" else parse_schedule(schedule)
