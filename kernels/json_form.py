"""The JSON form of a kernel: read with one clear error for whatever is wrong, and written back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ..engine import dtypes, ops
from ..engine.dtypes import DType, Scalar
from ..engine.errors import KernelError
from .kernel import REDUCERS, Const, Elementwise, Kernel, Load, Node, Reduce, Store
from .sizes import Dim, Size, bounds, combine, var
from .view import View, Views

ELEMENTWISE = {op.name: op for op in ops.ELEMENTWISE}
IMAGES = {"float16": dtypes.float16, "float32": dtypes.float32}


def read_kernel(data: object) -> Kernel:
    """A kernel from parsed JSON. Raises KernelError with the place, such as `nodes[3].views[0].strides`."""
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        raise KernelError('a kernel is a JSON object {"id": …, "nodes": […]}')
    nodes = tuple(_node(node, f"nodes[{number}]") for number, node in enumerate(data["nodes"]))
    return Kernel(nodes, str(data.get("id", "")))


def read_kernels(path: str | Path) -> Iterator[Kernel]:
    """The kernels of a file with one JSON object a line, or of a file that is one object.

    Raises KernelError naming the file and the line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise KernelError(f"{path}: cannot read the file: {problem}") from None
    try:
        documents = [(1, _parsed(text))]
    except json.JSONDecodeError:
        documents = list(_lines(path, text))
    except KernelError as problem:
        raise KernelError(f"{path}:1: {problem}") from None
    for line, document in documents:
        try:
            yield read_kernel(document)
        except KernelError as problem:
            raise KernelError(f"{path}:{line}: {problem}") from None


def _lines(path: str | Path, text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield number, _parsed(line)
            except json.JSONDecodeError as problem:
                raise KernelError(f"{path}:{number}:{problem.colno}: not JSON: {problem.msg}") from None
            except KernelError as problem:
                raise KernelError(f"{path}:{number}: {problem}") from None


def _parsed(text: str) -> Any:
    """JSON data. Raises KernelError where Python's reader gives up on what is JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError):
        raise KernelError("nested too deeply, or a number with too many digits") from None


def _node(data: object, place: str) -> Node:
    if not isinstance(data, dict):
        raise KernelError(f"{place}: a node is an object, got {_short(data)}")
    name = _field(data, "op", place, str)
    if name == "load":
        dtype, image = _buffer_type(data, place)
        return Load(_field(data, "buffer", place, int), dtype, _views(data, place), image)
    if name == "store":
        dtype, image = _buffer_type(data, place)
        (source,) = _sources(data, place, 1)
        return Store(_field(data, "buffer", place, int), dtype, _views(data, place), source, image)
    if name == "const":
        dtype = _value_type(data, place)
        return Const(_value(data.get("value"), dtype, f"{place}.value"), dtype, _views(data, place))
    if name in REDUCERS:
        (source,) = _sources(data, place, 1)
        axes = _list(data, "axes", place)
        return Reduce(REDUCERS[name], source, tuple(_integer(a, f"{place}.axes[{i}]") for i, a in enumerate(axes)))
    if name in ELEMENTWISE:
        op = ELEMENTWISE[name]
        asked = _value_type(data, place) if op in (ops.CAST, ops.BITCAST) else None
        return Elementwise(op, _sources(data, place, op.arity or 1), asked)
    known = ["load", "store", "const", *REDUCERS, *ELEMENTWISE]
    raise KernelError(f"{place}.op: unknown operator {name!r}; the operators are {', '.join(known)}")


def _field(data: dict[str, Any], name: str, place: str, kind: type[Any]) -> Any:
    value = data.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise KernelError(f"{place}.{name}: needs {'a number' if kind is int else 'a text'}, got {_short(value)}")
    return value


def _list(data: dict[str, Any], name: str, place: str) -> list[Any]:
    value = data.get(name)
    if not isinstance(value, list):
        raise KernelError(f"{place}.{name}: needs a list, got {_short(value)}")
    return value


def _short(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, default=str)
    return text if len(text) < 60 else text[:57] + "…"


def _integer(value: object, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise KernelError(f"{place}: needs a whole number, got {_short(value)}")
    return value


def _sources(data: dict[str, Any], place: str, count: int) -> tuple[int, ...]:
    found = _list(data, "src", place)
    if len(found) != count:
        raise KernelError(f"{place}.src: needs {count} node{'s' * (count != 1)}, got {len(found)}")
    return tuple(_integer(source, f"{place}.src[{number}]") for number, source in enumerate(found))


def _type(value: object, place: str) -> DType:
    names = {dtype.name: dtype for dtype in dtypes.DATA_TYPES}
    if not isinstance(value, str) or value not in names:
        raise KernelError(f"{place}: unknown type {_short(value)}; the types are {', '.join(names)}")
    return names[value]


def _buffer_type(data: dict[str, Any], place: str) -> tuple[DType, tuple[int, int] | None]:
    value = data.get("dtype")
    if not isinstance(value, dict):
        return _type(value, f"{place}.dtype"), None
    shape = value.get("shape")
    known = isinstance(value.get("image"), str) and value["image"] in IMAGES
    if not known or not isinstance(shape, list) or len(shape) != 3 or shape[2] != 4:
        raise KernelError(
            f'{place}.dtype: an image is {{"image": "float32" or "float16", "shape": [height, width, 4]}}'
        )
    return IMAGES[value["image"]], (
        _integer(shape[0], f"{place}.dtype.shape"),
        _integer(shape[1], f"{place}.dtype.shape"),
    )


def _value_type(data: dict[str, Any], place: str) -> DType:
    """The type of a value; where an image is named, the float32 that its texels read as."""
    dtype, image = _buffer_type(data, place)
    return dtypes.float32 if image else dtype


def _value(value: object, dtype: DType, place: str) -> Scalar | Size:
    if isinstance(value, list):
        symbolic = _dim(value, place)
        if isinstance(symbolic, Size):
            return symbolic
        value = symbolic
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        value = float(value)
    if not isinstance(value, bool | int | float):
        raise KernelError(f'{place}: needs a number, "inf", "-inf" or "nan", got {_short(value)}')
    try:
        return dtype.canonical(value)
    except ValueError:
        raise KernelError(f"{place}: {value} is not a value of {dtype}") from None


def _views(data: dict[str, Any], place: str) -> Views:
    return tuple(_view(view, f"{place}.views[{number}]") for number, view in enumerate(_list(data, "views", place)))


def _view(data: object, place: str) -> View:
    if not isinstance(data, dict):
        raise KernelError(f"{place}: a view is an object, got {_short(data)}")
    shape = _dims(_list(data, "shape", place), f"{place}.shape")
    strides = _dims(_list(data, "strides", place), f"{place}.strides")
    offset = _dim(data.get("offset", 0), f"{place}.offset")
    mask = None
    if data.get("mask") is not None:
        pairs = _list(data, "mask", place)
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise KernelError(f"{place}.mask: needs a pair [from, to] for each axis")
        mask = tuple((_dim(low, f"{place}.mask"), _dim(high, f"{place}.mask")) for low, high in pairs)
    if len(strides) != len(shape):
        raise KernelError(f"{place}.strides: {len(strides)} strides for {len(shape)} axes")
    if mask is not None and len(mask) != len(shape):
        raise KernelError(f"{place}.mask: {len(mask)} entries for {len(shape)} axes")
    return View(shape, strides, offset, mask)


def _dims(values: list[Any], place: str) -> tuple[Dim, ...]:
    return tuple(_dim(value, f"{place}[{number}]") for number, value in enumerate(values))


_SYMBOLIC: dict[str, Callable[[Dim, Dim], Dim]] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: combine("floordiv", a, b), "floormod": lambda a, b: combine("floormod", a, b),
}  # fmt: skip


def _dim(value: object, place: str, depth: int = 0) -> Dim:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, list) and value and depth < 50:
        if value[0] == "var" and len(value) == 4 and isinstance(value[1], str) and value[1].isidentifier():
            return var(value[1], _integer(value[2], place), _integer(value[3], place))
        if isinstance(value[0], str) and value[0] in _SYMBOLIC and len(value) == 3:
            a, b = (_dim(part, place, depth + 1) for part in value[1:])
            if value[0] in ("floordiv", "floormod") and bounds(b)[0] <= 0 <= bounds(b)[1]:
                raise KernelError(f"{place}: the divisor {b} can be zero")
            return _SYMBOLIC[value[0]](a, b)
    raise KernelError(
        f'{place}: needs a number, ["var", name, min, max], or ["add"|"mul"|"floordiv"|"floormod", a, b], got {_short(value)}'
    )


# --- writing ---------------------------------------------------------------------------------------------------------


def write_kernel(kernel: Kernel) -> dict[str, Any]:
    """The kernel as JSON data; `read_kernel` gives it back."""
    return {"id": kernel.id, "nodes": [_written(node) for node in kernel.nodes]}


def _written(node: Node) -> dict[str, Any]:
    match node:
        case Load():
            return {
                "op": "load",
                "buffer": node.buffer,
                "dtype": _written_type(node),
                "views": _written_views(node.views),
            }
        case Store():
            return {"op": "store", "buffer": node.buffer, "dtype": _written_type(node), "views": _written_views(node.views),
                    "src": [node.src]}  # fmt: skip
        case Const():
            value = _written_dim(node.value) if isinstance(node.value, Size) else node.value
            plain = str(value) if isinstance(value, float) and not math.isfinite(value) else value
            return {"op": "const", "value": plain, "dtype": node.dtype.name, "views": _written_views(node.views)}
        case Reduce():
            name = next(name for name, op in REDUCERS.items() if op is node.op)
            return {"op": name, "src": [node.src], "axes": list(node.axes)}
        case Elementwise():
            extra = {"dtype": node.dtype.name} if node.dtype is not None else {}
            return {"op": node.op.name, "src": list(node.src), **extra}


def _written_type(node: Load | Store) -> object:
    return {"image": node.dtype.name, "shape": [*node.image, 4]} if node.image else node.dtype.name


def _written_views(views: Iterable[View]) -> list[dict[str, Any]]:
    return [
        {
            "shape": [_written_dim(d) for d in view.shape],
            "strides": [_written_dim(d) for d in view.strides],
            "offset": _written_dim(view.offset),
            "mask": None if view.mask is None else [[_written_dim(a), _written_dim(b)] for a, b in view.mask],
        }
        for view in views
    ]


def _written_dim(dim: Dim) -> object:
    if isinstance(dim, Size):
        return [dim.op, *(_written_dim(a) if isinstance(a, Size) else a for a in dim.args)]
    return dim
