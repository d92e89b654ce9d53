"""The installed package carries everything that the checkout has, and nothing is left out of the list of packages."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA = (".py", ".rules", ".lark")
APART = ("tests", "examples", "benchmarks", "docs")


def package_files() -> list[Path]:
    """The files of the package in the checkout, relative to its root."""
    files = (
        path.relative_to(ROOT) for path in sorted(ROOT.rglob("*")) if path.suffix in DATA or path.name == "py.typed"
    )
    environments = {path.parent.name for path in ROOT.glob("*/pyvenv.cfg")}
    skipped = {*APART, "build", *environments}
    return [file for file in files if file.parts[0] not in skipped and not file.parts[0].startswith(".")]


def test_every_file_is_installed() -> None:
    installed = Path(str(resources.files("rulewright")))
    files = package_files()
    assert {"__init__.py", "py.typed", "division.rules", "grammar.lark"} <= {file.name for file in files}
    assert [str(file) for file in files if not (installed / file).is_file()] == []


def test_every_folder_is_a_listed_package() -> None:
    if sys.version_info < (3, 11):
        pytest.skip("reads pyproject.toml with tomllib, which Python has since 3.11")
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = {file.parent for file in package_files()}
    expected = sorted(".".join(("rulewright", *folder.parts)) for folder in folders)
    assert sorted(settings["tool"]["setuptools"]["packages"]) == expected
