"""Finding a kernel's fastest schedule by measuring, in processes of their own, and remembering it on disk."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from .engine.cache import cache_directory
from .engine.errors import KernelError, RulewrightError
from .kernels.heuristic import default_schedule
from .kernels.json_form import write_kernel
from .kernels.kernel import Kernel
from .kernels.schedule import Schedule, parse_schedule, schedule_text
from .kernels.search import Candidate, search
from .runtimes import devices
from .runtimes.threads import cores
from .workers import Answer, Worker

LIMIT = 30.0
"""The seconds that building or timing one candidate may take."""

COMMAND = (sys.executable, "-m", f"{__package__}.tuning_worker")
"""What answers the questions: a schedule to build, then the wish for its time."""

Progress = Callable[["Progressed"], None]


@dataclass(frozen=True, slots=True)
class Progressed:
    """Where a search stands: the candidate just measured with what went wrong, and the best so far."""

    tried: int
    candidate: Candidate
    failure: str
    best: Candidate


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search found, and what the default schedule took on the same machine at the same time."""

    schedule: Schedule
    seconds: float
    default: float
    tried: int
    failed: int

    @property
    def gain(self) -> float:
        """How many times as fast as with the default schedule."""
        return self.default / self.seconds


def tune(
    kernel: Kernel, device: str, math: str = "strict", seconds: float = 60.0, progress: Progress | None = None
) -> Tuned:
    """Searches for at most about so many seconds, and remembers the best schedule for `schedule="search"`.

    Candidates are built and run in processes of their own, several at once while they build, one at a time while they
    are timed. One that crashes, does not build or takes too long is counted as failed.
    Raises DeviceError, or KernelError if not even the default schedule runs.
    """
    runtime = devices.get(device)
    target, threads = runtime.renderer.target, devices.default_threads()
    start = default_schedule(kernel, target, threads)
    begin = time.monotonic()
    with _Measuring(kernel, device, math, lambda: time.monotonic() - begin > seconds) as measuring:
        best, default, tried, failed = Candidate(start, None), 0.0, 0, 0
        for candidate in search(kernel, list(dict.fromkeys([start, ()])), target, threads, measuring):
            tried += 1
            failure = measuring.failures.get(candidate.schedule, "")
            failed += bool(failure)
            if candidate.seconds is not None:
                default = candidate.seconds if candidate.schedule == start else default
                if best.seconds is None or candidate.seconds < best.seconds:
                    best = candidate
            if progress is not None:
                progress(Progressed(tried, candidate, failure, best))
        if best.seconds is None:
            raise KernelError(f"no schedule of {kernel.name} runs on {device}: {measuring.failures.get(start, '')}")
        best, default = measuring.again(best, Candidate(start, default or None))
    assert best.seconds is not None
    found = Tuned(best.schedule, best.seconds, default, tried, failed)
    _remember(kernel, device, math, found)
    return found


def searched_schedule(kernel: Kernel, device: str, math: str) -> Schedule:
    """The schedule that an earlier search found for this kernel, device, driver and version; else searches now."""
    found = remembered(kernel, device, math)
    return tune(kernel, device, math).schedule if found is None else found.schedule


# --- measuring -------------------------------------------------------------------------------------------------------


class _Measuring:
    """Times schedules of one kernel in child processes, which it ends when it is left."""

    def __init__(self, kernel: Kernel, device: str, math: str, expired: Callable[[], bool]) -> None:
        self.question = {"kernel": write_kernel(kernel), "device": device, "math": math}
        self.expired = expired
        self.failures: dict[Schedule, str] = {}
        self.idle: SimpleQueue[Worker] = SimpleQueue()
        self.workers = [Worker(COMMAND, LIMIT) for _ in range(max(1, cores()))]
        for worker in self.workers:
            self.idle.put(worker)
        self.pool = ThreadPoolExecutor(len(self.workers))
        self.timing = Lock()

    def __enter__(self) -> _Measuring:  # noqa: PYI034 - typing.Self is younger than Python 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        for worker in self.workers:
            worker.close()
            worker.errors.close()

    def __call__(self, schedules: Sequence[Schedule]) -> Iterator[Candidate]:
        """The candidates as they are timed; what was not begun when the time is over is left out."""
        waiting = {self.pool.submit(self._measure, schedule) for schedule in schedules}
        for done in as_completed(waiting):
            candidate = done.result()
            if candidate is not None:
                yield candidate

    def again(self, best: Candidate, default: Candidate) -> tuple[Candidate, float]:
        """Both measured once more, in turn, so that the gain is not what one lucky run said."""
        if best.schedule == default.schedule or best.seconds is None or default.seconds is None:
            return best, best.seconds or 0.0
        self.expired = lambda: False
        times: dict[Schedule, float] = {best.schedule: best.seconds, default.schedule: default.seconds}
        for schedule in (default.schedule, best.schedule) * 2:
            candidate = self._measure(schedule)
            if candidate is not None and candidate.seconds is not None:
                times[schedule] = min(times[schedule], candidate.seconds)
        faster = min((default.schedule, best.schedule), key=lambda schedule: times[schedule])
        return Candidate(faster, times[faster]), times[default.schedule]

    def _measure(self, schedule: Schedule) -> Candidate | None:
        if self.expired():
            return None
        worker = self.idle.get()
        try:
            built = worker.ask(0, json.dumps(self.question | {"schedule": schedule_text(schedule)}))
            if self._failed(schedule, built):
                return Candidate(schedule, None)
            with self.timing:
                timed = worker.ask(0, "time")
            return Candidate(schedule, None if self._failed(schedule, timed) else float(timed.said))
        finally:
            self.idle.put(worker)

    def _failed(self, schedule: Schedule, answer: Answer) -> bool:
        reason = answer.failure or (answer.said[7:] if answer.said.startswith("failed ") else "")
        if reason:
            self.failures[schedule] = reason
        return bool(reason)


# --- what is remembered ----------------------------------------------------------------------------------------------


def remembered(kernel: Kernel, device: str, math: str) -> Tuned | None:
    """What an earlier search found, if it was for this kernel, device, driver and version."""
    try:
        data = json.loads(_place(kernel, device, math).read_text(encoding="utf-8"))
        schedule = parse_schedule(data.pop("schedule"))
        return Tuned(schedule, **{name: data[name] for name in ("seconds", "default", "tried", "failed")})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RulewrightError):
        return None


def _remember(kernel: Kernel, device: str, math: str, found: Tuned) -> None:
    place = _place(kernel, device, math)
    data = asdict(found) | {"schedule": schedule_text(found.schedule), "kernel": kernel.name, "device": device}
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_suffix(".new")
        part.write_text(json.dumps(data), encoding="utf-8")
        part.replace(place)
    except OSError as problem:
        raise KernelError(
            f"cannot keep what the search found in {place.parent}: name another folder in RULEWRIGHT_CACHE ({problem})"
        ) from problem


def _place(kernel: Kernel, device: str, math: str) -> Path:
    try:
        release = version("rulewright")
    except PackageNotFoundError:  # a checkout that is not installed
        release = ""
    nodes = write_kernel(kernel)["nodes"]
    key = json.dumps([nodes, device, devices.get(device).description, math, release], sort_keys=True)
    return cache_directory() / "tuned" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
