"""A worker process as its supervisor sees it: commands in, events out, and an end that is always explained."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .area import Area

WORKER = Path(__file__).with_name("worker.py")
POLL = 0.2  # seconds between looks at a silent child
COLLECT_TIMEOUT = 1800  # seconds that starting and collecting may take
LAST_LINES = 40  # of a dead child's output


class ChildEndedError(Exception):
    """The child is gone. `result` is "crashed" or "hung", `reason` one line, `output` the end of what it printed."""

    def __init__(self, result: str, reason: str, output: str) -> None:
        super().__init__(reason)
        self.result, self.reason, self.output = result, reason, output


class StoppedError(Exception):
    """The run was told to stop."""


class Child:
    """One worker process. Used by one thread; `stopping` may be set by another and ends every wait."""

    def __init__(self, area: Area, threads: int, stopping: threading.Event) -> None:
        self.stopping = stopping
        self.output = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed by close()
        command_read, self.commands = os.pipe()
        self.events, event_write = os.pipe()
        # The timeout is the supervisor's, which survives what pytest-timeout does not.
        options = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-o", "timeout=0", "-m", ""]
        self.process = subprocess.Popen(
            [sys.executable, WORKER, str(command_read), str(event_write), *options, *area.arguments, *area.paths],
            cwd=area.directory,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), **area.environment},
            pass_fds=(command_read, event_write),
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is the supervisor's, and what a test has started ends with the child
        )
        os.close(command_read)
        os.close(event_write)
        self.cleanup = contextlib.ExitStack()  # its callbacks run once each, the last first
        self.cleanup.callback(self.output.close)
        self.cleanup.callback(os.close, self.events)
        self.cleanup.callback(self.end)
        self.cleanup.callback(os.close, self.commands)
        self.pending = b""
        self.tests = 0  # told to run so far

    def run(self, ids: list[str]) -> None:
        """Tells the child what to run next; follow with events() until "done"."""
        self.tests += len(ids)
        data = (json.dumps(ids) + "\n").encode()
        try:
            while data:
                data = data[os.write(self.commands, data) :]
        except BrokenPipeError:
            raise self.ended() from None

    def events_of(self, timeout: float) -> Iterator[dict[str, Any]]:
        """Yields events as they come. Raises ChildEndedError when it dies or says nothing for `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            if self.stopping.is_set():
                raise StoppedError
            *lines, self.pending = self.pending.split(b"\n")
            for line in lines:
                yield json.loads(line)
                deadline = time.monotonic() + timeout
            ended = self.process.poll() is not None  # asked before reading, so that what it wrote last is still read
            if select.select([self.events], [], [], 0 if ended else POLL)[0]:
                received = os.read(self.events, 1 << 16)
                if not received:
                    raise self.ended()
                self.pending += received
                continue
            if ended:  # though a process that it has started holds the pipe open
                raise self.ended()
            if time.monotonic() > deadline:
                self.dump_stacks()
                raise ChildEndedError("hung", f"no result after {timeout:g} s", self.last_output())

    def ended(self) -> ChildEndedError:
        """Why the child is gone. Kills it if all it has done is to close the pipe."""
        try:
            code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        reason = f"signal {signal.Signals(-code).name}" if code < 0 else f"the process ended with exit code {code}"
        return ChildEndedError("crashed", reason, self.last_output())

    def dump_stacks(self) -> None:
        """Ends a hung child so that pytest's fault handler prints where each thread is."""
        self.process.send_signal(signal.SIGABRT)
        with contextlib.suppress(subprocess.TimeoutExpired):  # then close() kills it
            self.process.wait(timeout=5)

    def last_output(self) -> str:
        self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, self.output.tell() - (1 << 15)))
        return "\n".join(self.output.read().decode(errors="replace").splitlines()[-LAST_LINES:])

    def close(self) -> None:
        """Ends the child and everything it has started. May be called again, after an interrupted call too."""
        self.cleanup.close()

    def end(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=0 if self.stopping.is_set() else 10)
        with contextlib.suppress(ProcessLookupError):  # nothing is left of its group
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
