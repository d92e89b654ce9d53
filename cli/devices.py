"""`rulewright devices`: which devices work here, and why the others do not."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from ..runtimes import devices
from .console import console


def devices_command() -> int:
    """Prints a table of all devices; 1 if none works."""
    table = Table("device", "", "what it is, or why it is absent", show_edge=False, pad_edge=False)
    statuses = [devices.probe(name) for name in devices.DEVICES]
    for status in statuses:
        state = Text("present", "green") if status.present else Text("absent", "yellow")
        table.add_row(status.name, state, Text(status.description or status.reason))
    console().print(table)
    return 0 if any(status.present for status in statuses) else 1
