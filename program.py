"""From a kernel to a program that runs: lower, rewrite by the rules, linearize, render, build, launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .engine.errors import KernelError, LaunchError
from .engine.estimates import Estimates, estimate
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
from .runtimes.base import Array, Bound, Executable, Runtime
from .signature import Signature

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
        return tuple(node for part in self.linear.parts for node in part.uops)

    def estimates(self, **variables: int) -> Estimates:
        """The operations and bytes of one launch, for these values of the variables (`engine.estimates`)."""
        return estimate(self.linear, self.signature.variables(variables))

    @cached_property
    def signature(self) -> Signature:
        """What a caller passes."""
        return Signature(self.kernel, self.name)

    def __call__(self, *arrays: object, **named: object) -> Any:
        """Runs the kernel. Arrays must have the declared shape and type; variables are passed by name.

        A written buffer that is passed by name gives the starting contents; it is not changed itself.
        Raises LaunchError naming the argument that does not fit.
        """
        variables = self.signature.variables(named)
        buffers = self.signature.buffers(arrays, named, variables)
        self.executable([buffer.reshape(-1) for buffer in buffers], variables)
        results = tuple(buffers[argument.slot] for argument in self.kernel.outputs)
        return results[0] if len(results) == 1 else results

    def bind(self, *arrays: object, **named: object) -> Launch:
        """The program with buffers of its own on the device, to be run again and again without passing them.

        Arguments as for a call; the buffers begin as copies of them.
        """
        variables = self.signature.variables(named)
        buffers = [buffer.flatten() for buffer in self.signature.buffers(arrays, named, variables)]
        return Launch(self, self.executable.bind(buffers, variables), variables)

    def run_in_place(self, buffers: list[Array], variables: Mapping[str, int] | None = None) -> None:
        """Runs on flat contiguous buffers in slot order; the written ones change in place.

        Raises LaunchError naming the buffer that does not fit.
        """
        values = self.signature.variables(variables or {})
        self.signature.check_flat(buffers, values)
        self.executable(buffers, values)


@dataclass(frozen=True)
class Launch:
    """A program bound to its buffers. Call it to run; `launch["out"]` is what a buffer holds then.

    On devices that work in the host's memory that is the buffer itself, to be read and changed in place, elsewhere a
    copy of it; `launch["a"] = array` replaces the contents everywhere.
    """

    program: Program
    bound: Bound
    variables: Mapping[str, int]

    def __call__(self) -> None:
        """Runs the program on its buffers and waits for it."""
        self.bound.run()

    def __getitem__(self, name: str) -> Array:
        argument = self._argument(name)
        flat = self.bound.read(argument.slot)
        shape = argument.shape
        return flat if shape is None else flat.reshape([evaluate(size, self.variables) for size in shape])

    def __setitem__(self, name: str, value: object) -> None:
        """Replaces what a buffer holds. Raises LaunchError for another size or type."""
        argument = self._argument(name)
        array, before = np.asarray(value), self.bound.read(argument.slot)
        if array.dtype != before.dtype or array.size != before.size:
            raise LaunchError(
                f"{self.program.name}: {name} holds {before.size} elements of {before.dtype}, "
                f"got {array.size} of {array.dtype}"
            )
        self.bound.write(argument.slot, array.reshape(-1))

    def _argument(self, name: str) -> Argument:
        parameters = self.program.signature.parameters
        if name not in parameters:
            raise LaunchError(f"{self.program.name} has no argument {name}; it has {', '.join(parameters)}")
        return parameters[name].argument


def compile_kernel(
    kernel: Kernel,
    device: str = DEFAULT_DEVICE,
    schedule: str | Iterable[Option] = "default",
    math: str = "strict",
    rules: RuleSet | None = None,
    after_stage: Callable[[str, UOp], None] | None = None,
) -> Program:
    """Compiles a kernel for a device.

    `schedule` is "default", "none", "search" (what `rulewright.tuning` finds by measuring), options, or their text such
    as "UPCAST(1, 4)"; `math="fast"` grants all float flags. `after_stage(name, graph)` sees the graph after lowering and
    after each stage of the rules.
    Raises KernelError, RewriteError, RenderError or DeviceError.
    """
    if not isinstance(kernel, Kernel):
        raise KernelError(f"compile needs a kernel, got {kernel!r}; make one with rulewright.kernel(…)")
    if math not in MATH_MODES:
        raise KernelError(f"math is one of {', '.join(MATH_MODES)}, got {math!r}")
    runtime = devices.get(device)
    options = _schedule(kernel, schedule, runtime, math)
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
    every = unused | used
    joined: LinearKernel | None = None
    for part in reversed(linear.parts):
        joined = replace(part, buffers=tuple(every[slot] for slot in sorted(every)), then=joined)
    return joined or linear


def _schedule(kernel: Kernel, schedule: str | Iterable[Option], runtime: Runtime, math: str) -> Schedule:
    if not isinstance(schedule, str):
        if not isinstance(schedule, list | tuple) or not all(isinstance(option, Option) for option in schedule):
            raise KernelError(f"a schedule is `default`, `none`, `search`, options or their text, got {schedule!r}")
        return tuple(schedule)
    if schedule == "default":
        return default_schedule(kernel, runtime.renderer.target, devices.default_threads())
    if schedule == "search":
        from .tuning import searched_schedule  # which starts processes that compile by this module

        return searched_schedule(kernel, runtime.name, math)
    return () if schedule == "none" else parse_schedule(schedule)
