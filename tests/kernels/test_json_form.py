"""The JSON form: every kind of node survives writing and reading, and every mistake has its place in the message."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rulewright.engine import dtypes
from rulewright.engine.errors import KernelError
from rulewright.kernels.json_form import read_kernel, read_kernels, write_kernel
from rulewright.kernels.kernel import Const, Kernel, Load, Store
from rulewright.kernels.sizes import Dim, evaluate, var
from rulewright.kernels.view import View

Data = dict[str, Any]
N = ["var", "n", 1, 8]


def view(shape: list[Any], strides: list[Any], offset: Any = 0, mask: Any = None) -> Data:
    return {"shape": shape, "strides": strides, "offset": offset, "mask": mask}


def load(buffer: int, *views: Data, dtype: Any = "float32") -> Data:
    return {"op": "load", "buffer": buffer, "dtype": dtype, "views": list(views)}


def store(source: int, *views: Data, dtype: Any = "float32", buffer: int = 0) -> Data:
    return {"op": "store", "buffer": buffer, "dtype": dtype, "views": list(views), "src": [source]}


def constant(value: Any, dtype: Any, *views: Data) -> Data:
    return {"op": "const", "value": value, "dtype": dtype, "views": list(views)}


ROW = view([2, 3], [3, 1])
SUM: Data = {
    "id": "row sums",
    "nodes": [
        load(1, view([6], [1]), view([2, 3], [-3, 1], 3, [[0, 2], [1, 3]])),
        {"op": "mul", "src": [0, 0]},
        {"op": "reduce_sum", "src": [1], "axes": [1]},
        store(2, view([2, 1], [1, 0])),
    ],
}
SYMBOLIC: Data = {
    "id": "symbolic",
    "nodes": [
        load(1, view([N, 4], [4, 1], ["mul", N, 2], [[0, ["floordiv", N, 2]], [0, 4]])),
        constant(["add", N, 1], "float32", view([N, 4], [0, 0])),
        {"op": "add", "src": [0, 1]},
        store(2, view([N, 4], [4, 1])),
    ],
}
IMAGE = {"image": "float16", "shape": [2, 3, 4]}
MIXED: Data = {
    "id": "",
    "nodes": [
        load(1, view([24], [1]), dtype=IMAGE),
        {"op": "cast", "src": [0], "dtype": "int32"},
        {"op": "bitcast", "src": [1], "dtype": "float32"},
        constant("-inf", "float32", view([24], [0])),
        {"op": "lt", "src": [3, 2]},
        {"op": "where", "src": [4, 2, 3]},
        store(5, view([24], [1]), dtype=IMAGE),
    ],
}


@pytest.mark.parametrize("data", [SUM, SYMBOLIC, MIXED], ids=["sum", "symbolic", "mixed"])
def test_what_is_read_is_written_back(data: Data) -> None:
    assert write_kernel(read_kernel(data)) == data
    assert read_kernel(json.loads(json.dumps(write_kernel(read_kernel(data))))) == read_kernel(data)


@pytest.mark.parametrize("name", ["exp2", "log2", "sin", "sqrt", "recip", "neg", "add", "sub", "div", "max", "ne"])
def test_elementwise_operators_have_their_own_names(name: str) -> None:
    arity = 1 if name in ("exp2", "log2", "sin", "sqrt", "recip", "neg") else 2
    dtype = "bool" if name == "ne" else "float32"
    kernel = read_kernel({"nodes": [load(1, ROW), {"op": name, "src": [0] * arity}, store(1, ROW, dtype=dtype)]})
    assert write_kernel(kernel)["nodes"][1] == {"op": name, "src": [0] * arity}


@pytest.mark.parametrize(
    ("value", "dtype", "wanted"),
    [
        ("inf", "float32", math.inf),
        ("-inf", "float16", -math.inf),
        (1, "float32", 1.0),
        (300, "uint8", 44),
        (0.1, "float16", 0.0999755859375),
    ],
)
def test_constants_become_values_of_their_type(value: object, dtype: str, wanted: float) -> None:
    node = read_kernel({"nodes": [constant(value, dtype, ROW), store(0, ROW, dtype=dtype)]}).nodes[0]
    assert isinstance(node, Const)
    assert node.value == wanted
    assert type(node.value) is type(wanted)


def test_a_nan_survives_as_a_text() -> None:
    data = {"id": "", "nodes": [constant("nan", "float32", ROW), store(0, ROW)]}
    assert write_kernel(read_kernel(data)) == data


def changed(change: Callable[[list[Any]], object]) -> Data:
    data = copy.deepcopy(SUM)
    change(data["nodes"])
    return data


BROKEN: dict[str, tuple[Callable[[list[Any]], object], str]] = {
    "node": (lambda n: n.__setitem__(1, 7), "nodes[1]: a node is an object, got 7"),
    "operator": (
        lambda n: n[1].update(op="frob"),
        "nodes[1].op: unknown operator 'frob'; the operators are load, store,",
    ),
    "no operator": (lambda n: n[1].pop("op"), "nodes[1].op: needs a text, got nothing"),
    "buffer": (lambda n: n[0].update(buffer="x"), 'nodes[0].buffer: needs a number, got "x"'),
    "bool is no number": (lambda n: n[0].update(buffer=True), "nodes[0].buffer: needs a number, got true"),
    "type": (lambda n: n[0].update(dtype="f32"), 'nodes[0].dtype: unknown type "f32"; the types are bool, int8'),
    "image": (lambda n: n[0].update(dtype={"image": "int8", "shape": [1, 2, 4]}), "nodes[0].dtype: an image is"),
    "channels": (lambda n: n[0].update(dtype={"image": "float32", "shape": [1, 2, 3]}), "nodes[0].dtype: an image is"),
    "views": (lambda n: n[0].update(views=None), "nodes[0].views: needs a list, got nothing"),
    "view": (lambda n: n[0].update(views=[1]), "nodes[0].views[0]: a view is an object, got 1"),
    "size": (lambda n: n[0]["views"][1]["shape"].__setitem__(1, 2.5), "nodes[0].views[1].shape[1]: needs a number"),
    "strides": (lambda n: n[0]["views"][1].update(strides=[1]), "nodes[0].views[1].strides: 1 strides for 2 axes"),
    "mask": (lambda n: n[0]["views"][1].update(mask=[[0, 2]]), "nodes[0].views[1].mask: 1 entries for 2 axes"),
    "pair": (lambda n: n[0]["views"][1].update(mask=[[0, 2], [1]]), "nodes[0].views[1].mask: needs a pair [from, to]"),
    "name": (
        lambda n: n[0]["views"][1].update(offset=["var", "a b", 0, 1]),
        "nodes[0].views[1].offset: needs a number",
    ),
    "bounds": (
        lambda n: n[0]["views"][1].update(offset=["var", "n", 2, 1]),
        "the lower bound 2 is above the upper bound 1",
    ),
    "divisor": (
        lambda n: n[0]["views"][1].update(offset=["floordiv", 3, ["var", "n", 0, 1]]),
        "nodes[0].views[1].offset: the divisor n can be zero",
    ),
    "sources": (lambda n: n[1].update(src=[0]), "nodes[1].src: needs 2 nodes, got 1"),
    "one source": (lambda n: n[3].update(src=[]), "nodes[3].src: needs 1 node, got 0"),
    "source": (lambda n: n[1].update(src=[0, "a"]), 'nodes[1].src[1]: needs a whole number, got "a"'),
    "later": (lambda n: n[1].update(src=[0, 2]), "nodes[1]: src 2 is not an earlier node"),
    "axes": (lambda n: n[2].update(axes=[0.5]), "nodes[2].axes[0]: needs a whole number, got 0.5"),
    "axis": (lambda n: n[2].update(axes=[2]), "nodes[2]: axes [2] are not axes of rank 2"),
    "cast": (lambda n: n.__setitem__(1, {"op": "cast", "src": [0]}), "nodes[1].dtype: unknown type nothing"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_mistake_is_named_with_its_place(name: str) -> None:
    change, message = BROKEN[name]
    with pytest.raises(KernelError) as caught:
        read_kernel(changed(change))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        ([1, 2], "int32", "nodes[0].value: needs a number,"),
        ("big", "float32", 'nodes[0].value: needs a number, "inf", "-inf" or "nan", got "big"'),
        ("nan", "int32", "nodes[0].value: nan is not a value of int32"),
        (None, "int32", "got nothing"),
    ],
)
def test_a_bad_constant_is_named(value: object, dtype: str, message: str) -> None:
    with pytest.raises(KernelError) as caught:
        read_kernel({"nodes": [constant(value, dtype, ROW), store(0, ROW, dtype=dtype)]})
    assert message in str(caught.value)


@pytest.mark.parametrize("data", [None, [], {}, {"nodes": {}}, "nodes"])
def test_what_is_no_kernel_at_all_is_told_the_form(data: object) -> None:
    with pytest.raises(KernelError, match="a kernel is a JSON object "):
        read_kernel(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(["load", "int8", "var", "add", "x", "op", "views", "shape"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["op", "views", "src", "shape", "dtype", "value"]), inner),
    max_leaves=12,
)  # fmt: skip


@given(JSON, st.sampled_from(["op", "buffer", "dtype", "views", "src", "axes"]), st.integers(0, 3))
def test_no_json_raises_anything_but_a_kernel_error(junk: object, key: str, at: int) -> None:
    try:
        message = None if read_kernel(changed(lambda nodes: nodes[at].update({key: junk}))) else ""
    except KernelError as problem:
        message = str(problem)
    assert message is None or any(part in message for part in ("nodes[", "buffers are numbered", "one rank"))


@st.composite
def sizes(draw: st.DrawFn, depth: int = 3) -> Dim:
    kind = draw(
        st.sampled_from(["number", "var", "add", "mul", "floordiv", "floormod"] if depth else ["number", "var"])
    )
    if kind == "number":
        return draw(st.integers(-5, 9))
    if kind == "var":
        return var(draw(st.sampled_from(["n", "m"])), 1, 9)
    a = draw(sizes(depth - 1))
    if kind == "floordiv":
        return a // draw(st.integers(1, 5))
    if kind == "floormod":
        return a % draw(st.integers(1, 5))
    b = draw(sizes(depth - 1))
    return a + b if kind == "add" else a * b


@given(sizes(), st.integers(1, 9), st.integers(1, 9))
def test_symbolic_sizes_keep_their_value_through_json(stride: Dim, n: int, m: int) -> None:
    node = Load(1, dtypes.float32, (View((1,), (stride,)),))
    written = write_kernel(Kernel((node, Store(0, dtypes.float32, (View((1,), (1,)),), 0))))
    again = read_kernel(json.loads(json.dumps(written))).nodes[0]
    assert isinstance(again, Load)
    assert evaluate(again.views[0].strides[0], {"n": n, "m": m}) == evaluate(stride, {"n": n, "m": m})


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_file_holds_a_kernel_a_line(tmp_path: Path) -> None:
    path = tmp_path / "kernels.jsonl"
    path.write_text(f"{json.dumps(SUM)}\n\n{json.dumps(MIXED)}\n", encoding="utf-8")
    assert [kernel.id for kernel in read_kernels(path)] == ["row sums", ""]


def test_a_file_may_be_one_object_over_many_lines(tmp_path: Path) -> None:
    path = tmp_path / "kernel.json"
    path.write_text(json.dumps(SUM, indent=2), encoding="utf-8")
    assert [write_kernel(kernel) for kernel in read_kernels(path)] == [SUM]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([json.dumps(SUM), "{oops"], ":2:2: not JSON:"),
        ([json.dumps(SUM), "", '{"nodes": 1}'], ":3: a kernel is a JSON object"),
        (["[" * 100_000], ":1: nested too deeply"),
        ([json.dumps(SUM), "[" * 100_000], ":2: nested too deeply"),
        (["9" * 5000], ":1: nested too deeply, or a number with too many digits"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_line(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "kernels.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(KernelError) as caught:
        list(read_kernels(path))
    assert f"{path}{message}" in str(caught.value)


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"missing\.jsonl: cannot read the file"):
        list(read_kernels(tmp_path / "missing.jsonl"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KernelError, match="binary: cannot read the file"):
        list(read_kernels(tmp_path / "binary"))
