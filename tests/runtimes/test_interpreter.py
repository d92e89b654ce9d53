"""The interpreter: what it checks beyond what every device must do (that is in test_execution.py)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from rulewright.engine import dtypes as d
from rulewright.engine import ops
from rulewright.engine.dtypes import DType
from rulewright.engine.errors import DeviceError
from rulewright.engine.linear import LinearKernel
from rulewright.engine.linearize import linearize
from rulewright.engine.ops import AxisKind, BufferArg, Op, RangeArg, SpecialArg, ThreadKind, VarArg
from rulewright.engine.uop import UOp, buffer, const, make
from rulewright.renderers.listing import ListingRenderer
from rulewright.runtimes import interpreter
from rulewright.runtimes.interpreter import Interpreter

OUT, DATA = buffer(0, d.int32, None), buffer(1, d.int32, None)
Data = npt.NDArray[Any]


def num(value: int) -> UOp:
    return const(d.int32, value)


def group(size: int | UOp) -> UOp:
    return make(ops.SPECIAL, num(size) if isinstance(size, int) else size, arg=SpecialArg(ThreadKind.GROUP, 0))


def local(size: int) -> UOp:
    return make(ops.SPECIAL, num(size), arg=SpecialArg(ThreadKind.LOCAL, 0))


def shared(size: int, slot: int = 0, dtype: DType = d.int32) -> UOp:
    return make(ops.LOCAL, dtype=dtype.ptr("local"), arg=BufferArg(slot, size))


def loop(axis: int, end: int | UOp, kind: AxisKind = AxisKind.LOOP) -> UOp:
    return make(ops.RANGE, num(end) if isinstance(end, int) else end, arg=RangeArg(axis, kind))


def total(value: UOp, *over: UOp, op: Op = ops.ADD) -> UOp:
    start = const(value.dtype, ops.identity_of(op, value.dtype))
    accumulator = make(ops.DEFINE_ACC, start, *over, arg=make(ops.REDUCE, value, *over, arg=op))
    return make(ops.PHI, accumulator, make(op, accumulator, value))


def add(a: UOp, b: UOp | int) -> UOp:
    return make(ops.ADD, a, num(b) if isinstance(b, int) else b)


def mul(a: UOp, b: int) -> UOp:
    return make(ops.MUL, a, num(b))


def linear(*stores: UOp) -> LinearKernel:
    return linearize(make(ops.SINK, *stores), "test")


def run(kernel: LinearKernel, *buffers: Data, **variables: int) -> None:
    device = Interpreter()
    device.build(kernel, device.renderer.render(kernel))(buffers, variables)


def ints(*values: int) -> Data:
    return np.array(values, np.int32)


# --- geometry --------------------------------------------------------------------------------------------------------


def test_groups_and_local_threads() -> None:
    at = add(mul(group(3), 4), local(4))
    out = np.zeros(12, np.int32)
    run(linear(make(ops.STORE, OUT, at, mul(at, 2))), out)
    assert out.tolist() == [2 * i for i in range(12)]


def test_symbolic_groups() -> None:
    n = make(ops.VAR, dtype=d.int32, arg=VarArg("n", 1, 9))
    g = group(add(n, 1))
    out = np.zeros(9, np.int32)
    run(linear(make(ops.STORE, OUT, g, add(g, 1))), out, n=4)
    assert out.tolist() == [1, 2, 3, 4, 5, 0, 0, 0, 0]


def test_many_groups_run_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "BLOCK", 8)
    g, t = group(13), local(4)
    memory = shared(4)
    ready = make(ops.AFTER, memory, make(ops.BARRIER, make(ops.STORE, memory, t, add(mul(g, 4), t))))
    other = make(ops.LOAD, ready, make(ops.XOR, t, num(3)))
    out = np.zeros(52, np.int32)
    run(linear(make(ops.STORE, OUT, add(mul(g, 4), t), other)), out)
    assert out.tolist() == [g * 4 + (t ^ 3) for g in range(13) for t in range(4)]


def test_no_groups_at_all() -> None:
    n = make(ops.VAR, dtype=d.int32, arg=VarArg("n", 0, 9))
    out = ints(7, 7)
    run(linear(make(ops.STORE, OUT, group(n), num(1))), out, n=0)
    assert out.tolist() == [7, 7]


# --- loops -----------------------------------------------------------------------------------------------------------


def test_loops_whose_end_differs_between_threads() -> None:
    """Thread t sums 1 + … + t; a thread that has left the loop reads nothing more."""
    t = local(5)
    k = loop(0, t, AxisKind.REDUCE)
    out = np.zeros(5, np.int32)
    run(linear(make(ops.STORE, OUT, t, total(make(ops.LOAD, DATA, k), k))), out, ints(1, 2, 3, 4))
    assert out.tolist() == [0, 1, 3, 6, 10]


def test_nested_loops_whose_end_differs() -> None:
    t = local(4)
    k = loop(0, t, AxisKind.REDUCE)
    m = loop(1, k, AxisKind.REDUCE)
    out = np.zeros(4, np.int32)
    run(linear(make(ops.STORE, OUT, t, total(add(total(add(m, 1), m), k), k))), out)
    assert out.tolist() == [sum(k + sum(range(1, k + 1)) for k in range(t)) for t in range(4)]


def test_a_loop_without_steps_gives_the_start_value() -> None:
    n = make(ops.VAR, dtype=d.int32, arg=VarArg("n", 0, 9))
    k = loop(0, n, AxisKind.REDUCE)
    kernel = linear(make(ops.STORE, OUT, num(0), total(make(ops.LOAD, DATA, k), k, op=ops.MAX)))
    out = ints(5)
    run(kernel, out, ints(1, 2), n=0)
    assert out.tolist() == [-(2**31)]
    run(kernel, out, ints(1, 2), n=2)
    assert out.tolist() == [2]


def test_two_accumulators_that_read_each_other_step_together() -> None:
    """Fibonacci: both take their new values at the end of a step."""
    k = loop(0, 10, AxisKind.REDUCE)
    a, b = (make(ops.DEFINE_ACC, num(start), k, arg=make(ops.REDUCE, num(start), k, arg=ops.ADD)) for start in (0, 1))
    first, second = make(ops.PHI, a, b), make(ops.PHI, b, add(a, b))
    out = np.zeros(2, np.int32)
    run(linear(make(ops.STORE, OUT, num(0), first), make(ops.STORE, OUT, num(1), second)), out)
    assert out.tolist() == [55, 89]


# --- memory ----------------------------------------------------------------------------------------------------------


def failure(kernel: LinearKernel, *buffers: Data) -> str:
    with pytest.raises(DeviceError) as error:
        run(kernel, *buffers)
    return str(error.value)


def test_a_load_out_of_bounds_names_buffer_index_and_element() -> None:
    i = loop(0, 4)
    kernel = linear(make(ops.STORE, OUT, i, make(ops.LOAD, DATA, add(i, 2))))
    message = failure(kernel, np.zeros(4, np.int32), np.zeros(5, np.int32))
    assert message.startswith("test: load at buffer_1[r0 + 2]: element 5 is outside of the 5 elements")


@pytest.mark.parametrize("at", [-1, 4])
def test_a_store_out_of_bounds(at: int) -> None:
    message = failure(linear(make(ops.STORE, OUT, num(at), num(1))), np.zeros(4, np.int32))
    assert message.startswith(f"test: store at buffer_0[int32({at})]: element {at} is outside of the 4 elements")


def test_a_vector_access_is_checked_to_its_last_lane() -> None:
    value = make(ops.LOAD, DATA, num(2), dtype=d.int32.vec(4))
    message = failure(linear(make(ops.STORE, OUT, num(0), value)), np.zeros(4, np.int32), np.zeros(5, np.int32))
    assert "element 5 is outside" in message


def test_false_gates_touch_nothing() -> None:
    t = local(8)
    inside = make(ops.LT, t, num(3))
    value = make(ops.LOAD, DATA, t, inside, num(-1))
    out = np.zeros(8, np.int32)
    run(linear(make(ops.STORE, OUT, t, value)), out, ints(1, 2, 3))
    assert out.tolist() == [1, 2, 3, -1, -1, -1, -1, -1]
    short = np.zeros(3, np.int32)
    run(linear(make(ops.STORE, OUT, t, t, inside)), short)
    assert short.tolist() == [0, 1, 2]
    run(linear(make(ops.STORE, OUT, num(0), make(ops.LOAD, DATA, t, inside, t), make(ops.EQ, t, num(0)))), short, short)


def test_an_empty_buffer_behind_a_false_gate() -> None:
    never = make(ops.LT, make(ops.LOAD, OUT, num(0)), num(0))
    value = make(ops.LOAD, DATA, num(0), never, num(9))
    out = ints(0)
    run(linear(make(ops.STORE, OUT, num(0), value)), out, np.zeros(0, np.int32))
    assert out.tolist() == [9]


def test_a_race_between_threads() -> None:
    t = local(4)
    message = failure(linear(make(ops.STORE, OUT, num(1), t)), np.zeros(4, np.int32))
    assert "element 1 gets different values from several threads or lanes at once" in message
    same = np.zeros(4, np.int32)
    run(linear(make(ops.STORE, OUT, num(1), make(ops.MIN, t, num(0)))), same)


def exchange(*, barrier: bool) -> LinearKernel:
    """Each thread reads what its neighbour has stored."""
    t = local(4)
    memory = shared(4)
    written = make(ops.STORE, memory, t, t)
    ready = make(ops.AFTER, memory, make(ops.BARRIER, written))
    out = make(ops.STORE, OUT, t, make(ops.LOAD, ready, make(ops.XOR, t, num(1))))
    kernel = linear(out)
    if barrier:
        return kernel
    return LinearKernel(
        kernel.name, tuple(n for n in kernel.uops if n.op is not ops.BARRIER), kernel.buffers, (), (), kernel.locals, 1
    )


def test_a_missing_barrier() -> None:
    out = np.zeros(4, np.int32)
    run(exchange(barrier=True), out)
    assert out.tolist() == [1, 0, 3, 2]
    assert "was stored by another thread, and no barrier has passed since" in failure(exchange(barrier=False), out)


def rounds(*, barrier: bool) -> LinearKernel:
    """In each step each thread reads what its neighbour has stored in that step."""
    t, step = local(4), loop(0, 3)
    memory = shared(4)
    new = add(mul(step, 10), t)
    free = make(ops.AFTER, memory, make(ops.BARRIER, new)) if barrier else memory
    ready = make(ops.AFTER, memory, make(ops.BARRIER, make(ops.STORE, free, t, new)))
    place = add(mul(step, 4), t)
    return linear(make(ops.STORE, OUT, place, make(ops.LOAD, ready, make(ops.XOR, t, num(1)))))


def test_a_store_over_what_others_may_still_read() -> None:
    out = np.zeros(12, np.int32)
    run(rounds(barrier=True), out)
    assert out.reshape(3, 4).tolist() == [[1, 0, 3, 2], [11, 10, 13, 12], [21, 20, 23, 22]]
    message = failure(rounds(barrier=False), np.zeros(12, np.int32))
    assert "was read by another thread, and no barrier has passed since" in message


def test_two_threads_that_store_to_one_place_without_a_barrier_between() -> None:
    t = local(4)
    memory = shared(4)
    first = make(ops.STORE, memory, t, t)
    second = make(ops.STORE, memory, make(ops.XOR, t, num(1)), num(5))
    ready = make(ops.AFTER, memory, make(ops.BARRIER, first, second))
    kernel = linear(make(ops.STORE, OUT, t, make(ops.LOAD, ready, t)))
    assert "was stored by another thread, and no barrier has passed since" in failure(kernel, np.zeros(4, np.int32))


def test_local_memory_starts_without_values() -> None:
    t = local(4)
    memory = shared(8)
    ready = make(ops.AFTER, memory, make(ops.BARRIER, make(ops.STORE, memory, t, t)))
    kernel = linear(make(ops.STORE, OUT, t, make(ops.LOAD, ready, add(t, 1))))
    assert "element 4 has not been stored by any thread" in failure(kernel, np.zeros(4, np.int32))


def test_a_barrier_in_a_divergent_if() -> None:
    kernel = exchange(barrier=True)
    t = local(4)
    nodes = list(kernel.uops)
    gate = make(ops.LT, t, num(2))
    opened = make(ops.IF, gate)
    at = next(n for n, node in enumerate(nodes) if node.op is ops.BARRIER)
    nodes[at : at + 1] = [num(2), gate, opened, nodes[at], make(ops.ENDIF, opened)]
    wrong = LinearKernel(kernel.name, tuple(nodes), kernel.buffers, (), (), kernel.locals, 1)
    assert failure(wrong, np.zeros(4, np.int32)) == (
        "test: a barrier stands in an if or loop that not all threads enter"
    )


# --- values ----------------------------------------------------------------------------------------------------------


def test_bfloat16_rounds_after_each_operation() -> None:
    """1 + 1/256 is a tie and goes to the even 1, however often it is added; NumPy holds the bits."""
    source, target = buffer(1, d.bfloat16, 2), buffer(0, d.bfloat16, 1)
    one, little = (make(ops.LOAD, source, num(n)) for n in (0, 1))
    value = make(ops.ADD, make(ops.ADD, one, little), little)
    out = np.zeros(1, np.uint16)
    run(linear(make(ops.STORE, target, num(0), value)), out, np.array([0x3F80, 0x3B80], np.uint16))
    assert out.tolist() == [0x3F80]


def test_bfloat16_is_rounded_once() -> None:
    """Just above a tie: through float32 it would become the tie and go down."""
    source, target = buffer(1, d.float64, 1), buffer(0, d.bfloat16, 1)
    value = make(ops.CAST, make(ops.LOAD, source, num(0)), dtype=d.bfloat16)
    out = np.zeros(1, np.uint16)
    run(linear(make(ops.STORE, target, num(0), value)), out, np.array([1 + 2**-8 + 2**-40]))
    assert out.tolist() == [0x3F81]


def test_undefined_values_neither_warn_nor_fail() -> None:
    """Division by zero, a huge float as an integer, shifts too far: any value, but no crash."""
    floats, target = buffer(1, d.float32, 3), buffer(0, d.int32, 12)
    i = loop(0, 3)
    x = make(ops.CAST, make(ops.LOAD, floats, i), dtype=d.int32)
    zero = make(ops.MUL, x, num(0))
    values = [x, *(make(op, x, zero) for op in (ops.FLOORDIV, ops.FLOORMOD, ops.TRUNCDIV, ops.TRUNCMOD))]
    values += [make(ops.SHL, x, add(zero, 99))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in values:
            run(linear(make(ops.STORE, target, i, value)), np.zeros(12, np.int32),
                np.array([np.nan, np.inf, -1e30], np.float32))  # fmt: skip


def test_values_are_dropped_after_their_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long kernel over many threads holds few arrays at a time."""
    t = local(64)
    value = t
    for step in range(300):
        value = add(mul(value, 3), step)
    most = 0
    execute = interpreter._Block._execute

    def counted(block: interpreter._Block, node: UOp) -> None:
        nonlocal most
        execute(block, node)
        most = max(most, sum(len(array) > 1 for array in block.values.values()))

    monkeypatch.setattr(interpreter._Block, "_execute", counted)
    out = np.zeros(64, np.int32)
    run(linear(make(ops.STORE, OUT, t, value)), out)
    assert 0 < most <= 4


# --- the listing -----------------------------------------------------------------------------------------------------


def test_the_source_is_the_listing() -> None:
    k = loop(0, 8, AxisKind.REDUCE)
    text = ListingRenderer().render(linear(make(ops.STORE, OUT, num(0), total(make(ops.LOAD, DATA, k), k))))
    assert text == (
        "kernel test\n"
        "  %0 = buffer() [0, None]: global int32*\n"
        "  %1 = const() [0]: int32\n"
        "  %2 = const() [8]: int32\n"
        "  %3 = buffer() [1, None]: global int32*\n"
        "  %4 = define_acc(%1, range): int32\n"
        "  %5 = range(%2) [0, reduce]: int32\n"
        "    %6 = load(%3, %5): int32\n"
        "    %7 = add(%4, %6): int32\n"
        "    %8 = phi(%4, %7): int32\n"
        "  %9 = endrange(%5): void\n"
        "  %10 = store(%0, %1, %8): void\n"
    )


def test_what_it_is() -> None:
    device = Interpreter()
    assert device.name == "interpreter"
    assert device.renderer.target.name == "interpreter"
    assert device.renderer.target.has("bfloat16")
    assert np.__version__ in device.description
