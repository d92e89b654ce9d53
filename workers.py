"""Questions answered by child processes, one line each, so that a crash or an endless run costs one answer only."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Thread, Timer


@dataclass(frozen=True, slots=True)
class Answer:
    """What a child said to the question at `position`; or, with `said` empty, why it said nothing."""

    position: int
    said: str
    failure: str = ""
    timed_out: bool = False


class Worker:
    """A child process that answers each line on its standard input by one line on its standard output.

    It is started at the first question, and anew after one that it did not survive.
    """

    def __init__(self, command: Sequence[str], limit: float) -> None:
        self.command, self.limit = list(command), limit
        self.process: subprocess.Popen[str] | None = None
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - the worker closes it

    def ask(self, position: int, question: str) -> Answer:
        """Waits for the answer, at most `limit` seconds."""
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        expired = Event()

        def expire() -> None:
            expired.set()
            process.kill()

        timer = Timer(self.limit, expire)
        timer.start()
        try:
            process.stdin.write(question + "\n")
            process.stdin.flush()
            said = process.stdout.readline()
        except OSError:  # the child is gone
            said = ""
        finally:
            timer.cancel()
        if said.endswith("\n"):
            return Answer(position, said.rstrip("\n"))
        if expired.is_set():
            self.close()
            return Answer(position, "", f"no answer within {self.limit:g} s", timed_out=True)
        return Answer(position, "", self._why())

    def end(self) -> None:
        """Ends the child, from another thread; whoever waits for its answer learns of its death."""
        process = self.process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """Ends the child and forgets it."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def _started(self) -> subprocess.Popen[str]:
        if self.process is None:
            self.errors.seek(0)
            self.errors.truncate()
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(
                self.command, stdin=pipe, stdout=pipe, stderr=self.errors, text=True, encoding="utf-8"
            )
        return self.process

    def _why(self) -> str:
        """How the child ended, with the last line of what it complained about."""
        assert self.process is not None
        code = self.process.wait()
        self.close()
        ended = f"the process ended with status {code}" if code >= 0 else f"the process was ended by {_signal(-code)}"
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return f"{ended}: {lines[-1]}" if lines else ended


def answers(command: Sequence[str], questions: Sequence[str], jobs: int, limit: float) -> Generator[Answer, None, None]:
    """The answers of `jobs` children, as they come. Stopping early ends the children."""
    waiting: SimpleQueue[tuple[int, str]] = SimpleQueue()
    for item in enumerate(questions):
        waiting.put(item)
    found: SimpleQueue[Answer] = SimpleQueue()
    workers = [Worker(command, limit) for _ in range(min(jobs, len(questions)))]
    stopped = Event()
    threads = [Thread(target=_serve, args=(worker, waiting, found, stopped), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        for _ in questions:
            yield found.get()
    finally:
        stopped.set()
        while alive := [thread for thread in threads if thread.is_alive()]:
            for worker in workers:
                worker.end()
            alive[0].join(0.05)  # not for good: a child may just have been started


def _serve(worker: Worker, waiting: SimpleQueue[tuple[int, str]], found: SimpleQueue[Answer], stopped: Event) -> None:
    """One thread's life: asks its child question after question."""
    with worker.errors:
        while not stopped.is_set():
            try:
                position, question = waiting.get_nowait()
            except Empty:
                break
            found.put(worker.ask(position, question))
        worker.close()


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
