"""Runs the thread numbers of a CPU kernel on all cores.

A foreign call through ctypes releases the interpreter's lock, so ordinary Python threads run kernels in parallel.
They are started once for a process and kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Lock

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = Lock()


def cores() -> int:
    """How many threads can run at once in this process, with the affinity that the system gave it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_threads(call: Callable[[int], object], threads: int) -> None:
    """Calls `call(0)` … `call(threads - 1)`, in no particular order, and returns when all have returned.

    The calling thread works too, and never waits for a helper that has not started: a call from within `call` cannot
    deadlock. After a failure no further number is begun; the first exception is raised again.
    """
    if threads <= 1:
        if threads == 1:
            call(0)
        return
    numbers = count()  # `next` on it is atomic: it runs in C under the interpreter's lock
    failures: list[BaseException] = []

    def work() -> None:
        while not failures and (number := next(numbers)) < threads:
            try:
                call(number)
            except BaseException as failure:  # noqa: BLE001 - raised again by the caller, an interrupt included
                failures.append(failure)

    pool = _pool()
    helpers = [pool.submit(work) for _ in range(min(threads, cores()) - 1)]
    work()
    for helper in helpers:
        if not helper.cancel():
            helper.result()
    if failures:
        raise failures[0]


def _pool() -> ThreadPoolExecutor:
    """This process's threads. A forked child inherits none of its parent's, so it gets a pool of its own."""
    process = os.getpid()
    with _pools_lock:
        pool = _pools.get(process)
        if pool is None:
            _pools.clear()
            pool = _pools[process] = ThreadPoolExecutor(max(1, cores() - 1), thread_name_prefix="rulewright")
        return pool


if hasattr(os, "register_at_fork"):  # a child must not inherit the lock as held
    os.register_at_fork(
        before=_pools_lock.acquire,
        after_in_parent=_pools_lock.release,
        after_in_child=_pools_lock.release,
    )
