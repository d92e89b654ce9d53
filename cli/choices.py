"""What a user chooses by name, checked before anything else is done: the device, the schedule, a type."""

from __future__ import annotations

from ..engine.dtypes import DType, by_name
from ..kernels.schedule import parse_schedule
from ..runtimes import devices
from .console import InputError, reading

SCHEDULES = ("default", "none", "search")


def check_choices(device: str, schedule: str) -> None:
    """Raises InputError for what there is not, and DeviceError for a device that does not work here."""
    if device not in devices.DEVICES:
        raise InputError(devices.probe(device).reason)
    if schedule not in SCHEDULES:
        with reading("--schedule"):
            parse_schedule(schedule)
    devices.get(device)


def named_type(name: str) -> DType:
    """The type of this name. Raises InputError if there is none."""
    try:
        return by_name(name)
    except KeyError:
        raise InputError(f"there is no type {name!r}: write for example index, int32 or float32") from None
