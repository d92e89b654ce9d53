"""The kernels that a command names: a JSON file, a corpus or one line of it, or a sample."""

from __future__ import annotations

import difflib
from pathlib import Path

from ..kernels.json_form import read_kernels
from ..kernels.kernel import Kernel
from .console import InputError, reading
from .samples import SAMPLES


def find_kernel(name: str) -> Kernel:
    """`FILE`, `FILE:ID` for the kernel with that id, or the name of a sample. Raises InputError."""
    if name in SAMPLES:
        return SAMPLES[name].kernel()
    path, identity = _split(name)
    with reading():
        found = []
        for kernel in read_kernels(path):
            if not identity or kernel.id == identity:
                return kernel
            found.append(kernel.id)
    close = [one for one in found if one.startswith(identity)] or difflib.get_close_matches(identity, found, n=1)
    hint = f"did you mean {close[0]}?" if close else f"it has {len(found)} kernels"
    raise InputError(
        f"{path}: there is no kernel {identity!r}; {hint}" if identity else f"{path}: there is no kernel in it"
    )


def find_kernels(name: str) -> list[Kernel]:
    """As `find_kernel`, but of a file every kernel."""
    if name not in SAMPLES and Path(name).is_file():
        with reading():
            if kernels := list(read_kernels(name)):
                return kernels
    return [find_kernel(name)]


def _split(name: str) -> tuple[Path, str]:
    whole = Path(name)
    if whole.is_file():
        return whole, ""
    file, colon, identity = name.rpartition(":")
    if colon and Path(file).is_file():
        return Path(file), identity
    samples = ", ".join(SAMPLES)
    raise InputError(f"there is no file {name}; give a kernel's JSON file, FILE.jsonl:ID, or one of {samples}")
