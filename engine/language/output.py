"""Findings for programs: as JSON, as SARIF for code scanners, and as annotations of GitHub's workflows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .diagnostics import CODES, Diagnostic
from .syntax import Span


def as_json(findings: Sequence[Diagnostic]) -> str:
    """A list of objects, in the order of the places."""
    return json.dumps([_object(one) for one in findings], indent=2)


def _object(one: Diagnostic) -> dict[str, object]:
    found: dict[str, object] = {
        "code": one.code, "severity": one.severity.value, "message": one.message, "hint": one.hint, **_place(one.span),
    }  # fmt: skip
    if one.related is not None:
        found["related"] = {"message": one.related[0], **_place(one.related[1])}
    return found


def _place(span: Span) -> dict[str, object]:
    return {
        "file": span.file, "line": span.line, "column": span.column, "end_line": span.end_line,
        "end_column": span.end_column,
    }  # fmt: skip


def as_sarif(findings: Sequence[Diagnostic]) -> str:
    """A log of SARIF 2.1.0 with one run."""
    codes = sorted({one.code for one in findings})
    driver = {
        "name": "rulewright",
        "rules": [{"id": code, "shortDescription": {"text": CODES[code]}} for code in codes],
    }
    results = [
        {
            "ruleId": one.code,
            "level": one.severity.value,
            "message": {"text": _sentence(one)},
            "locations": [_location(one.span)],
            "relatedLocations": []
            if one.related is None
            else [{**_location(one.related[1]), "message": {"text": one.related[0]}}],
        }
        for one in findings
    ]
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}],
    }
    return json.dumps(log, indent=2)


def _location(span: Span) -> dict[str, object]:
    region = {
        "startLine": span.line, "startColumn": span.column, "endLine": span.end_line, "endColumn": span.end_column,
    }  # fmt: skip
    return {"physicalLocation": {"artifactLocation": {"uri": span.file.replace("\\", "/")}, "region": region}}


def as_github(findings: Sequence[Diagnostic]) -> str:
    """A line for each finding, which a workflow of GitHub shows beside the code."""
    return "\n".join(
        f"::{one.severity.value} file={_escaped(one.span.file, property=True)},line={one.span.line},"
        f"endLine={one.span.end_line},col={one.span.column},endColumn={one.span.end_column},title={one.code}"
        f"::{_escaped(_sentence(one))}"
        for one in findings
    )


def _escaped(text: str, *, property: bool = False) -> str:  # noqa: A002 - GitHub's word
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property else text


def _sentence(one: Diagnostic) -> str:
    return one.message if one.hint is None else f"{one.message} ({one.hint})"


FORMATS = {"json": as_json, "sarif": as_sarif, "github": as_github}
